//! Names of WARC files: `PREFIX-YYYYMMDDhhmmss-SSSSS.warc.gz`, with `.open` behind it while the file is written.

use crate::clock::Time;

/// What stands behind the name of a file that is still being written.
pub const OPEN: &str = ".open";

const SUFFIX: &str = ".warc.gz";

/// Fewest digits of a serial number; a number over 99,999 takes more.
const SERIAL_DIGITS: usize = 5;

/// The final name of a file begun at `begun`; `serial` counts the files of a job.
#[must_use]
pub fn file_name(prefix: &str, begun: Time, serial: u32) -> String {
    format!("{prefix}-{}-{serial:0SERIAL_DIGITS$}{SUFFIX}", begun.digits14())
}

/// The name while the file is being written.
#[must_use]
pub fn open_name(name: &str) -> String {
    format!("{name}{OPEN}")
}

/// The serial number in a name (final or open) that [`file_name`] made with this prefix; `None` for any other name.
#[must_use]
pub fn serial(prefix: &str, name: &str) -> Option<u32> {
    let (found, serial) = parts(name.strip_suffix(OPEN).unwrap_or(name))?;
    (found == prefix).then_some(serial)
}

/// The serial number in the name of a file that is still being written, whatever its prefix.
#[must_use]
pub fn open_serial(name: &str) -> Option<u32> {
    parts(name.strip_suffix(OPEN)?).map(|(_, serial)| serial)
}

/// Is this the name of a WARC file of any job, final or open?
#[must_use]
pub fn is_warc(name: &str) -> bool {
    parts(name.strip_suffix(OPEN).unwrap_or(name)).is_some()
}

/// Prefix and serial number of a final name.
fn parts(name: &str) -> Option<(&str, u32)> {
    let (rest, serial) = name.strip_suffix(SUFFIX)?.rsplit_once('-')?;
    let (prefix, stamp) = rest.rsplit_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (stamp.len() == 14 && is_number(stamp) && serial.len() >= SERIAL_DIGITS && is_number(serial))
        .then(|| serial.parse().ok())
        .flatten()
        .map(|serial| (prefix, serial))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Time = Time(1_308_849_128_802_345);

    #[test]
    fn a_name_is_made_and_its_number_read_back() {
        assert_eq!(file_name("crawl", BEGUN, 7), "crawl-20110623171208-00007.warc.gz");
        assert_eq!(open_name("a.warc.gz"), "a.warc.gz.open");
        for number in [0, 7, 99_999, 100_000, u32::MAX] {
            for prefix in ["crawl", "my-own-crawl", "20110623171208-00001", ""] {
                let name = file_name(prefix, BEGUN, number);
                assert_eq!(serial(prefix, &name), Some(number));
                assert_eq!(serial(prefix, &open_name(&name)), Some(number));
                assert_eq!(open_serial(&open_name(&name)), Some(number));
                assert_eq!(open_serial(&name), None);
            }
        }
    }

    #[test]
    fn other_names_have_no_number() {
        for name in [
            "crawl-20110623171208-00007.warc",
            "crawl-20110623171208-00007.warc.gz.tmp",
            "crawl-20110623171208-007.warc.gz",
            "crawl-2011062317120-00007.warc.gz",
            "crawl-20110623171208-0000x.warc.gz",
            "crawl-20110623171208-+0007.warc.gz",
            "crawl-20110623171208-99999999999.warc.gz",
            "other-20110623171208-00007.warc.gz",
            "crawl-x-20110623171208-00007.warc.gz",
            "crawl",
            "",
        ] {
            assert_eq!(serial("crawl", name), None, "{name}");
        }
    }
}
