//! The survey in the ledger: counted with each fact, kept with a batch now and then.
//!
//! It is kept every [`SURVEY_EVERY`] and when a run ends, in the batch that makes durable what it has counted. A kill
//! costs it what was counted since then: the figures are estimates.

use std::io;
use std::time::Duration;

use super::{Fact, Ledger};
use crate::clock::Time;
use crate::store::{Batch, Table};
use crate::survey::{Summary, Survey};

/// Time between two savings of the survey, at most, while there is something to save.
pub(super) const SURVEY_EVERY: Duration = Duration::from_secs(60);

/// The survey's row.
pub(super) const SURVEY_KEY: &[u8] = b"survey";

/// The survey, and how it stands with the store.
pub(super) struct Counted {
    survey: Survey,
    /// It has counted something that is not kept yet.
    changed: bool,
    /// The next batch keeps it.
    due: bool,
    saved: Time,
}

impl Counted {
    pub(super) fn new(survey: Survey, saved: Time) -> Self {
        Self {
            survey,
            changed: false,
            due: false,
            saved,
        }
    }

    /// Counts what a fact has met. `digest` is that of the payload, if it was archived.
    pub(super) fn count(&mut self, fact: &Fact, digest: Option<[u8; 20]>, now: Time) {
        self.survey.page(&fact.met);
        for shape in &fact.shapes {
            self.survey.shape(shape);
        }
        if let Some(digest) = digest {
            self.survey.content(&digest);
        }
        self.changed = true;
        if now.since(self.saved) >= SURVEY_EVERY {
            self.saved = now;
            self.due = true;
        }
    }

    /// The next batch keeps it, whatever the time.
    pub(super) fn keep_now(&mut self) {
        self.due = true;
    }

    /// Adds it to a batch, if it is time to.
    pub(super) fn save(&mut self, batch: &mut Batch) -> io::Result<()> {
        if self.changed && self.due {
            batch.put(Table::Meta, SURVEY_KEY, self.survey.to_row()?);
            self.changed = false;
            self.due = false;
        }
        Ok(())
    }
}

impl Ledger {
    /// The estimates of the job so far.
    #[must_use]
    pub fn survey(&self) -> Summary {
        self.survey.survey.summary()
    }
}
