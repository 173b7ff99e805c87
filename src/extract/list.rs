//! Plain text that is a list of addresses, one a line.

use super::LinkKind;
use super::address::is_absolute;

/// Calls `found` with each address of a list: a text without any line that is not blank, a comment (`#`) or one absolute
/// address. In other text (prose, code, logs) such a line is a guess, so it is given only if `guesses` are wanted.
pub(super) fn scan<'a>(text: &'a str, guesses: bool, mut found: impl FnMut(LinkKind, &'a str)) {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    // prose ends this at its first line
    let is_list = lines().all(|line| line.starts_with('#') || is_absolute(line));
    let kind = if is_list {
        LinkKind::Navigation
    } else if guesses {
        LinkKind::Speculative
    } else {
        return;
    };
    lines()
        .filter(|line| is_absolute(line))
        .for_each(|line| found(kind, line));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, guesses: bool) -> String {
        let mut words = Vec::new();
        scan(text, guesses, |kind, url| words.push(format!("{}{url}", kind.letter())));
        words.join(" ")
    }

    #[test]
    fn only_a_text_of_nothing_else_is_a_list() {
        let list = "# mine\r\nhttp://a.test/\r\n\r\n  https://b.test/x?y \n";
        assert_eq!(words(list, false), "Lhttp://a.test/ Lhttps://b.test/x?y");
        for text in [
            "see\nhttp://a.test/\n",
            "http://a.test/\nhttp://a.test/ is mine",
            "http://a.test/\nftp://b.test/",
            "User-agent: *\nDisallow:",
            "",
        ] {
            assert_eq!(words(text, false), "", "{text}");
        }
        assert_eq!(words("see\nhttp://a.test/\nand so on", true), "Xhttp://a.test/");
    }
}
