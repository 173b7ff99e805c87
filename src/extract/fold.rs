//! Text with its white space folded, within a bound.

/// Gathers text: runs of white space become one space, none stands at the ends, and no more is kept than asked for.
#[derive(Debug, Clone)]
pub(super) struct Folded {
    text: String,
    most: usize,
    left: usize,
    gap: Option<char>,
    /// Characters up to here, those too many included.
    chars: u64,
}

impl Folded {
    /// At most so many characters.
    pub(super) fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            most,
            left: most,
            gap: None,
            chars: 0,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                self.space();
                continue;
            }
            if let Some(gap) = self.gap.take() {
                self.keep(gap);
            }
            self.keep(c);
        }
    }

    fn keep(&mut self, c: char) {
        self.chars += 1;
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.text.push(c);
        }
    }

    /// What follows is another word.
    pub(super) fn space(&mut self) {
        if self.chars > 0 {
            self.gap.get_or_insert(' ');
        }
    }

    /// What follows is another line.
    pub(super) fn line(&mut self) {
        if self.chars > 0 {
            self.gap = Some('\n');
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chars == 0
    }

    /// Characters of the whole text.
    pub(super) fn chars(&self) -> u64 {
        self.chars
    }

    /// There was more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.chars > (self.most - self.left) as u64
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A text folded, and whether it was cut.
pub(super) fn fold(text: &str, most: usize) -> (String, bool) {
    let mut folded = Folded::new(most);
    folded.push(text);
    let cut = folded.is_cut();
    (folded.into_text(), cut)
}

/// Elements that stand within a line: text before and after them may be one word (HTML Standard, section 15.3; CSS
/// `display: inline`). All others part words.
pub(super) fn is_inline(element: &str) -> bool {
    const INLINE: [&str; 48] = [
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del", "dfn", "em", "embed",
        "font", "i", "img", "ins", "kbd", "label", "mark", "math", "meter", "nobr", "output", "picture", "progress",
        "q", "rb", "rt", "rtc", "ruby", "s", "samp", "script", "small", "source", "span", "strike", "strong", "sub",
        "sup", "svg", "time", "tt", "u", "var",
    ];
    // tags of pages are mostly in lower case already
    INLINE.contains(&element)
        || INLINE.iter().any(|name| name.eq_ignore_ascii_case(element))
        || element.eq_ignore_ascii_case("wbr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_folded_and_the_rest_counted() {
        assert_eq!(fold(" a \u{a0}\n b ", 9), ("a b".to_owned(), false));
        assert_eq!(fold("abc", 3), ("abc".to_owned(), false));
        assert_eq!(fold("abc ", 3), ("abc".to_owned(), false));
        assert_eq!(fold("abc d", 3), ("abc".to_owned(), true));
        let mut lines = Folded::new(4);
        lines.line();
        lines.push("a");
        lines.space();
        lines.line();
        lines.push(" b");
        lines.line();
        lines.push("cd");
        assert_eq!((lines.chars(), lines.is_cut()), (6, true));
        assert_eq!(lines.into_text(), "a\nb\n");
    }

    #[test]
    fn lines_are_made_of_inline_elements() {
        for name in ["a", "B", "span", "wbr", "var", "STRONG"] {
            assert!(is_inline(name), "{name}");
        }
        for name in ["p", "br", "td", "h1", "x-card", ""] {
            assert!(!is_inline(name), "{name}");
        }
    }
}
