//! A web crawler with a Bloom-filter URL frontier.
//!
//! This file is the map. Modules stand in the order in which a URL meets them; a module imports only from
//! modules of a lower layer (`tests/it/house.rs` holds the layers and fails on an arrow that points upwards).
//!
//! ```text
//! seeds ─► normalize ─► scope ─► seen-set ─► frontier ─► politeness ─► fetch ─► archive ─► extract ─┐
//!              ▲                                                                                      │
//!              └──────────────────────────────────────────── links ◄─────────────────────────────────┘
//! ```

// words: what everything else is said in
pub mod clock;
pub mod disk;
pub mod hash;
pub mod stats;

// the path of a URL
pub mod seeds;
pub mod url;
pub mod scope;
pub mod traps;
pub mod seen;
pub mod survey;
pub mod frontier;
pub mod politeness;
pub mod robots;
pub mod cookies;
pub mod shard;
pub mod fetch;
pub mod extract;
pub mod archive;

// what moves it
pub mod store;
pub mod visit;
pub mod ledger;
pub mod checkpoint;
pub mod tables;
pub mod crawl;
pub mod simulate;

// what watches it, and the way in
pub mod config;
pub mod job;
pub mod progress;
pub mod report;
pub mod audit;
pub mod commands;
