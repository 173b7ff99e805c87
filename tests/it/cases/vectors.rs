//! Inputs with their answers, no server: judged by the crawler's own functions.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use crawler::archive::read;
use crawler::extract::{self, Links};
use crawler::fetch::dns::{AddressPolicy, Names};
use crawler::robots::Robots;
use crawler::url::{Base, CrawlUrl, Identity, Rules, whatwg_href};
use serde_json::Value;

use super::expect::strings;
use super::format::Case;
use super::judge::guarded;
use super::parts::{Fill, whole};

/// The complaints about a case's vectors.
pub(crate) fn complaints(case: &Case) -> Vec<String> {
    let fill = Fill::of(case, 80);
    let folder = tempfile::tempdir().unwrap();
    for file in &case.files {
        let path = folder.path().join(&file.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, whole(&file.content, &fill)).unwrap();
    }
    let judge = |vector: &Value| match vector["op"].as_str().unwrap() {
        "robots" => robots(vector, &fill),
        "resolve" => resolve(vector),
        "same" => same(case, vector),
        "address" => address(vector),
        "links" => links(vector, &fill),
        "warc" => warc(vector, folder.path()),
        other => panic!("unknown vector: {other}"),
    };
    case.vectors
        .iter()
        .flat_map(|vector| guarded("vector", || judge(vector)))
        .collect()
}

fn robots(vector: &Value, fill: &Fill<'_>) -> Vec<String> {
    let bytes = whole(&vector["robots"], fill);
    let rules = Robots::parse(&bytes, vector["agent"].as_str().unwrap());
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let mut bad = Vec::new();
    for check in vector["checks"].as_array().into_iter().flatten() {
        let path = check[0].as_str().unwrap();
        let began = Instant::now();
        if Some(rules.allows(path)) != check[1].as_bool() {
            bad.push(format!("{path} should be {} by {:?}", check[1], shown()));
        }
        if began.elapsed() > Duration::from_secs(1) {
            bad.push(format!("{path} took {:?}", began.elapsed()));
        }
    }
    if let Some(delay) = vector.get("crawl_delay")
        && rules.crawl_delay().map(|delay| delay.as_secs_f64()) != delay.as_f64()
    {
        bad.push(format!("Crawl-delay {:?}, expected {delay}", rules.crawl_delay()));
    }
    if let Some(sitemaps) = vector.get("sitemaps")
        && !rules.sitemaps().iter().map(String::as_str).eq(strings(sitemaps))
    {
        bad.push(format!("sitemaps {:?}, expected {sitemaps}", rules.sitemaps()));
    }
    bad
}

fn resolve(vector: &Value) -> Vec<String> {
    let (base, href) = (vector["base"].as_str(), vector["href"].as_str().unwrap());
    let wanted = vector["url"].as_str();
    let mut bad = Vec::new();
    let got = whatwg_href(href, base);
    if got.as_deref() != wanted {
        bad.push(format!("{href:?} on {base:?} gives {got:?}, expected {wanted:?}"));
    }
    // what is crawled is the same without its fragment and without a user's name, which is never sent (RFC 9110
    // section 4.2.4)
    let identity = Identity::default();
    let crawled = match base {
        Some(base) => {
            let page = CrawlUrl::parse(base, &identity).unwrap();
            CrawlUrl::join(&Base::of(&page, None), href, &identity)
        }
        None => CrawlUrl::parse(href, &identity),
    };
    let crawled = crawled.ok();
    let plain = wanted.map(|url| {
        let url = url.split('#').next().unwrap();
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, path) = rest.split_at(rest.find('/').unwrap());
        format!("{scheme}://{}{path}", authority.rsplit('@').next().unwrap())
    });
    if crawled.as_ref().map(CrawlUrl::href) != plain.as_deref() {
        bad.push(format!(
            "{href:?} on {base:?} is crawled as {crawled:?}, expected {plain:?}"
        ));
    }
    if vector["stable"] == true
        && let Some(url) = crawled
    {
        let again = CrawlUrl::parse(url.href(), &identity).ok();
        if again.as_ref() != Some(&url) {
            bad.push(format!("{} becomes {again:?}", url.href()));
        }
    }
    bad
}

fn same(case: &Case, vector: &Value) -> Vec<String> {
    let identity = Identity::with(Rules {
        strip_session_ids: case.settings.get("strip_session_ids").is_some_and(|on| *on == true),
        ..Rules::default()
    });
    let page = |name: &str| CrawlUrl::parse(vector[name].as_str().unwrap(), &identity).unwrap();
    let (a, b) = (page("a"), page("b"));
    if Some(a.canonical() == b.canonical()) == vector["same"].as_bool() {
        return Vec::new();
    }
    vec![format!(
        "{} and {} should be the same: {}",
        a.canonical(),
        b.canonical(),
        vector["same"]
    )]
}

/// Judged as a connection is: an address by the policy, a name by the guarded look-up.
fn address(vector: &Value) -> Vec<String> {
    let host = vector["host"].as_str().unwrap();
    let blocked = match CrawlUrl::parse(&format!("http://{host}/"), &Identity::default()) {
        Ok(url) => {
            let bare = url.host().trim_start_matches('[').trim_end_matches(']');
            let policy = AddressPolicy::default();
            if let Ok(address) = bare.parse() {
                !policy.allows(address)
            } else {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let names = Names::new(policy, &[]);
                runtime.unwrap().block_on(names.look_up(url.host(), Some(80))).is_err()
            }
        }
        Err(_) => true, // what is no host is never connected to
    };
    if Some(blocked) == vector["blocked"].as_bool() {
        return Vec::new();
    }
    vec![format!("{host} is blocked: {blocked}, expected {}", vector["blocked"])]
}

fn links(vector: &Value, fill: &Fill<'_>) -> Vec<String> {
    let body = whole(&vector["body"], fill);
    let identity = Identity::default();
    let page = CrawlUrl::parse(vector["base"].as_str().unwrap(), &identity).unwrap();
    let began = Instant::now();
    let mut text = String::new();
    let content_type = vector["content_type"].as_str().map(str::as_bytes);
    let found = extract::extract(200, content_type, &[], &body, &mut text);
    let took = began.elapsed();
    let mut urls = Vec::new();
    resolved(&page, &found, &mut urls);
    let has = |url: &str| urls.iter().any(|own| own == url);
    let missing = strings(&vector["links"])
        .filter(|url| !has(url))
        .map(|url| format!("not found: {url}"));
    let extra = strings(&vector["not_links"])
        .filter(|url| has(url))
        .map(|url| format!("must not be found: {url}"));
    let mut bad: Vec<String> = missing.chain(extra).collect();
    if vector["max_ms"]
        .as_u64()
        .is_some_and(|most| took > Duration::from_millis(most))
    {
        bad.push(format!("took {took:?}"));
    }
    bad
}

fn resolved(page: &CrawlUrl, links: &Links<'_>, urls: &mut Vec<String>) {
    let identity = Identity::default();
    let base = Base::in_page(page, links.base.as_deref(), links.encoding);
    let found = links
        .links
        .iter()
        .filter_map(|link| CrawlUrl::join(&base, &link.raw, &identity).ok());
    urls.extend(found.map(|url| url.href().to_owned()));
    links.frames.iter().for_each(|frame| resolved(page, frame, urls));
}

fn warc(vector: &Value, folder: &Path) -> Vec<String> {
    let name = vector["file"].as_str().unwrap();
    let file = BufReader::new(File::open(folder.join(name)).unwrap());
    let (mut whole_records, mut clean_end) = (0, true);
    for record in read::members(file, 1024) {
        match record {
            Ok(_) => whole_records += 1,
            Err(_) => clean_end = false,
        }
    }
    let got = (Some(whole_records), Some(clean_end));
    if got == (vector["whole_records"].as_u64(), vector["clean_end"].as_bool()) {
        return Vec::new();
    }
    vec![format!("{name}: {whole_records} whole records, clean end: {clean_end}")]
}
