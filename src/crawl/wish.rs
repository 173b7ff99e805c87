//! What is wished of a crawl while it runs, and how it ends.

/// What is wished of a crawl while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// It is to end.
    pub stop: Option<Stop>,
    /// Nothing new is to be started for now.
    pub paused: bool,
}

/// Who wishes the end of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A signal; its number.
    Signal(i32),
    /// `crawler stop`.
    Asked,
}

/// How a crawl ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing was left to do.
    Finished,
    /// A limit that was asked for was reached; the text names it.
    Limit(String),
    /// A signal asked it to stop; its number.
    Stopped(i32),
    /// `crawler stop` asked it to.
    Asked,
    /// The proxy was not reached for too long; the text says more.
    Lost(String),
}
