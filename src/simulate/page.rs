//! report.html of a simulation: its numbers and its curves, in one page that needs nothing else.

use std::fmt::Write as _;

use super::{Outcome, Point, Settings};
use crate::report::words::{bytes, percent, rate, share, span, thousands};
use crate::seen::Account;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8886;--one:#2f6fd0;--two:#d0632f;--three:#2a8a4a}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2em 0 .3em}\
table{border-collapse:collapse}td{padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--line)}\
td+td{text-align:right;font-variant-numeric:tabular-nums}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:1rem}\
svg{width:100%;height:auto}text{font-size:11px;fill:currentColor}small{opacity:.75}";

/// Colours of the curves of a plot, in order.
const COLOURS: [&str; 4] = ["var(--one)", "var(--two)", "var(--three)", "currentColor"];
/// Size of a plot and of its margins, in the picture's own units.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 12.0;

/// What a set of all addresses in memory takes, measured beside the simulation.
#[derive(Debug, Clone, Copy)]
pub struct Baseline {
    /// Addresses that were put into it.
    pub urls: u64,
    /// Memory that it took, bytes.
    pub bytes: u64,
}

impl Baseline {
    /// The same for so many addresses.
    #[must_use]
    pub fn scaled(&self, urls: u64) -> u64 {
        let bytes = u128::from(self.bytes) * u128::from(urls) / u128::from(self.urls.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The numbers of a run, for people: what each is, and it.
#[must_use]
pub fn figures(settings: &Settings, outcome: &Outcome, baseline: Baseline) -> Vec<(String, String)> {
    let default = Point::default();
    let end = outcome.points.last().unwrap_or(&default);
    let mut lines = vec![
        ("different URLs met".to_owned(), thousands(end.urls)),
        ("links".to_owned(), thousands(end.links)),
        (
            "links seen before".to_owned(),
            percent(share(outcome.counts.seen, outcome.counts.found)),
        ),
        ("pages fetched".to_owned(), thousands(end.fetched)),
        ("URLs pending".to_owned(), thousands(end.queued)),
        ("hosts".to_owned(), thousands(end.hosts)),
        ("kills".to_owned(), thousands(outcome.crashes)),
        (
            "requests cut off by kills, and made again".to_owned(),
            thousands(outcome.cut_off),
        ),
        ("pages recorded twice".to_owned(), thousands(outcome.twice)),
    ];
    let gap = outcome
        .min_gap
        .map_or("-".to_owned(), |gap| format!("{:.3} s", gap.as_secs_f64()));
    lines.push((
        format!(
            "shortest gap at a host, of {:.3} s asked, over kills too",
            settings.delay.as_secs_f64()
        ),
        gap,
    ));
    lines.push(("requests too early".to_owned(), thousands(outcome.violations)));
    if let Some(seen) = &end.seen {
        of_seen(&mut lines, seen, end);
    }
    lines.push(("memory of the seen-set".to_owned(), bytes(end.seen_bytes)));
    lines.push((
        format!(
            "a hash set of the same addresses (measured with {})",
            thousands(baseline.urls)
        ),
        bytes(baseline.scaled(end.urls)),
    ));
    lines.push(("memory of the process, with the queue".to_owned(), bytes(end.resident)));
    lines.push(("real time".to_owned(), span(end.elapsed)));
    lines.push(("virtual time".to_owned(), span(end.virtual_time)));
    lines.push(("links a second".to_owned(), rate(links_a_second(end))));
    lines
}

fn of_seen(lines: &mut Vec<(String, String)>, seen: &Account, end: &Point) {
    lines.push((
        "seen-set".to_owned(),
        format!("{} for {}", seen.kind.name(), thousands(seen.capacity)),
    ));
    lines.push(("layers".to_owned(), thousands(u64::from(seen.layers))));
    lines.push(("share of bits set".to_owned(), percent(seen.fill)));
    lines.push(("rate asked for, when full".to_owned(), percent(seen.fp_target)));
    lines.push(("rate predicted from the bits".to_owned(), percent(seen.fp_predicted)));
    lines.push((
        format!(
            "rate on the watched sample of {} keys, all the way",
            thousands(seen.fp_observed_of)
        ),
        format!(
            "{} ({} to {})",
            percent(seen.fp_observed),
            percent(seen.fp_observed_low),
            percent(seen.fp_observed_high)
        ),
    ));
    lines.push((
        "URLs lost, as the crawler expects (95 of 100 cases)".to_owned(),
        format!(
            "{:.1} ({:.1} to {:.1})",
            seen.lost_estimate, seen.lost_low, seen.lost_high
        ),
    ));
    lines.push(("URLs lost, counted".to_owned(), thousands(end.lost)));
}

/// Links a second of real time up to a point.
#[must_use]
pub fn links_a_second(point: &Point) -> f64 {
    let seconds = point.elapsed.as_secs_f64();
    if seconds > 0.0 {
        float(point.links) / seconds
    } else {
        0.0
    }
}

/// The page. `command` is what was typed.
#[must_use]
pub fn page(settings: &Settings, outcome: &Outcome, baseline: Baseline, command: &str) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    // writing to a String cannot fail
    let _ = write!(
        out,
        "<title>Simulated crawl</title>\n<style>{STYLE}</style></head><body>\n<h1>A simulated crawl of {} URLs</h1>\n<p><code>{}</code></p>\n<table>\n",
        thousands(settings.urls),
        crate::report::html::escape(command)
    );
    for (what, figure) in figures(settings, outcome, baseline) {
        let _ = writeln!(out, "<tr><td>{what}</td><td>{figure}</td></tr>");
    }
    out.push_str("</table>\n<div class=\"plots\">\n");
    for plot in plots(settings, outcome, baseline) {
        let _ = writeln!(out, "<div><h2>{}</h2>{}</div>", plot.title, plot.svg());
    }
    let _ = write!(
        out,
        "</div>\n<p><small>Every horizontal axis counts different URLs met. A URL counts as lost if the seen-set called it seen when it was met \
         first; one bit a page tells. The watched sample is what a crawl has to judge itself by: the exact keys of one slice of the \
         hash's range. crawler {}</small></p>\n</body></html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn plots(settings: &Settings, outcome: &Outcome, baseline: Baseline) -> Vec<Plot> {
    let of = |what: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = outcome.points.iter();
        points
            .filter_map(|point| Some((float(point.urls), what(point)?)))
            .collect()
    };
    let of_seen = |what: &dyn Fn(&Account) -> f64| of(&|point| point.seen.as_ref().map(what));
    let mut speeds = Vec::new();
    for pair in outcome.points.windows(2) {
        if let [before, after] = pair {
            let seconds = (after.elapsed.saturating_sub(before.elapsed)).as_secs_f64();
            if seconds > 0.0 {
                speeds.push((float(after.urls), float(after.links - before.links) / seconds));
            }
        }
    }
    vec![
        Plot::new(
            "Share of bits set",
            "%",
            &[("fill", of_seen(&|seen| seen.fill * 100.0))],
        ),
        Plot::new(
            "False positives among new URLs",
            "%",
            &[
                ("predicted from the bits", of_seen(&|seen| seen.fp_predicted * 100.0)),
                (
                    "counted, each step",
                    of(&|point| (point.step.0 > 0).then(|| float(point.step.1) / float(point.step.0) * 100.0)),
                ),
                ("the sample's, all the way", of_seen(&|seen| seen.fp_observed * 100.0)),
                ("asked for", of(&|_| Some(settings.fp * 100.0))),
            ],
        ),
        Plot::new(
            "URLs lost",
            "",
            &[
                ("expected", of_seen(&|seen| seen.lost_estimate)),
                ("counted", of(&|point| Some(float(point.lost)))),
                ("lower end of 95 %", of_seen(&|seen| seen.lost_low)),
                ("upper end", of_seen(&|seen| seen.lost_high)),
            ],
        ),
        Plot::new(
            "Memory",
            "B",
            &[
                ("seen-set", of(&|point| Some(float(point.seen_bytes)))),
                ("a hash set", of(&|point| Some(float(baseline.scaled(point.urls))))),
                ("process", of(&|point| Some(float(point.resident)))),
            ],
        ),
        Plot::new("Links a second, each step", "", &[("links", speeds)]),
        Plot::new(
            "Pending URLs",
            "",
            &[("pending", of(&|point| Some(float(point.queued))))],
        ),
    ]
}

/// Curves over one axis of different URLs.
struct Plot {
    title: &'static str,
    unit: &'static str,
    curves: Vec<(&'static str, Vec<(f64, f64)>)>,
}

impl Plot {
    fn new(title: &'static str, unit: &'static str, curves: &[(&'static str, Vec<(f64, f64)>)]) -> Self {
        Self {
            title,
            unit,
            curves: curves.to_vec(),
        }
    }

    fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|(_, curve)| curve);
        let most = |axis: fn(&(f64, f64)) -> f64| round_up(points().map(axis).fold(0.0, f64::max));
        let (right, top) = (most(|point| point.0), most(|point| point.1));
        let x = |value: f64| LEFT + value / right * (WIDTH - LEFT - 10.0);
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">",
            HEIGHT + 16.0 * float(self.curves.len() as u64)
        );
        for part in 0..=4_u32 {
            let part = f64::from(part) / 4.0;
            let (at_x, at_y) = (x(right * part), y(top * part));
            let _ = write!(
                out,
                "<path d=\"M{LEFT} {at_y:.1}H{:.1}\" stroke=\"var(--line)\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <text x=\"{at_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                WIDTH - 10.0,
                LEFT - 5.0,
                at_y + 4.0,
                short(top * part, self.unit),
                HEIGHT - BOTTOM + 15.0,
                short(right * part, ""),
            );
        }
        for (number, ((name, curve), colour)) in self.curves.iter().zip(COLOURS).enumerate() {
            let mut path = String::new();
            for (url, value) in curve {
                let _ = write!(
                    path,
                    "{}{:.1} {:.1}",
                    if path.is_empty() { 'M' } else { 'L' },
                    x(*url),
                    y(*value)
                );
            }
            let line = HEIGHT + 16.0 * float(number as u64);
            let _ = write!(
                out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/><path d=\"M{LEFT} {line}h20\" stroke=\"{colour}\" \
                 stroke-width=\"2\"/><text x=\"{}\" y=\"{}\">{name}</text>",
                LEFT + 26.0,
                line + 4.0
            );
        }
        out + "</svg>"
    }
}

/// The next of 1, 2, 4, 5, 8 times a power of ten: an axis that ends there has quarters worth reading.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let digit = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0]
        .into_iter()
        .find(|digit| digit * power >= value * 0.999_999);
    digit.unwrap_or(10.0) * power
}

/// `1.5 M`, `20 k`, `0.002 %`.
fn short(value: f64, unit: &str) -> String {
    let (scaled, letter) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let digits = format!("{scaled:.6}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let gap = if letter.is_empty() && unit.is_empty() { "" } else { " " };
    format!("{digits}{gap}{letter}{unit}")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "for curves and rates, which need no more digits"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_where_quarters_can_be_read() {
        for (value, end) in [
            (0.0, 1.0),
            (0.9, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (17.0, 20.0),
            (4.5e6, 5e6),
            (0.0009, 0.001),
        ] {
            assert!(
                (round_up(value) / end - 1.0).abs() < 1e-9,
                "{value}: {}",
                round_up(value)
            );
        }
        assert_eq!(short(1_500_000.0, ""), "1.5 M");
        assert_eq!(short(0.25, "%"), "0.25 %");
        assert_eq!(short(0.0, ""), "0");
        assert_eq!(short(2e9, "B"), "2 GB");
    }

    #[test]
    fn a_plot_of_nothing_has_no_wrong_numbers() {
        let svg = Plot::new("t", "", &[("nothing", Vec::new())]).svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
