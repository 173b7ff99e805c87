//! Cookies: RFC 6265 with what its successor (RFC 6265bis) added, as far as it concerns a crawler. Pure: `now` is an
//! argument.
//!
//! A cookie goes to no other site: what a site is, the public suffix list says. `SameSite` is not read: every request
//! of a crawl would be a navigation of its own. `HttpOnly` is not either: nothing here runs scripts.
//!
//! A session cookie (one without an expiry) lives as long as the job.

mod cookie;
mod date;
mod jar;
mod line;
pub mod txt;

pub use cookie::Cookie;
pub use jar::{Change, Jar, MAX_HEADER_BYTES, MAX_JAR_BYTES, MAX_JAR_COOKIES, MAX_SITE_COOKIES};
pub use line::{MAX_ATTRIBUTE_BYTES, MAX_COOKIE_BYTES};
