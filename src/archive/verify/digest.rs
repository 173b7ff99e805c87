//! Labelled digests: `sha1:BASE32`, or in hexadecimal, as `WARC-Block-Digest` and `WARC-Payload-Digest` have them.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// The algorithms that are known.
#[derive(Clone)]
enum State {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

/// A digest that is computed to be held against one that is said.
#[derive(Clone)]
pub(super) struct Claim {
    state: State,
    said: String,
}

impl Claim {
    /// A claim of a header; `Ok(None)` for an algorithm that is not known, which is no fault.
    pub(super) fn read(text: &str) -> Result<Option<Self>, ()> {
        let (name, value) = text.split_once(':').ok_or(())?;
        let is_value = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
        if name.is_empty() || value.is_empty() || !value.bytes().all(is_value) {
            return Err(());
        }
        let state = match name.to_ascii_lowercase().replace('-', "").as_str() {
            "md5" => State::Md5(Md5::new()),
            "sha1" => State::Sha1(Sha1::new()),
            "sha256" => State::Sha256(Sha256::new()),
            "sha512" => State::Sha512(Box::new(Sha512::new())),
            _ => return Ok(None),
        };
        Ok(Some(Self {
            state,
            said: value.to_owned(),
        }))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Md5(state) => state.update(bytes),
            State::Sha1(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// Is it what was said?
    pub(super) fn holds(self) -> bool {
        let bytes = match self.state {
            State::Md5(state) => state.finalize().to_vec(),
            State::Sha1(state) => state.finalize().to_vec(),
            State::Sha256(state) => state.finalize().to_vec(),
            State::Sha512(state) => state.finalize().to_vec(),
        };
        let said = self.said.trim_end_matches('=');
        said.eq_ignore_ascii_case(&data_encoding::HEXLOWER.encode(&bytes))
            || said.eq_ignore_ascii_case(&data_encoding::BASE32_NOPAD.encode(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, bytes: &[u8]) -> bool {
        let mut claim = Claim::read(text).unwrap().unwrap();
        claim.update(bytes);
        claim.holds()
    }

    #[test]
    fn digests_are_read_in_both_forms_and_any_case() {
        assert!(holds("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", b""));
        assert!(holds("SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709", b""));
        assert!(holds("md5:d41d8cd98f00b204e9800998ecf8427e", b""));
        assert!(holds(
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            b""
        ));
        assert!(!holds("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", b"a"));
        assert!(Claim::read("blake3:abc").unwrap().is_none());
        for wrong in ["", "sha1", "sha1:", ":abc", "sha1:a b"] {
            assert!(Claim::read(wrong).is_err(), "{wrong}");
        }
    }
}
