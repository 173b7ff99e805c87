//! Addresses: the only way to make a [`CrawlUrl`]. Holds the `url` crate.
//!
//! A `CrawlUrl` has two spellings. `href` is the address as it was spelled, after WHATWG parsing, without its
//! fragment: it is what is fetched and what the archive names. `canonical` is the identity: what the seen-set hashes.

mod base;
mod canonical;
mod normalize;
pub mod surt;
mod traps;
mod whatwg;

pub use base::Base;
pub use normalize::{CrawlUrl, Identity, MAX_URL_BYTES, Reject, Scheme};
pub use traps::{MAX_REPEATS, repeats_itself};
pub use whatwg::{to_ascii, whatwg_href};
