//! Segment templates (ISO/IEC 23009-1, section 5.3.9.4): addresses with `$Number$`, `$Time$`, `$RepresentationID$` and
//! `$Bandwidth$` in them, filled in where the presentation says how many segments there are.

/// Segments written out of the templates of one presentation; what is beyond is left. About 28 hours of ten seconds each.
pub(super) const MAX_SEGMENTS: usize = 10_000;

/// Longest pattern, and longest width of a number in it.
const MAX_PATTERN: usize = 2_048;
const MAX_WIDTH: usize = 20;

/// A template with what it inherits from those around it.
#[derive(Debug, Clone, Default)]
pub(super) struct Template {
    media: Option<String>,
    initialization: Option<String>,
    start: Option<u64>,
    timescale: Option<u64>,
    duration: Option<u64>,
    /// Start times of the segments, if they are listed.
    times: Vec<u64>,
    /// Where the last listed segment ends.
    end: u64,
}

/// Whose segments they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Representation {
    pub(super) id: String,
    pub(super) bandwidth: String,
}

impl Template {
    /// Takes an attribute of `SegmentTemplate`.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let number = || value.trim().parse().ok();
        match name {
            "media" => self.media = kept(value),
            "initialization" => self.initialization = kept(value),
            "startNumber" => self.start = number(),
            "timescale" => self.timescale = number().filter(|scale| *scale > 0),
            "duration" => self.duration = number().filter(|duration| *duration > 0),
            _ => {}
        }
    }

    /// Takes an `S` of a `SegmentTimeline`: a start if one is given, a duration, and how often it is repeated. A repeat
    /// without end is one segment: how many there are is known to the player alone.
    pub(super) fn segment(&mut self, start: Option<u64>, duration: u64, repeat: i64) {
        let mut at = start.unwrap_or(self.end);
        for _ in 0..=repeat.max(0) {
            if self.times.len() >= MAX_SEGMENTS {
                return;
            }
            self.times.push(at);
            at = at.saturating_add(duration);
        }
        self.end = at;
    }

    /// A timeline begins: it replaces that of the template around this one.
    pub(super) fn begin_timeline(&mut self) {
        self.times.clear();
        self.end = 0;
    }

    /// Calls `found` with the addresses that are to be filled in, of which `room` are left for this presentation.
    pub(super) fn fill(
        &self,
        of: &Representation,
        period_s: Option<f64>,
        room: &mut usize,
        mut found: impl FnMut(String),
    ) {
        let mut give = |pattern: &str, number, time| {
            if *room > 0
                && let Some(url) = filled(pattern, of, number, time)
            {
                *room -= 1;
                found(url);
            }
            *room > 0
        };
        if let Some(pattern) = self.initialization.as_deref().filter(|pattern| pattern.contains('$')) {
            give(pattern, None, None);
        }
        let Some(pattern) = self.media.as_deref().filter(|pattern| pattern.contains('$')) else {
            return;
        };
        if !(pattern.contains("$Number") || pattern.contains("$Time")) {
            give(pattern, None, None);
            return;
        }
        let first = self.start.unwrap_or(1);
        if !self.times.is_empty() {
            for (number, time) in (first..).zip(&self.times) {
                if !give(pattern, Some(number), Some(*time)) {
                    return;
                }
            }
            return;
        }
        let (Some(duration), Some(period_s)) = (self.duration, period_s) else {
            return;
        };
        for n in 0..count(period_s, duration, self.timescale.unwrap_or(1)) {
            if !give(pattern, Some(first.saturating_add(n)), Some(n.saturating_mul(duration))) {
                return;
            }
        }
    }
}

fn kept(pattern: &str) -> Option<String> {
    (pattern.len() <= MAX_PATTERN).then(|| pattern.trim().to_owned())
}

/// Segments of a length in a period.
fn count(period_s: f64, duration: u64, timescale: u64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count, bounded right after"
    )]
    let count = (period_s * timescale as f64 / duration as f64).ceil() as u64;
    count.min(MAX_SEGMENTS as u64)
}

/// A pattern with its names filled in; `None` if it has one that is not known or has no value here.
fn filled(pattern: &str, of: &Representation, number: Option<u64>, time: Option<u64>) -> Option<String> {
    let mut url = String::with_capacity(pattern.len() + 16);
    let mut parts = pattern.split('$');
    url.push_str(parts.next()?);
    while let Some(name) = parts.next() {
        // each name stands between two dollars
        let rest = parts.next()?;
        let (name, format) = name
            .split_once('%')
            .map_or((name, None), |(name, format)| (name, Some(format)));
        let value = match name {
            "" if format.is_none() => "$".to_owned(),
            "RepresentationID" if format.is_none() => of.id.clone(),
            "Bandwidth" => padded(&of.bandwidth, format)?,
            "Number" => padded(&number?.to_string(), format)?,
            "Time" => padded(&time?.to_string(), format)?,
            _ => return None,
        };
        url.push_str(&value);
        url.push_str(rest);
    }
    Some(url)
}

/// `%05d`
fn padded(value: &str, format: Option<&str>) -> Option<String> {
    let Some(format) = format else {
        return Some(value.to_owned());
    };
    let width: usize = format.strip_prefix('0')?.strip_suffix('d')?.parse().ok()?;
    (width <= MAX_WIDTH).then(|| format!("{value:0>width$}"))
}

/// A duration such as `PT1H2M3.5S` or `P1DT12H`, in seconds. Months and years have no length, and give nothing.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let (days, time) = text.trim().strip_prefix('P')?.split_once('T').unwrap_or_else(|| {
        let days = text.trim().strip_prefix('P').unwrap_or_default();
        (days, "")
    });
    let mut total = 0.0;
    for (part, units) in [
        (days, &[('D', 86_400.0)][..]),
        (time, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)]),
    ] {
        let mut rest = part;
        for (unit, length) in units {
            if let Some((number, more)) = rest.split_once(*unit) {
                total += number.parse::<f64>().ok().filter(|number| *number >= 0.0)? * length;
                rest = more;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(total).filter(|total| total.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of() -> Representation {
        Representation {
            id: "v1".to_owned(),
            bandwidth: "64000".to_owned(),
        }
    }

    #[test]
    fn names_are_filled_in() {
        let fill = |pattern: &str| filled(pattern, &of(), Some(7), Some(900));
        for (pattern, url) in [
            ("$RepresentationID$/$Number%05d$.m4s", Some("v1/00007.m4s")),
            ("$Bandwidth$-$Time$$$", Some("64000-900$")),
            ("plain", Some("plain")),
            ("$Number%03d$$Number$", Some("0077")),
            ("$Other$", None),
            ("$Number", None),
            ("$Number%5d$", None),
            ("$Number%0999d$", None),
            ("$RepresentationID%02d$", None),
        ] {
            assert_eq!(fill(pattern).as_deref(), url, "{pattern}");
        }
        assert_eq!(filled("$Number$", &of(), None, None), None);
    }

    #[test]
    fn durations_are_read() {
        for (text, expected) in [
            ("PT1H2M3.5S", Some(3_723.5)),
            ("P1DT12H", Some(129_600.0)),
            ("P2D", Some(172_800.0)),
            ("PT0S", Some(0.0)),
            ("P1Y", None),
            ("PT5", None),
            ("5S", None),
            ("PT-5S", None),
            ("PT1e999S", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    fn all(template: &Template, period_s: Option<f64>) -> Vec<String> {
        let (mut room, mut urls) = (MAX_SEGMENTS, Vec::new());
        template.fill(&of(), period_s, &mut room, |url| urls.push(url));
        assert_eq!(room, MAX_SEGMENTS - urls.len());
        urls
    }

    fn template(attributes: &[(&str, &str)]) -> Template {
        let mut template = Template::default();
        for (name, value) in attributes {
            template.set(name, value);
        }
        template
    }

    #[test]
    fn segments_are_counted_by_the_timeline_or_by_the_period() {
        let mut listed = template(&[("media", "$Time$.m4s"), ("initialization", "$Bandwidth$.mp4")]);
        listed.segment(Some(100), 10, 2);
        listed.segment(None, 5, 0);
        listed.segment(None, 5, -1);
        let want = ["64000.mp4", "100.m4s", "110.m4s", "120.m4s", "130.m4s", "135.m4s"];
        assert_eq!(all(&listed, None), want);
        listed.begin_timeline();
        listed.segment(None, 1, 0);
        assert_eq!(all(&listed, None), ["64000.mp4", "0.m4s"]);

        let counted = [
            ("media", "$Number$"),
            ("duration", "4"),
            ("timescale", "2"),
            ("startNumber", "0"),
        ];
        let counted = template(&counted);
        assert_eq!(all(&counted, Some(5.0)), ["0", "1", "2"]);
        assert!(all(&counted, None).is_empty(), "nobody knows how many");
    }

    #[test]
    fn no_presentation_has_segments_without_end() {
        let mut listed = template(&[("media", "$Number$")]);
        listed.segment(None, 1, i64::MAX);
        assert_eq!(all(&listed, None).len(), MAX_SEGMENTS);
        let counted = template(&[("media", "$Number$"), ("duration", "1")]);
        assert_eq!(all(&counted, Some(f64::MAX)).len(), MAX_SEGMENTS);
        assert!(template(&[("media", &"$Number$".repeat(MAX_PATTERN))]).media.is_none());
    }
}
