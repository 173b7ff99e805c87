//! robots.txt bytes → rules (RFC 9309). Pure.
//!
//! What the standard leaves open is read as the stricter of the customs: a `Crawl-delay` line does not end a list of
//! `User-agent` lines (so the rules that follow hold for all of them), frequent misspellings of `Disallow` count, and
//! of several delays the longest holds.

mod line;
mod pattern;

use std::time::Duration;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use self::line::Field;
use self::pattern::{Pattern, normalized};

/// The largest part of a robots.txt that is parsed, in bytes (RFC 9309 section 2.5 asks for at least 500 KiB).
pub const MAX_ROBOTS_BYTES: usize = 512 * 1024;

/// Redirects in a row that are followed to a robots.txt (RFC 9309 section 2.3.1.2 asks for at least five).
pub const MAX_ROBOTS_REDIRECTS: usize = 5;

/// The longest time a robots.txt may be used without asking again (RFC 9309 section 2.4).
pub const MAX_ROBOTS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest Crawl-delay that is believed; a longer one is cut to it.
pub const MAX_CRAWL_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// `Sitemap` lines that are kept.
pub const MAX_SITEMAPS: usize = 2_000;

const ROBOTS_TXT: &str = "/robots.txt";

/// What the fetch of a robots.txt means (RFC 9309 section 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// The body holds the rules.
    Rules,
    /// There is no robots.txt: all may be fetched.
    AllowAll,
    /// It could not be read: nothing may be fetched until it can.
    DisallowAll,
}

/// What the fetch of a robots.txt means, by the status of the last answer; `None` if there was no answer.
///
/// 4xx is "unavailable" (all allowed), 5xx and silence "unreachable" (nothing allowed). A 3xx that stands at the end
/// was not followed (no `Location`, or the sixth in a row) and counts as unavailable (section 2.3.1.2). 429 says that
/// the host is asked too often, not that it has no rules: it counts as unreachable.
#[must_use]
pub fn meaning(status: Option<u16>) -> Access {
    match status {
        Some(200..=299) => Access::Rules,
        Some(429) => Access::DisallowAll,
        Some(300..=499) => Access::AllowAll,
        _ => Access::DisallowAll,
    }
}

/// The product token of a whole `User-Agent` value: what robots.txt files name.
///
/// It is the name of the first product, or of the one after `(compatible;` behind a `Mozilla/5.0`.
///
/// ```
/// # use crawler::robots::product_token;
/// assert_eq!(product_token("examplebot/1.0 (+https://example.org/bot)"), "examplebot");
/// assert_eq!(product_token("Mozilla/5.0 (compatible; examplebot/1.0; +https://example.org)"), "examplebot");
/// ```
#[must_use]
pub fn product_token(user_agent: &str) -> &str {
    const COMPATIBLE: &str = "(compatible;";
    let trimmed = user_agent.trim();
    let product = match trimmed.split_once(COMPATIBLE) {
        Some((browser, rest)) if browser.starts_with("Mozilla/") => rest.trim_start(),
        _ => trimmed,
    };
    product
        .split(|c: char| matches!(c, '/' | ';' | '(' | ')' | ',') || c.is_whitespace())
        .next()
        .unwrap_or_default()
}

/// The rules of one origin for one user agent.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    disallow_all: bool,
    /// In order of precedence: the first that matches decides.
    rules: Vec<Rule>,
    /// The lines of `rules` as written, one after the other.
    lines: String,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: Pattern,
    allow: bool,
    /// 1-based.
    line_number: u32,
    /// Place in `Robots::lines`.
    line_start: u32,
    line_end: u32,
}

impl Robots {
    /// Parses a robots.txt for the product token `agent` (compared without case).
    ///
    /// Never fails: what is no rule is skipped. Of a longer file the first [`MAX_ROBOTS_BYTES`] count, without the
    /// line that is cut there.
    #[must_use]
    pub fn parse(bytes: &[u8], agent: &str) -> Self {
        let bytes = read_of(bytes, true);
        match Encoding::for_bom(bytes) {
            // not allowed, but written by some editors
            Some((encoding, _)) if encoding == UTF_16LE || encoding == UTF_16BE => {
                let (text, _) = encoding.decode_with_bom_removal(bytes);
                Parser::new(agent).parse(text.as_bytes())
            }
            _ => Parser::new(agent).parse(without_bom(bytes)),
        }
    }

    /// Everything may be fetched (4xx, RFC 9309 section 2.3.1.3).
    #[must_use]
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Nothing may be fetched (5xx or unreachable, section 2.3.1.4).
    #[must_use]
    pub fn disallow_all() -> Self {
        Self {
            disallow_all: true,
            ..Self::default()
        }
    }

    /// May this path (with its query, as in a request line) be fetched? `/robots.txt` itself always may.
    ///
    /// Takes time linear in the path for each rule, whatever wildcards there are.
    #[must_use]
    pub fn allows(&self, path_and_query: &str) -> bool {
        if path_and_query == ROBOTS_TXT {
            return true;
        }
        !self.disallow_all && self.decide(path_and_query).is_none_or(|rule| rule.allow)
    }

    /// The line that decides about this path, as written, with its 1-based number: for `explain` and logs.
    /// `None` if no line does.
    #[must_use]
    pub fn deciding_line(&self, path_and_query: &str) -> Option<(usize, &str)> {
        if path_and_query == ROBOTS_TXT {
            return None;
        }
        let rule = self.decide(path_and_query)?;
        let line = self.lines.get(rule.line_start as usize..rule.line_end as usize)?;
        Some((rule.line_number as usize, line))
    }

    /// The Crawl-delay of the group in force, at most [`MAX_CRAWL_DELAY`].
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The values of the `Sitemap` lines, as written; at most [`MAX_SITEMAPS`].
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Bytes of memory this value holds, for the cache's bound.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let patterns: usize = self.rules.iter().map(|rule| rule.pattern.memory_bytes()).sum();
        let sitemaps: usize = self
            .sitemaps
            .iter()
            .map(|sitemap| size_of::<String>() + sitemap.capacity())
            .sum();
        size_of::<Self>() + self.rules.capacity() * size_of::<Rule>() + patterns + self.lines.capacity() + sitemaps
    }

    fn decide(&self, path_and_query: &str) -> Option<&Rule> {
        let path = if path_and_query.is_empty() { "/" } else { path_and_query };
        let path = normalized(path.as_bytes());
        self.rules.iter().find(|rule| rule.pattern.matches(&path))
    }
}

/// The part of a body that is parsed: all of it, or what ends with the last line that is whole. `whole`: nothing of the
/// file is missing behind `bytes`. A line that is cut is another rule: `Disallow: /` was the start of many.
#[must_use]
pub fn read_of(bytes: &[u8], whole: bool) -> &[u8] {
    if whole && bytes.len() <= MAX_ROBOTS_BYTES {
        return bytes;
    }
    let cut = bytes.get(..MAX_ROBOTS_BYTES).unwrap_or(bytes);
    let whole = cut
        .iter()
        .rposition(|b| matches!(b, b'\n' | b'\r'))
        .map_or(0, |end| end + 1);
    cut.get(..whole).unwrap_or_default()
}

/// Without the byte order mark of UTF-8, also a mutilated one.
fn without_bom(bytes: &[u8]) -> &[u8] {
    let mark = b"\xEF\xBB\xBF";
    let len = bytes.iter().zip(mark).take_while(|(a, b)| a == b).count();
    bytes.get(len..).unwrap_or_default()
}

/// What a list of `User-agent` lines names.
#[derive(Debug, Clone, Copy, Default)]
struct Named {
    us: bool,
    everyone: bool,
}

/// A list of `User-agent` lines: open while only such lines come, then in force until the next list starts.
#[derive(Debug, Default)]
struct AgentList {
    open: bool,
    named: Named,
}

impl AgentList {
    fn add(&mut self, named: Named) {
        if !self.open {
            *self = Self {
                open: true,
                named: Named::default(),
            };
        }
        self.named.us |= named.us;
        self.named.everyone |= named.everyone;
    }

    /// Ends the list and says whom it names.
    fn close(&mut self) -> Named {
        self.open = false;
        self.named
    }
}

/// What was gathered for one kind of group.
#[derive(Debug, Default)]
struct Group {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

impl Group {
    fn delay_at_least(&mut self, delay: Duration) {
        self.crawl_delay = self.crawl_delay.max(Some(delay));
    }
}

struct Parser<'a> {
    agent: &'a str,
    for_rules: AgentList,
    for_delay: AgentList,
    /// Is there a group that names us? Then those for everyone do not count.
    named: bool,
    ours: Group,
    everyones: Group,
    lines: String,
    sitemaps: Vec<String>,
}

impl<'a> Parser<'a> {
    fn new(agent: &'a str) -> Self {
        Self {
            agent: agent.trim(),
            for_rules: AgentList::default(),
            for_delay: AgentList::default(),
            named: false,
            ours: Group::default(),
            everyones: Group::default(),
            lines: String::new(),
            sitemaps: Vec::new(),
        }
    }

    fn parse(mut self, bytes: &[u8]) -> Robots {
        let mut number = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            number += 1;
            self.take(line, number);
            rest = after.strip_prefix(b"\r\n").or(after.get(1..)).unwrap_or_default();
        }
        self.finish()
    }

    fn take(&mut self, line: &[u8], number: u32) {
        let Some((field, value)) = line::parse(line) else {
            return;
        };
        match field {
            Field::UserAgent => {
                let named = Named {
                    us: self.is_us(value),
                    everyone: is_everyone(value),
                };
                self.named |= named.us;
                self.for_rules.add(named);
                self.for_delay.add(named);
            }
            Field::Allow | Field::Disallow => {
                self.for_delay.close();
                let named = self.for_rules.close();
                self.take_rule(named, field == Field::Allow, value, line, number);
            }
            Field::CrawlDelay => {
                let named = self.for_delay.close();
                if let Some(delay) = line::seconds(value) {
                    if named.us {
                        self.ours.delay_at_least(delay);
                    }
                    if named.everyone {
                        self.everyones.delay_at_least(delay);
                    }
                }
            }
            Field::Sitemap => {
                if !value.is_empty() && self.sitemaps.len() < MAX_SITEMAPS {
                    self.sitemaps.push(String::from_utf8_lossy(value).into_owned());
                }
            }
        }
    }

    fn take_rule(&mut self, named: Named, allow: bool, value: &[u8], line: &[u8], number: u32) {
        if !(named.us || named.everyone) || value.is_empty() {
            return;
        }
        let start = self.lines.len();
        self.lines.push_str(String::from_utf8_lossy(line).trim());
        let rule = Rule {
            pattern: Pattern::new(value),
            allow,
            line_number: number,
            line_start: offset(start),
            line_end: offset(self.lines.len()),
        };
        let folder = if allow { Pattern::folder_of_index(value) } else { None };
        let rules = folder
            .map(|pattern| Rule {
                pattern,
                ..rule.clone()
            })
            .into_iter()
            .chain([rule]);
        for rule in rules {
            match (named.us, named.everyone) {
                (true, true) => {
                    self.ours.rules.push(rule.clone());
                    self.everyones.rules.push(rule);
                }
                (true, false) => self.ours.rules.push(rule),
                (false, _) => self.everyones.rules.push(rule),
            }
        }
    }

    /// Names a `User-agent` value us? Its product token does (RFC 9309 section 2.2.1: letters, `-` and `_`), or its
    /// first word where our own name has other characters (`bot9`).
    fn is_us(&self, value: &[u8]) -> bool {
        let agent = self.agent.as_bytes();
        !agent.is_empty()
            && [line::product_prefix(value), line::first_word(value)]
                .iter()
                .any(|name| name.eq_ignore_ascii_case(agent))
    }

    fn finish(self) -> Robots {
        let mut group = if self.named { self.ours } else { self.everyones };
        // longest first, Allow before Disallow (RFC 9309 section 2.2.2)
        group.rules.sort_by_key(|rule| {
            (
                std::cmp::Reverse(rule.pattern.precedence()),
                !rule.allow,
                rule.line_number,
            )
        });
        let mut lines = String::new();
        for rule in &mut group.rules {
            let text = self
                .lines
                .get(rule.line_start as usize..rule.line_end as usize)
                .unwrap_or_default();
            rule.line_start = offset(lines.len());
            lines.push_str(text);
            rule.line_end = offset(lines.len());
        }
        group.rules.shrink_to_fit();
        lines.shrink_to_fit();
        Robots {
            disallow_all: false,
            rules: group.rules,
            lines,
            crawl_delay: group.crawl_delay,
            sitemaps: self.sitemaps,
        }
    }
}

/// `*`, alone or before white space.
fn is_everyone(value: &[u8]) -> bool {
    matches!(value, [b'*'] | [b'*', b' ' | b'\t', ..])
}

fn offset(at: usize) -> u32 {
    // lines are at most MAX_ROBOTS_BYTES long, three times that where bytes that are no UTF-8 were replaced
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn robots(text: &str) -> Robots {
        Robots::parse(text.as_bytes(), "ExampleBot")
    }

    #[test]
    fn the_longest_match_decides_and_allow_wins_a_tie() {
        let robots = robots("user-agent: *\ndisallow: /a\nallow: /a/b\ndisallow: /a/b/c\nallow: /t\ndisallow: /t\n");
        for (path, allowed) in [
            ("/", true),
            ("/a", false),
            ("/a/b", true),
            ("/a/b/c?d", false),
            ("/a/bx", true),
            ("/t", true),
            ("", true),
        ] {
            assert_eq!(robots.allows(path), allowed, "{path}");
        }
        assert_eq!(robots.deciding_line("/a/b/c"), Some((4, "disallow: /a/b/c")));
        assert_eq!(robots.deciding_line("/t"), Some((5, "allow: /t")));
        assert_eq!(robots.deciding_line("/none"), None);
    }

    #[test]
    fn groups_that_name_us_are_merged_and_outrank_those_for_everyone() {
        let text = "User-agent: *\nDisallow: /\nCrawl-delay: 9\n\n\
                    user-agent: EXAMPLEBOT/2.0\nuser-agent: other\n\ndisallow: /one\nsitemap: s\n\
                    user-agent: examplebotnot\ndisallow: /not\n\
                    user-agent: examplebot\ndisallow: /two\n";
        let robots = robots(text);
        for (path, allowed) in [("/", true), ("/one", false), ("/two", false), ("/not", true)] {
            assert_eq!(robots.allows(path), allowed, "{path}");
        }
        assert_eq!(robots.crawl_delay(), None);
        let other = Robots::parse(text.as_bytes(), "unnamed");
        assert!(!other.allows("/"));
        assert_eq!(other.crawl_delay(), Some(Duration::from_secs(9)));
    }

    #[test]
    fn a_group_without_rules_allows_all() {
        let robots = robots("user-agent: *\ndisallow: /\nuser-agent: examplebot\ndisallow:\n");
        assert!(robots.allows("/x"));
    }

    #[test]
    fn names_with_digits_are_compared_whole() {
        let text = b"user-agent: bot1\ndisallow: /one\nuser-agent: bot2\ndisallow: /two\n";
        assert!(!Robots::parse(text, "bot1").allows("/one"));
        assert!(Robots::parse(text, "bot1").allows("/two"));
        assert!(Robots::parse(text, "bot3").allows("/one"));
        assert!(!Robots::parse(text, "bot").allows("/one"));
        assert!(Robots::parse(text, "").allows("/one"));
    }

    #[test]
    fn a_delay_ends_no_list_of_agents_and_the_longest_counts() {
        let text = b"user-agent: a\ncrawl-delay: 2\nuser-agent: b\ndisallow: /x\ncrawl-delay: 3\ncrawl-delay: 1\n";
        let (a, b) = (Robots::parse(text, "a"), Robots::parse(text, "b"));
        assert!(!a.allows("/x") && !b.allows("/x"));
        assert_eq!(
            (a.crawl_delay(), b.crawl_delay()),
            (Some(Duration::from_secs(2)), Some(Duration::from_secs(3)))
        );
        let long = Robots::parse(b"user-agent: *\ncrawl-delay: 1e9\n", "a");
        assert_eq!(long.crawl_delay(), Some(MAX_CRAWL_DELAY));
    }

    #[test]
    fn lines_end_in_any_way_and_marks_before_them_are_skipped() {
        for text in [
            &b"user-agent: *\r\ndisallow: /x\r\n"[..],
            b"user-agent: *\rdisallow: /x",
            b"\xEF\xBB\xBFuser-agent: *\ndisallow: /x\n",
            b"\xEF\xBBuser-agent: *\n\n\r\r\n disallow:/x#y\n",
            b"\xFF\xFEu\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0d\0i\0s\0a\0l\0l\0o\0w\0:\0/\0x\0\n\0",
            b"disallow: /y\nuser-agent: * (all)\njunk\n<html>\nnoindex: /\ndisallow: /x\n",
        ] {
            let robots = Robots::parse(text, "a");
            assert!(!robots.allows("/x") && robots.allows("/y"), "{}", text.escape_ascii());
        }
        assert_eq!(
            robots("user-agent: *\r\n\r\ndisallow: /x").deciding_line("/x"),
            Some((3, "disallow: /x"))
        );
    }

    #[test]
    fn robots_txt_itself_is_always_allowed() {
        let robots = robots("user-agent: *\ndisallow: /\n");
        assert!(robots.allows("/robots.txt") && Robots::disallow_all().allows("/robots.txt"));
        assert!(!robots.allows("/robots.txt?x"));
        assert_eq!(robots.deciding_line("/robots.txt"), None);
    }

    #[test]
    fn an_allowed_index_page_is_allowed_as_its_folder_too() {
        let robots = robots("user-agent: *\nallow: /a/index.html\ndisallow: /\n");
        for (path, allowed) in [("/a/index.html", true), ("/a/", true), ("/a/b", false), ("/a", false)] {
            assert_eq!(robots.allows(path), allowed, "{path}");
        }
    }

    #[test]
    fn all_or_nothing() {
        assert!(Robots::allow_all().allows("/x") && !Robots::disallow_all().allows("/x"));
        assert_eq!(Robots::disallow_all().deciding_line("/x"), None);
    }

    #[test]
    fn what_an_answer_to_the_fetch_means() {
        for (status, access) in [
            (Some(200), Access::Rules),
            (Some(204), Access::Rules),
            (Some(301), Access::AllowAll),
            (Some(401), Access::AllowAll),
            (Some(403), Access::AllowAll),
            (Some(404), Access::AllowAll),
            (Some(429), Access::DisallowAll),
            (Some(500), Access::DisallowAll),
            (Some(599), Access::DisallowAll),
            (Some(101), Access::DisallowAll),
            (Some(999), Access::DisallowAll),
            (None, Access::DisallowAll),
        ] {
            assert_eq!(meaning(status), access, "{status:?}");
        }
    }

    #[test]
    fn the_token_of_a_user_agent() {
        for (user_agent, token) in [
            ("examplebot", "examplebot"),
            (" Example-Bot_x/1.0 (+https://example.org)", "Example-Bot_x"),
            (
                "Mozilla/5.0 (compatible; examplebot/1.0; +https://example.org)",
                "examplebot",
            ),
            ("Mozilla/5.0 (compatible;examplebot)", "examplebot"),
            ("Mozilla/5.0 (X11; Linux)", "Mozilla"),
            ("bot9/1", "bot9"),
            ("", ""),
        ] {
            assert_eq!(product_token(user_agent), token, "{user_agent}");
        }
    }

    #[test]
    fn only_whole_lines_within_the_limit_count() {
        let line = b"disallow: /late\n";
        let mut text = b"user-agent: *\ndisallow: /early\n".to_vec();
        text.resize(MAX_ROBOTS_BYTES - line.len(), b'\n');
        text.extend_from_slice(line);
        assert_eq!(text.len(), MAX_ROBOTS_BYTES);
        let whole = Robots::parse(&text, "a");
        assert!(!whole.allows("/early") && !whole.allows("/late"));
        text.insert(0, b'\n');
        let cut = Robots::parse(&text, "a");
        assert!(!cut.allows("/early") && cut.allows("/late"));
        assert!(Robots::parse(&vec![b'a'; 2 * MAX_ROBOTS_BYTES], "a").allows("/"));
        // a line across the limit
        let last = text.len() - line.len();
        text.truncate(last);
        text.insert(0, b'\n');
        text.extend_from_slice(b"disallow: /private\n");
        assert!(text.len() > MAX_ROBOTS_BYTES);
        let across = Robots::parse(&text, "a");
        assert!(!across.allows("/early") && across.allows("/private") && across.allows("/"));
        // a file of which the rest never came
        assert_eq!(read_of(b"user-agent: *\ndisallow: /", false), b"user-agent: *\n");
        assert_eq!(read_of(b"disallow: /", false), b"");
        assert_eq!(read_of(b"disallow: /", true), b"disallow: /");
    }

    #[test]
    fn sitemaps_belong_to_no_group_and_are_bounded() {
        let robots = robots("sitemap: https://h/1.xml\nuser-agent: other\nSitemap: /2.xml # two\nsitemap:\n");
        assert_eq!(robots.sitemaps(), ["https://h/1.xml", "/2.xml"]);
        let many = Robots::parse("sitemap:x\n".repeat(MAX_SITEMAPS + 1).as_bytes(), "a");
        assert_eq!(many.sitemaps().len(), MAX_SITEMAPS);
    }

    #[test]
    fn its_memory_is_bounded_by_the_file() {
        let text = format!("user-agent: *\n{}", "disallow:/\u{e9}\n".repeat(100_000));
        let robots = Robots::parse(text.as_bytes(), "a");
        assert!(robots.memory_bytes() > robots.rules.len() * size_of::<Rule>());
        assert!(
            robots.memory_bytes() < 10 * MAX_ROBOTS_BYTES,
            "{}",
            robots.memory_bytes()
        );
        assert!(!robots.allows("/%C3%A9"));
    }

    /// The standard's rule for rules without wildcards, at any cost.
    fn reference(rules: &[(bool, String)], path: &str) -> bool {
        let longest = rules
            .iter()
            .filter(|(_, prefix)| path.starts_with(prefix.as_str()))
            .map(|(_, prefix)| prefix.len())
            .max();
        longest.is_none_or(|len| {
            rules
                .iter()
                .any(|(allow, prefix)| *allow && prefix.len() == len && path.starts_with(prefix.as_str()))
        })
    }

    proptest! {
        #[test]
        fn rules_decide_as_the_standard_says(
            rules in prop::collection::vec((any::<bool>(), "/[ab/]{0,4}"), 0..8),
            path in "/[ab/]{0,6}",
        ) {
            let mut text = "user-agent: examplebot\n".to_owned();
            for (allow, prefix) in &rules {
                text.push_str(if *allow { "allow: " } else { "disallow: " });
                text.push_str(prefix);
                text.push('\n');
            }
            prop_assert_eq!(robots(&text).allows(&path), reference(&rules, &path), "{}", text);
        }

        #[test]
        fn any_bytes_give_rules(bytes in any::<Vec<u8>>(), path in any::<String>()) {
            let text = [b"user-agent:*\ndisallow:".as_slice(), &bytes].concat();
            for robots in [Robots::parse(&bytes, "a"), Robots::parse(&text, "a")] {
                let _ = robots.allows(&path);
                let line = robots.deciding_line(&path);
                prop_assert!(line.is_none_or(|(number, text)| number > 0 && !text.is_empty()));
            }
        }
    }
}
