//! Addresses: the only way to make a [`CrawlUrl`]. Holds the `url` crate.
//!
//! A `CrawlUrl` has two spellings. `href` is the address as it was spelled, after WHATWG parsing, without its
//! fragment: it is what is fetched and what the archive names. `canonical` is the identity: what the seen-set hashes.

mod normalize;
pub mod surt;

pub use normalize::{Base, CrawlUrl, Identity, Reject, Scheme};
