//! Addresses: the only way to make a [`CrawlUrl`]. Holds the `url` crate.
//!
//! A `CrawlUrl` has two spellings. `href` is the address as it was spelled, after WHATWG parsing, without its
//! fragment: it is what is fetched and what the archive names. `canonical` is the identity: what the seen-set hashes, and nothing but
//! that, because the optional rules may leave an address that nobody serves.

mod base;
mod canonical;
mod hosts;
mod identity;
mod normalize;
mod rules;
mod session;
mod suffix;
mod query;
pub mod surt;
mod whatwg;

pub use base::Base;
pub use hosts::covers_host;
pub use identity::{Identity, MAX_DROP_PARAMS, MAX_PARAM_BYTES, Rules};
pub use normalize::{CrawlUrl, MAX_URL_BYTES, Reject, Scheme};
pub use suffix::{is_address, is_public_suffix, registrable_domain};
pub use whatwg::{to_ascii, whatwg_href};
