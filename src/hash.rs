//! The hash of the crawl: one keyed 128-bit fingerprint a URL, from which every structure takes its bits.
//!
//! `SipHash`-1-3-128 under a random key per job. With a public hash a site can choose URLs that fill the filter or hide a
//! victim; under a secret key it cannot. `FxHash` (through its maintained successor) serves only maps keyed by
//! integers that we hand out ourselves, never text an outsider controls.

use std::fmt;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher13};

/// A map keyed by integers that the crawler itself hands out (host ids, sequence numbers).
pub type IdMap<K, V> = std::collections::HashMap<K, V, fxhash::FxBuildHasher>;

/// 128 bits that stand for one canonical URL under one job's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The half that chooses the place (cache line, shard).
    pub high: u64,
    /// The half that chooses the bits.
    pub low: u64,
}

impl Fingerprint {
    /// Length of the written form in bytes.
    pub const BYTES: usize = 16;

    /// Little-endian, `high` first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&self.high.to_le_bytes());
        low.copy_from_slice(&self.low.to_le_bytes());
        bytes
    }

    /// The inverse of [`Fingerprint::to_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let whole = u128::from_le_bytes(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
        Self {
            high: whole as u64,
            low: (whole >> 64) as u64,
        }
    }
}

/// The secret key of a job. Its `Debug` form does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashKey(pub [u8; 16]);

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

impl HashKey {
    /// A new random key from the operating system.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(key))
    }

    /// The fingerprint of a text.
    #[must_use]
    pub fn fingerprint(&self, text: &[u8]) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(text);
        let hash = hasher.finish128();
        Fingerprint {
            high: hash.h1,
            low: hash.h2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_survives_being_written() {
        let print = HashKey([7; 16]).fingerprint(b"http://example.com/");
        assert_eq!(Fingerprint::from_bytes(print.to_bytes()), print);
    }

    #[test]
    fn another_key_gives_another_fingerprint() {
        let text = b"http://example.com/";
        assert_ne!(HashKey([1; 16]).fingerprint(text), HashKey([2; 16]).fingerprint(text));
        assert_ne!(HashKey::random().unwrap(), HashKey::random().unwrap());
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{:?}", HashKey([9; 16])), "HashKey(secret)");
    }
}
