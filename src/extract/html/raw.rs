//! Where raw text, scripts, comments and CDATA end. Offsets are into the bytes given; each is one pass forward.

use memchr::{memchr, memchr2, memmem};

/// Offset of the `</name` that ends raw text or escapable raw text (an "appropriate end tag"), or the end.
pub(super) fn text_end(bytes: &[u8], name: &[u8]) -> usize {
    let mut at = 0;
    while let Some(lt) = find(bytes, at, b'<') {
        if is_end_tag(bytes, lt, name) {
            return lt;
        }
        at = lt + 1;
    }
    bytes.len()
}

/// What a script's text is inside of (the "script data" states).
#[derive(Clone, Copy, PartialEq)]
enum Script {
    Plain,
    /// After `<!--`.
    Escaped,
    /// After `<script` inside that.
    DoubleEscaped,
}

/// Offset of the `</script` that ends a script, or the end.
pub(super) fn script_end(bytes: &[u8]) -> usize {
    let mut state = Script::Plain;
    let mut at = 0;
    // dashes just before `at`, as far as an arrow needs them
    let mut dashes = 0_u32;
    loop {
        if state == Script::Plain {
            let Some(lt) = find(bytes, at, b'<') else {
                return bytes.len();
            };
            if is_end_tag(bytes, lt, b"script") {
                return lt;
            }
            at = lt + 1;
            if bytes.get(at..).is_some_and(|rest| rest.starts_with(b"!--")) {
                state = Script::Escaped;
                at += 3;
                dashes = 2;
            }
            continue;
        }
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'-') => {
                dashes += 1;
                at += 1;
            }
            Some(b'>') if dashes >= 2 => {
                state = Script::Plain;
                at += 1;
            }
            Some(b'<') => {
                dashes = 0;
                if state == Script::Escaped && is_end_tag(bytes, at, b"script") {
                    return at;
                }
                at += 1;
                if state == Script::Escaped {
                    if let Some(after) = word_end(bytes, at) {
                        state = Script::DoubleEscaped;
                        at = after;
                    }
                } else if bytes.get(at) == Some(&b'/') {
                    at += 1;
                    if let Some(after) = word_end(bytes, at) {
                        state = Script::Escaped;
                        at = after;
                    }
                }
            }
            Some(_) => {
                dashes = 0;
                at = bytes
                    .get(at..)
                    .and_then(|rest| memchr2(b'-', b'<', rest))
                    .map_or(bytes.len(), |next| at + next);
            }
        }
    }
}

/// Behind the word `script` and the character that ends it, if they stand at `at`.
fn word_end(bytes: &[u8], at: usize) -> Option<usize> {
    (starts_with(bytes, at, b"script") && bytes.get(at + 6).is_some_and(|&b| ends_name(b))).then_some(at + 7)
}

/// Whether the `<` at `lt` starts `</name` followed by what ends a tag's name.
fn is_end_tag(bytes: &[u8], lt: usize, name: &[u8]) -> bool {
    bytes.get(lt + 1) == Some(&b'/')
        && starts_with(bytes, lt + 2, name)
        && bytes.get(lt + 2 + name.len()).is_some_and(|&b| ends_name(b))
}

/// Offset behind a comment whose `<!--` has been read.
pub(super) fn comment_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(gt) = find(bytes, at, b'>') {
        let text = bytes.get(..gt).unwrap_or_default();
        // `<!-->` and `<!--->` end at once
        if matches!(text, b"" | b"-") || text.ends_with(b"--") || text.ends_with(b"--!") {
            return gt + 1;
        }
        at = gt + 1;
    }
    bytes.len()
}

/// Offset behind a bogus comment, a doctype, a processing instruction: the first `>`.
pub(super) fn bogus_end(bytes: &[u8]) -> usize {
    memchr(b'>', bytes).map_or(bytes.len(), |gt| gt + 1)
}

/// Offset behind a CDATA section whose start has been read.
pub(super) fn cdata_end(bytes: &[u8]) -> usize {
    memmem::find(bytes, b"]]>").map_or(bytes.len(), |end| end + 3)
}

fn find(bytes: &[u8], from: usize, byte: u8) -> Option<usize> {
    memchr(byte, bytes.get(from..)?).map(|at| from + at)
}

fn starts_with(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    bytes
        .get(at..at + name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// White space, `/` or `>`.
fn ends_name(b: u8) -> bool {
    matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_own_end_tag() {
        for (text, rest) in [
            ("a</style>b", "</style>b"),
            ("</b></STYLE x>", "</STYLE x>"),
            ("</stylex></style/>", "</style/>"),
            ("</style", ""),
            ("< /style><</style\n>", "</style\n>"),
        ] {
            assert_eq!(text.get(text_end(text.as_bytes(), b"style")..), Some(rest), "{text}");
        }
    }

    #[test]
    fn scripts_hide_scripts_in_comments() {
        for (text, rest) in [
            ("x</script>y", "</script>y"),
            ("'</'+'script>'</Script >", "</Script >"),
            ("<!-- <script> </script> --></script>!", "</script>!"),
            ("<!-- </script>!", "</script>!"),
            ("<!--><script></script>!", "</script>!"),
            ("<!---><script></script>!", "</script>!"),
            ("<!--<script></script></script>!", "</script>!"),
            ("<!--<script>--></script>!", "</script>!"),
            ("<!--<script>-- ></script>!</script>", "</script>"),
            ("<!--<scripty></script>!", "</script>!"),
            ("<!--<script>", ""),
            ("<!-</script>", "</script>"),
            ("<!--<script><!--</script>a</script>", "</script>"),
        ] {
            assert_eq!(text.get(script_end(text.as_bytes())..), Some(rest), "{text}");
        }
    }

    #[test]
    fn comments_end_in_odd_ways() {
        for (text, rest) in [
            (">x", "x"),
            ("->x", "x"),
            ("-->x", "x"),
            ("a>b-->x", "x"),
            ("a--!>x", "x"),
            ("a-- >b", ""),
            ("a--!->b-->x", "x"),
            ("-!>b", ""),
            ("<!--->x", "x"),
            ("never", ""),
        ] {
            assert_eq!(text.get(comment_end(text.as_bytes())..), Some(rest), "{text}");
        }
    }
}
