//! The text form: one URL a line.

use super::{Entry, EntryKind, Form, Out, is_blank};
use crate::url::MAX_URL_BYTES;

/// A longer line is no address; its length is not kept, bytes.
const MAX_LINE: usize = 2 * MAX_URL_BYTES;
/// A file without an address in its first bytes is no sitemap.
const PATIENCE: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Lines {
    line: String,
    too_long: bool,
    /// Bytes read, up to the line's start.
    read: u64,
    length: u64,
}

impl Lines {
    /// Takes text. Markup in a file that has given no address yet is handed back from its first `<` on.
    pub(super) fn feed(&mut self, text: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) -> Option<String> {
        let mut rest = text;
        while !rest.is_empty() && !out.over {
            let end = memchr::memchr2(b'\n', b'\r', rest.as_bytes());
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            if out.summary.form.is_none()
                && let Some(at) = part.find('<')
            {
                return rest.get(at..).map(str::to_owned);
            }
            self.length += part.len() as u64;
            if self.line.len() + part.len() <= MAX_LINE {
                self.line.push_str(part);
            } else {
                self.too_long = true;
            }
            rest = after;
            if end.is_some() {
                rest = rest.get(1..).unwrap_or_default();
                self.length += 1;
                self.end_line(out, each);
            }
        }
        None
    }

    pub(super) fn finish(&mut self, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        if !out.over {
            self.end_line(out, each);
        }
    }

    fn end_line(&mut self, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        if out.summary.form.is_none() && self.read > PATIENCE {
            out.over = true;
            return;
        }
        let loc = self.line.trim_matches(is_blank);
        if !self.too_long && is_absolute(loc) {
            out.summary.form = Some(Form::Text);
            let entry = Entry {
                kind: EntryKind::Page,
                loc,
                lastmod: None,
                changefreq: None,
                priority: None,
            };
            out.give(entry, each);
        } else if self.too_long || !loc.is_empty() {
            out.summary.other_lines += 1;
        }
        self.line.clear();
        self.too_long = false;
        self.read += std::mem::take(&mut self.length);
    }
}

/// Begins with `http://` or `https://`.
pub(super) fn is_absolute(text: &str) -> bool {
    let scheme = |scheme: &str| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    scheme("http://") || scheme("https://")
}
