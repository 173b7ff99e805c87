//! What a page says to crawlers about itself: `meta name=robots` and `X-Robots-Tag`.
//!
//! No standard says it; the words are those that search engines document. What is forbidden adds up: a page that is
//! `noindex` for all and `nofollow` for us is both for us.

/// Directives with a value behind a colon. Any other word before a colon names the crawler that is spoken to.
const WITH_VALUE: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// What is forbidden.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Directives {
    /// `nofollow` or `none`.
    pub nofollow: bool,
    /// `noindex` or `none`.
    pub noindex: bool,
}

impl Directives {
    /// Of a content of `meta` or of an `X-Robots-Tag` line: words between commas (or semicolons), in any case. Behind
    /// the name of a crawler (`otherbot: noindex`) they are for that one, up to the next name; those for others are
    /// left. `agent` is our own name (product token), empty for nobody in particular.
    #[must_use]
    pub fn of(content: &str, agent: &str) -> Self {
        let mut said = Self::default();
        let mut for_us = true;
        for word in content.split([',', ';']) {
            let mut word = word.trim();
            if let Some((name, rest)) = word.split_once(':') {
                let name = name.trim();
                if WITH_VALUE.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                    continue;
                }
                // a date has commas and colons of its own
                if name.is_empty() || name.bytes().any(|b| b.is_ascii_whitespace()) {
                    continue;
                }
                for_us = is_ours(name, agent);
                word = rest.trim();
            }
            if for_us {
                said.add(Self::word(word));
            }
        }
        said
    }

    /// Of `<meta name=NAME content=CONTENT>`; nothing if the name is not `robots` or our own.
    #[must_use]
    pub fn of_meta(name: &str, content: &str, agent: &str) -> Self {
        if is_ours(name.trim(), agent) {
            Self::of(content, agent)
        } else {
            Self::default()
        }
    }

    fn word(word: &str) -> Self {
        let none = word.eq_ignore_ascii_case("none");
        Self {
            nofollow: none || word.eq_ignore_ascii_case("nofollow"),
            noindex: none || word.eq_ignore_ascii_case("noindex"),
        }
    }

    /// Forbids what the other forbids, too.
    pub fn add(&mut self, other: Self) {
        self.nofollow |= other.nofollow;
        self.noindex |= other.noindex;
    }
}

/// Is it the name of all, or ours?
fn is_ours(name: &str, agent: &str) -> bool {
    name == "*" || name.eq_ignore_ascii_case("robots") || (!agent.is_empty() && name.eq_ignore_ascii_case(agent))
}

/// Does a `rel` say that the page does not vouch for the link?
#[must_use]
pub fn is_nofollow(rel: &str) -> bool {
    rel.split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case("nofollow"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(content: &str) -> (bool, bool) {
        let said = Directives::of(content, "OurBot");
        (said.noindex, said.nofollow)
    }

    #[test]
    fn words_add_up_in_any_case() {
        assert_eq!(said("NONE"), (true, true));
        assert_eq!(said(" NoIndex ; nofollow "), (true, true));
        assert_eq!(said("noindex,follow"), (true, false));
        assert_eq!(said("all, index, follow"), (false, false));
        assert_eq!(said("noarchive, nonsense, nofollowing"), (false, false));
        assert_eq!(said(""), (false, false));
    }

    #[test]
    fn what_is_said_to_another_is_not_said_to_us() {
        assert_eq!(said("otherbot: none"), (false, false));
        assert_eq!(said("otherbot: noindex, nofollow"), (false, false));
        assert_eq!(said("ourbot: noindex, nofollow"), (true, true));
        assert_eq!(said("OURBOT:nofollow"), (false, true));
        assert_eq!(said("noindex, otherbot: nofollow"), (true, false));
        assert_eq!(said("otherbot: noindex, ourbot: nofollow"), (false, true));
        assert_eq!(said("*: noindex"), (true, false));
        assert_eq!(Directives::of("ourbot: noindex", ""), Directives::default());
        assert_eq!(Directives::of(": noindex", ""), Directives::default());
    }

    #[test]
    fn directives_with_values_are_no_names() {
        assert_eq!(said("max-snippet: 20, nofollow"), (false, true));
        assert_eq!(said("max-image-preview:large;noindex"), (true, false));
        assert_eq!(
            said("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow"),
            (false, true)
        );
        assert_eq!(said("unavailable_after: 25 Jun 2010 15:00:00 PST"), (false, false));
        assert_eq!(
            said("otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"),
            (false, false)
        );
    }

    #[test]
    fn a_meta_speaks_to_all_or_to_its_name() {
        let said = |name: &str| Directives::of_meta(name, "noindex", "ourbot").noindex;
        assert!(said("robots") && said(" ROBOTS ") && said("OurBot"));
        assert!(!said("otherbot") && !said("description") && !said(""));
        assert!(!Directives::of_meta("", "noindex", "").noindex);
    }

    #[test]
    fn a_rel_among_others_counts() {
        assert!(is_nofollow("noreferrer NoFollow") && is_nofollow("nofollow"));
        assert!(!is_nofollow("ugc sponsored") && !is_nofollow("nofollow-me") && !is_nofollow(""));
    }

    proptest! {
        #[test]
        fn any_text_has_an_outcome(content in "[noindexflw:,; *A-Z\u{e9}0-9]{0,60}", agent in "[a-z]{0,6}") {
            let said = Directives::of(&content, &agent);
            let lower = content.to_ascii_lowercase();
            prop_assert!(!said.noindex || lower.contains("noindex") || lower.contains("none"));
        }
    }
}
