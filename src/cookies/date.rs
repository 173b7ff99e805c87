//! Dates of cookies (RFC 6265 section 5.1.1): four fields in nearly any order, with nearly anything between them.

use crate::clock::Time;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Reads a date. `None` if it is none; a date before 1970 is 1970.
pub(super) fn cookie_date(text: &str) -> Option<Time> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none() && hms(token).is_some() {
            time = hms(token);
        } else if day.is_none() && digits(token, 1, 2).is_some() {
            day = digits(token, 1, 2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = digits(token, 2, 4);
        }
    }
    let (hour, minute, second) = time?;
    let year = match year? {
        short @ 70..=99 => short + 1900,
        short @ 0..=69 => short + 2000,
        year => year,
    };
    if year < 1601 {
        return None;
    }
    let small = |number: i16| i8::try_from(number).ok();
    let date = jiff::civil::Date::new(year, small(month?)?, small(day?)?).ok()?;
    let time = jiff::civil::Time::new(small(hour)?, small(minute)?, small(second)?, 0).ok()?;
    let stamp = date.to_datetime(time).to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let seconds = u64::try_from(stamp.timestamp().as_second()).unwrap_or(0);
    Some(Time(seconds.saturating_mul(1_000_000)))
}

fn is_delimiter(c: char) -> bool {
    matches!(c, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~')
}

/// `8:49:37`, with anything that is no digit behind it.
fn hms(token: &str) -> Option<(i16, i16, i16)> {
    let mut parts = token.splitn(3, ':');
    let whole = |text: &str| (text.len() <= 2).then(|| digits(text, 1, 2)).flatten();
    let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
    Some((hour, minute, digits(parts.next()?, 1, 2)?))
}

fn month_of(token: &str) -> Option<i16> {
    let start = token.get(..3)?.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| *month == start)?;
    i16::try_from(at + 1).ok()
}

/// The number that a token starts with, if it has so many digits and no further one follows.
fn digits(token: &str, least: usize, most: usize) -> Option<i16> {
    let len = token.bytes().take_while(u8::is_ascii_digit).count();
    if !(least..=most).contains(&len) {
        return None;
    }
    token.get(..len)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_read_in_the_forms_that_servers_write() {
        let first = Some(Time(784_111_777_000_000));
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "06 nov 1994 8:49:37",
            "1994 8:49:37x Novembre 6th",
            "6;Nov;94;08:49:37",
        ] {
            assert_eq!(cookie_date(text), first, "{text}");
        }
        assert_eq!(cookie_date("Thu, 01-Jan-1970 00:00:00 GMT"), Some(Time(0)));
        assert_eq!(cookie_date("1 Jan 1900 00:00:00"), Some(Time(0)));
        assert_eq!(
            cookie_date("31 Dec 2069 23:59:59"),
            cookie_date("31 Dec 69 23:59:59"),
            "69 is in this century"
        );
        assert_eq!(cookie_date("1 Jan 70 0:0:0"), Some(Time(0)), "70 was in the last one");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "tomorrow",
            "Sun, 06 Nov 1994",
            "06 Nov 08:49:37",
            "32 Nov 1994 08:49:37",
            "0 Nov 1994 08:49:37",
            "31 Feb 2026 00:00:00",
            "06 Nov 1994 24:00:00",
            "06 Nov 1994 08:60:00",
            "06 Nov 1994 08:49:60",
            "06 Nov 1600 08:49:37",
            "06 Nov 19944 08:49:37",
            "06 Nov 1994 008:49:37",
            "06 N\u{f6}v 1994 08:49:37",
        ] {
            assert_eq!(cookie_date(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gets_an_answer(text in any::<String>()) {
            let _ = cookie_date(&text);
        }
    }
}
