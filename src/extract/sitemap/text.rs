//! Bytes → text in pieces: the encoding by byte order mark, header or XML declaration, else UTF-8.

use encoding_rs::{CoderResult, Decoder};

use crate::extract::charset;

/// Bytes looked at for a declaration.
const HEAD: usize = 1_024;
/// Room for transcoded text, bytes.
const ROOM: usize = 16 << 10;

pub(super) struct Text {
    content_type: Option<Vec<u8>>,
    /// The first bytes, until the encoding is told.
    head: Vec<u8>,
    decoder: Option<Decoder>,
    room: String,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Text")
            .field("head", &self.head.len())
            .finish_non_exhaustive()
    }
}

impl Text {
    pub(super) fn new(content_type: Option<&[u8]>) -> Self {
        Self {
            content_type: content_type.map(<[u8]>::to_vec),
            head: Vec::new(),
            decoder: None,
            room: String::new(),
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut dyn FnMut(&str)) {
        if self.decoder.is_some() {
            return self.decode(bytes, false, out);
        }
        let missing = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(missing);
        self.head.extend_from_slice(head);
        if self.head.len() >= HEAD {
            self.begin(out);
            self.decode(rest, false, out);
        }
    }

    /// The bytes have ended.
    pub(super) fn finish(&mut self, out: &mut dyn FnMut(&str)) {
        self.begin(out);
        self.decode(&[], true, out);
    }

    fn begin(&mut self, out: &mut dyn FnMut(&str)) {
        if self.decoder.is_none() {
            let head = std::mem::take(&mut self.head);
            let encoding = charset::of_xml(self.content_type.as_deref(), &head);
            self.decoder = Some(encoding.new_decoder_with_bom_removal());
            self.room.reserve_exact(ROOM);
            self.decode(&head, false, out);
        }
    }

    fn decode(&mut self, bytes: &[u8], last: bool, out: &mut dyn FnMut(&str)) {
        let Some(decoder) = &mut self.decoder else { return };
        let mut rest = bytes;
        loop {
            let (result, used, _) = decoder.decode_to_string(rest, &mut self.room, last);
            if !self.room.is_empty() {
                out(&self.room);
                self.room.clear();
            }
            rest = rest.get(used..).unwrap_or_default();
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    }
}
