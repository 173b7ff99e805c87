//! SURT keys: the sort key of a CDXJ line. Lossy by design (case, `www.`, session ids ...) and never the identity.

/// The key of an address as PyPI `surt` and `cdxj-indexer` write it: `com,example)/path?query`.
#[must_use]
pub fn surt(_href: &str) -> String {
    todo!()
}
