//! Threads that answer requests: they make a page's links and judge them, as visits do.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope as Threads;
use std::time::Duration;

use super::web::Web;
use crate::clock::Time;
use crate::extract::{LinkKind, Links, RawLink};
use crate::hash::HashKey;
use crate::scope::{Scope, Sitemaps};
use crate::shard::{Done, End, What, Work};
use crate::traps;
use crate::url::Identity;
use crate::visit::judge::{Judge, Judged, Said};

/// A request.
pub(super) struct Ask {
    pub(super) ticket: u64,
    pub(super) work: Work,
    /// The page; none for a robots.txt.
    pub(super) page: Option<u64>,
    /// When it is answered.
    pub(super) at: Time,
    pub(super) took: Duration,
}

/// Its answer.
pub(super) struct Answer {
    pub(super) ticket: u64,
    pub(super) page: Option<u64>,
    pub(super) done: Done,
    /// The pages that it leads to.
    pub(super) links: Vec<u64>,
}

/// Requests that go to a thread together: to wake it costs as much as to answer some.
const TOGETHER: usize = 32;

/// The threads.
pub(super) struct Workers {
    threads: Vec<Sender<Vec<Ask>>>,
    answers: Receiver<Vec<Answer>>,
    /// Requests that have not been passed on yet.
    held: Vec<Ask>,
    turn: usize,
}

impl Workers {
    /// Starts so many threads, at least one. They end when this is dropped.
    pub(super) fn start<'scope>(
        threads: &'scope Threads<'scope, '_>,
        count: usize,
        web: Web,
        key: HashKey,
        scope: Scope,
    ) -> Self {
        let (answer, answers) = channel();
        let judge = Arc::new(judge(key, scope));
        let asks = (0..count.max(1)).map(|_| {
            let (ask, asked) = channel::<Vec<Ask>>();
            let (answer, judge) = (answer.clone(), Arc::clone(&judge));
            threads.spawn(move || {
                for asks in asked {
                    let answers = asks.into_iter().map(|ask| answered(ask, &web, &judge)).collect();
                    if answer.send(answers).is_err() {
                        break;
                    }
                }
            });
            ask
        });
        Self {
            threads: asks.collect(),
            answers,
            held: Vec::with_capacity(TOGETHER),
            turn: 0,
        }
    }

    /// Asks one of the threads. If it has died, the answer will not come, and whoever waits for it is told so.
    pub(super) fn ask(&mut self, ask: Ask) {
        self.held.push(ask);
        if self.held.len() >= TOGETHER {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let asks = std::mem::replace(&mut self.held, Vec::with_capacity(TOGETHER));
        self.turn = (self.turn + 1) % self.threads.len();
        if let Some(thread) = self.threads.get(self.turn) {
            let _ = thread.send(asks);
        }
    }

    /// The next answers that are ready; none if all threads have died.
    pub(super) fn next(&mut self) -> Option<Vec<Answer>> {
        self.pass_on();
        self.answers.recv().ok()
    }
}

fn judge(key: HashKey, scope: Scope) -> Judge {
    Judge {
        scope: std::sync::RwLock::new(scope.into()),
        identity: Identity::default(),
        key,
        requisites: true,
        speculative: false,
        obey_nofollow: false,
        sitemaps: Sitemaps::No,
        traps: traps::Settings {
            off: true,
            overrides: Vec::new(),
        },
        said: Said::default(),
    }
}

fn answered(ask: Ask, web: &Web, judge: &Judge) -> Answer {
    let Ask {
        ticket,
        work,
        page,
        at,
        took,
    } = ask;
    let links: Vec<u64> = page.into_iter().flat_map(|page| web.links(page)).collect();
    let judged = match &work.what {
        What::Page { item, .. } => {
            // one text, and a slice of it for each link
            let mut text = String::with_capacity(links.len() * 72);
            let mut ends = Vec::with_capacity(links.len());
            for link in &links {
                web.write_url(*link, &mut text);
                ends.push(text.len());
            }
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let raw = starts.zip(&ends).filter_map(|(start, end)| text.get(start..*end));
            let mut found = Links::default();
            found.links = raw
                .map(|raw| RawLink {
                    raw: raw.into(),
                    kind: LinkKind::Navigation,
                    nofollow: false,
                    header: false,
                    lastmod: None,
                })
                .collect();
            judge.judge(item, &found)
        }
        What::Robots(_) | What::Address(_) => Judged::default(),
    };
    let end = End::Answered {
        status: if page.is_some() { 200 } else { 404 },
        mime: "text/html".to_owned(),
        cut_short: false,
        retry_after: None,
        received: 0,
        decoded: 0,
    };
    let mut done = Done::new(work, end, at);
    done.took = took;
    done.links = judged.links;
    done.counts = judged.counts;
    done.met = judged.met;
    Answer {
        ticket,
        page,
        done,
        links,
    }
}
