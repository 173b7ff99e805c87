//! Were the pauses kept? Judged from starts, ends and rests alone, with no allowance.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Time;

/// One request to somebody, in the order of their starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) start: Time,
    pub(super) end: Time,
    /// From its end nothing more may be asked before this is over, microseconds.
    pub(super) rest: u64,
    /// The line that says so.
    pub(super) line: u64,
}

/// What was found wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It began so many microseconds before the rest after that line was over.
    TooEarly { line: u64, gap: i64, rest: u64 },
    /// So many were in flight with it.
    TooMany { line: u64, at_once: usize },
}

/// Requests to one host or address, as they began.
#[derive(Debug)]
pub(super) struct Pace {
    most_at_once: usize,
    /// Ends of what is in flight, with rest and line.
    flying: BinaryHeap<Reverse<(Time, u64, u64)>>,
    /// Nothing may start before this, because of this line, which ended then and asked for so much.
    due: Option<(Time, u64, Time, u64)>,
    /// The shortest pause between an end and the next start, microseconds.
    pub(super) shortest: Option<u64>,
}

impl Pace {
    pub(super) fn new(most_at_once: usize) -> Self {
        Self {
            most_at_once,
            flying: BinaryHeap::new(),
            due: None,
            shortest: None,
        }
    }

    /// The next request.
    pub(super) fn ask(&mut self, asked: Asked) -> Option<Broken> {
        while let Some(Reverse((end, rest, line))) = self.flying.peek().copied() {
            if end > asked.start {
                break;
            }
            self.flying.pop();
            let gap = asked.start.0 - end.0;
            if self.most_at_once == 1 {
                self.shortest = Some(self.shortest.map_or(gap, |shortest| shortest.min(gap)));
            }
            let due = Time(end.0.saturating_add(rest));
            if self.due.is_none_or(|(other, ..)| due > other) {
                self.due = Some((due, line, end, rest));
            }
        }
        let others = self.flying.len();
        let broken = match (self.due, self.flying.peek()) {
            (_, Some(Reverse((_, _, line)))) if others >= self.most_at_once => Some(Broken::TooMany {
                line: *line,
                at_once: others + 1,
            }),
            (Some((due, line, end, rest)), _) if asked.start < due => Some(Broken::TooEarly {
                line,
                gap: i64::try_from(asked.start.0 - end.0).unwrap_or(i64::MAX),
                rest,
            }),
            _ => None,
        };
        self.flying.push(Reverse((asked.end, asked.rest, asked.line)));
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(start: u64, end: u64, rest: u64, line: u64) -> Asked {
        Asked {
            start: Time(start),
            end: Time(end),
            rest,
            line,
        }
    }

    #[test]
    fn a_pause_that_is_a_microsecond_too_short_is_found_and_one_that_fits_is_not() {
        let mut pace = Pace::new(1);
        assert_eq!(pace.ask(asked(0, 100, 1_000, 1)), None);
        assert_eq!(pace.ask(asked(1_100, 1_200, 1_000, 2)), None);
        let early = Broken::TooEarly {
            line: 2,
            gap: 999,
            rest: 1_000,
        };
        assert_eq!(pace.ask(asked(2_199, 2_200, 0, 3)), Some(early));
        assert_eq!(pace.shortest, Some(999));
        let many = Broken::TooMany { line: 3, at_once: 2 };
        assert_eq!(pace.ask(asked(2_199, 2_300, 0, 4)), Some(many));
    }

    #[test]
    fn a_longer_rest_is_not_forgotten_for_a_later_one() {
        let mut pace = Pace::new(2);
        assert_eq!(pace.ask(asked(0, 10, 10_000, 1)), None);
        assert_eq!(pace.ask(asked(5, 20, 0, 2)), None);
        let early = Broken::TooEarly {
            line: 1,
            gap: 90,
            rest: 10_000,
        };
        assert_eq!(pace.ask(asked(100, 200, 0, 3)), Some(early));
        assert_eq!(pace.ask(asked(10_010, 10_020, 0, 4)), None);
    }
}
