//! The one way to all hosts, where there is one: a proxy that is not reached is no fault of any host.
//!
//! Nothing that waits is counted against the hosts behind it. One request at a time asks whether it is there again, ever
//! more seldom; if it is not for too long, the run ends in a state that can be resumed.

use std::time::Duration;

use super::Next;
use super::fact::{End, Fault};
use crate::clock::Time;

/// How long a proxy that was reached before may be away.
pub const AWAY: Duration = Duration::from_secs(600);
/// How long one that was never reached in this run is waited for: its address may be wrong.
pub const NEVER_THERE: Duration = Duration::from_secs(15);
/// The wait between two questions begins with this and doubles,
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
struct Lost {
    since: Time,
    until: Time,
    wait: Duration,
    why: String,
}

/// Whether the way is there.
#[derive(Debug, Clone, Default)]
pub(super) struct Outlet {
    lost: Option<Lost>,
    reached: bool,
}

impl Outlet {
    /// Takes in how a request ended.
    pub(super) fn met(&mut self, end: &End, at: Time) {
        match end {
            End::Failed {
                fault: Fault::Proxy,
                detail,
                ..
            } => self.miss(detail, at),
            // these say nothing: the request may never have left
            End::Found(_)
            | End::Failed {
                fault: Fault::Name | Fault::Final,
                ..
            } => {}
            End::Answered { .. } | End::Failed { .. } => {
                self.lost = None;
                self.reached = true;
            }
        }
    }

    fn miss(&mut self, why: &str, at: Time) {
        let Some(lost) = &mut self.lost else {
            self.lost = Some(Lost {
                since: at,
                until: at + FIRST_WAIT,
                wait: FIRST_WAIT,
                why: why.to_owned(),
            });
            return;
        };
        // what was in flight together found out together
        if at >= lost.until {
            lost.wait = (lost.wait * 2).min(LONGEST_WAIT);
            lost.until = at + lost.wait;
            why.clone_into(&mut lost.why);
        }
    }

    /// What stands against a request at `now`.
    pub(super) fn bars(&self, now: Time, in_flight: usize) -> Option<Next> {
        let lost = self.lost.as_ref()?;
        let patience = if self.reached { AWAY } else { NEVER_THERE };
        if now.since(lost.since) >= patience {
            return Some(Next::Lost(lost.why.clone()));
        }
        if now < lost.until {
            return Some(Next::NotBefore(lost.until));
        }
        (in_flight > 0).then_some(Next::Blocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed() -> End {
        End::Failed {
            reason: "proxy",
            detail: "the proxy is not reached".to_owned(),
            code: -2,
            fault: Fault::Proxy,
        }
    }

    fn other(fault: Fault) -> End {
        End::Failed {
            reason: "other",
            detail: String::new(),
            code: -2,
            fault,
        }
    }

    fn second(seconds: u64) -> Time {
        Time(0) + Duration::from_secs(seconds)
    }

    /// Seconds at which the way is asked for, until it is given up.
    fn asked(outlet: &mut Outlet) -> Vec<u64> {
        let mut asked = Vec::new();
        outlet.met(&missed(), second(0));
        for now in 0..2_000 {
            match outlet.bars(second(now), 0) {
                None => {
                    asked.push(now);
                    outlet.met(&missed(), second(now));
                }
                Some(Next::NotBefore(due)) => assert!(due > second(now)),
                Some(Next::Lost(why)) => {
                    assert!(why.contains("not reached"));
                    asked.push(now);
                    return asked;
                }
                Some(next) => panic!("{next:?}"),
            }
        }
        panic!("never given up")
    }

    #[test]
    fn a_way_that_was_there_is_waited_for_and_then_given_up() {
        assert_eq!(asked(&mut Outlet::default()), [1, 3, 7, 15]);
        let mut outlet = Outlet {
            reached: true,
            ..Outlet::default()
        };
        let asked = asked(&mut outlet);
        assert_eq!(asked[..7], [1, 3, 7, 15, 31, 61, 91]);
        assert_eq!(asked.last(), Some(&600));
    }

    #[test]
    fn any_sign_of_the_way_opens_it_and_a_name_that_was_not_found_is_none() {
        for (fault, opens) in [
            (Fault::Host, true),
            (Fault::Form, true),
            (Fault::Name, false),
            (Fault::Final, false),
        ] {
            let mut outlet = Outlet::default();
            outlet.met(&missed(), second(0));
            outlet.met(&other(fault), second(1));
            assert_eq!(outlet.bars(second(0), 0).is_none(), opens, "{fault:?}");
        }
    }

    #[test]
    fn requests_that_failed_together_are_one_failure_and_one_alone_asks_again() {
        let mut outlet = Outlet::default();
        for _ in 0..100 {
            outlet.met(&missed(), second(5));
        }
        assert!(matches!(outlet.bars(second(5), 0), Some(Next::NotBefore(due)) if due == second(6)));
        assert!(outlet.bars(second(6), 0).is_none());
        assert!(matches!(outlet.bars(second(6), 1), Some(Next::Blocked)));
    }
}
