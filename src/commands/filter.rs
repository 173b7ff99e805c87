//! `crawler filter`: how large a filter must be, by the textbook and as we build it; saved filters in `saved`, speed in `bench`.

pub(super) mod bench;
pub(super) mod saved;

use std::fmt::Write as _;

use crate::seen::hashset::ExactSet;
use crate::seen::sizing::{self, Classic, LINE_BITS, MAX_FP, MIN_FP};
use crate::seen::{Kind, layers};

/// What `filter size` is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRequest {
    /// Keys the filter is made for, at least 1.
    pub items: u64,
    /// The false-positive rate at that many keys, from [`MIN_FP`] to [`MAX_FP`].
    pub fp: f64,
    /// The kind to size; without one, all kinds.
    pub kind: Option<Kind>,
}

/// The answer, one kind a line, the textbook's figures first.
///
/// # Errors
/// If a number is out of its bounds; the text names it and them.
pub fn size_text(request: &SizeRequest) -> Result<String, String> {
    let SizeRequest { items, fp, kind } = *request;
    if items == 0 {
        return Err("--items 0: a filter needs at least 1 key".to_owned());
    }
    if !(MIN_FP..=MAX_FP).contains(&fp) {
        return Err(format!(
            "--fp {fp}: a false-positive rate from {MIN_FP} to {MAX_FP} is possible"
        ));
    }
    let mut text = format!("{} keys at a false-positive rate of {}:\n", grouped(items), percent(fp));
    let Classic { bits, hashes } = sizing::classic(items, fp);
    line(
        &mut text,
        "classic",
        bits,
        Some(hashes),
        items,
        "the textbook: m = -n ln p / (ln 2)^2, k = m/n ln 2",
    );
    for one in Kind::ALL.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one)) {
        if one == Kind::Classic {
            continue;
        }
        if one == Kind::HashSet {
            let bits = ExactSet::bytes_for(items).saturating_mul(8);
            line(
                &mut text,
                one.name(),
                bits,
                None,
                items,
                "exact, of 16-byte hashes, at least",
            );
            continue;
        }
        let lines = layers::check_and_size(one, items, fp)?;
        let (hashes, rate) = layers::when_full(one, items, lines);
        let hashes = (one == Kind::Bloom || hashes > 1).then_some(hashes);
        let what = format!("{}; rate when full {}", about(one), percent(rate));
        line(&mut text, one.name(), lines * LINE_BITS, hashes, items, &what);
    }
    Ok(text)
}

/// What a kind is, in a few words.
fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Bloom => "one cache line a key",
        Kind::Classic => "the textbook",
        Kind::Scalable => "the first of ever tighter layers",
        Kind::Counting => "counters of 4 bits; forgets",
        Kind::Cuckoo => "fingerprints in buckets of 4; forgets",
        Kind::Quotient => "remainders; forgets, merges exactly",
        Kind::Tags => "32-bit tags; forgets",
        Kind::Exact => "in front of a table of 21 bytes a URL on disk, loses nothing; forgets",
        Kind::HashSet => "exact",
    }
}

fn line(text: &mut String, kind: &str, bits: u64, hashes: Option<u32>, items: u64, what: &str) {
    let bytes = bits.div_ceil(8);
    let hashes = hashes
        .map(|hashes| format!(", {hashes} {}", if hashes == 1 { "hash" } else { "hashes" }))
        .unwrap_or_default();
    let per_key = sizing::float(bits) / sizing::float(items);
    // writing to a String cannot fail
    let _ = writeln!(
        text,
        "  {kind:<8} {} bits, {}{hashes} ({} bytes, {per_key:.2} bits a key; {what})",
        grouped(bits),
        binary(bytes),
        grouped(bytes),
    );
}

/// `9,585,059`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1.14 MiB`.
fn binary(bytes: u64) -> String {
    let mut size = sizing::float(bytes);
    let mut unit = "bytes";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    if unit == "bytes" {
        format!("{bytes} bytes")
    } else {
        format!("{size:.2} {unit}")
    }
}

/// `0.1 %`: three digits that say something, none that say nothing.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 {
        (2.0 - percent.log10().floor()).clamp(0.0, 20.0)
    } else {
        0.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=20"
    )]
    let text = format!("{percent:.*}", digits as usize);
    let short = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text.as_str()
    };
    format!("{short} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(items: u64, fp: f64, kind: Option<Kind>) -> Result<String, String> {
        size_text(&SizeRequest { items, fp, kind })
    }

    #[test]
    fn a_million_keys_at_one_percent() {
        let text = ask(1_000_000, 0.01, None).unwrap();
        insta::assert_snapshot!(text, @"
        1,000,000 keys at a false-positive rate of 1 %:
          classic  9,585,059 bits, 1.14 MiB, 7 hashes (1,198,133 bytes, 9.59 bits a key; the textbook: m = -n ln p / (ln 2)^2, k = m/n ln 2)
          bloom    10,099,712 bits, 1.20 MiB, 8 hashes (1,262,464 bytes, 10.10 bits a key; one cache line a key; rate when full 1 %)
          scalable 11,610,112 bits, 1.38 MiB, 8 hashes (1,451,264 bytes, 11.61 bits a key; the first of ever tighter layers; rate when full 0.5 %)
          counting 38,379,008 bits, 4.58 MiB, 7 hashes (4,797,376 bytes, 38.38 bits a key; counters of 4 bits; forgets; rate when full 0.999 %)
          cuckoo   10,869,760 bits, 1.30 MiB (1,358,720 bytes, 10.87 bits a key; fingerprints in buckets of 4; forgets; rate when full 0.717 %)
          quotient 11,111,424 bits, 1.32 MiB (1,388,928 bytes, 11.11 bits a key; remainders; forgets, merges exactly; rate when full 0.701 %)
          tags     40,000,000 bits, 4.77 MiB (5,000,000 bytes, 40.00 bits a key; 32-bit tags; forgets; rate when full 0.00000052 %)
          exact    10,099,712 bits, 1.20 MiB, 8 hashes (1,262,464 bytes, 10.10 bits a key; in front of a table of 21 bytes a URL on disk, loses nothing; forgets; rate when full 1 %)
          hashset  278,994,944 bits, 33.26 MiB (34,874,368 bytes, 278.99 bits a key; exact, of 16-byte hashes, at least)
        ");
    }

    #[test]
    fn a_million_keys_at_a_tenth_of_a_percent() {
        let text = ask(1_000_000, 0.001, Some(Kind::Bloom)).unwrap();
        assert!(text.contains("14,377,588 bits, 1.71 MiB, 10 hashes"), "{text}");
        assert!(!text.contains("hashset"), "{text}");
    }

    #[test]
    fn small_and_large_numbers_are_written_well() {
        assert_eq!(
            [grouped(0), grouped(999), grouped(1_000), grouped(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [binary(0), binary(1023), binary(1 << 40)],
            ["0 bytes", "1023 bytes", "1.00 TiB"]
        );
        assert_eq!(
            [percent(0.5), percent(0.001), percent(1e-6), percent(0.0)],
            ["50 %", "0.1 %", "0.0001 %", "0 %"]
        );
        assert_eq!(percent(0.009_998_7), "1 %");
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        assert!(ask(0, 0.01, None).unwrap_err().contains("--items 0"));
        for fp in [0.0, 0.6, 1e-7, f64::NAN, -0.1] {
            assert!(ask(10, fp, None).unwrap_err().contains("--fp"), "{fp}");
        }
        assert!(ask(u64::MAX, 0.001, None).unwrap_err().contains("256 GiB"));
        assert!(ask(1, 0.5, None).is_ok());
        assert!(ask(u64::MAX, 0.001, Some(Kind::HashSet)).is_ok());
    }
}
