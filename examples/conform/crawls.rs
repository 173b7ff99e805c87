//! Sets that ask what an answer means for the crawl: the real shard and the real visit over answers from a list.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use crawler::clock::Time;
use crawler::extract::{LinkKind, Wanted, extract_for};
use crawler::fetch::body::Spool;
use crawler::fetch::dns::AddressPolicy;
use crawler::fetch::{FetchError, FetchErrorKind, Fetcher, Request, Response};
use crawler::hash::HashKey;
use crawler::politeness::{Patience, http_date, retry_after};
use crawler::robots::product_token;
use crawler::scope::{Scope, ScopeKind, Sitemaps};
use crawler::seen::{self, Kind};
use crawler::shard::{self, End, Link, Next, Shard, What};
use crawler::stats::LinkCounts;
use crawler::url::{CrawlUrl, Identity};
use crawler::visit::judge::Judge;
use crawler::visit::{self, Visited};
use serde_json::{Value, json};

const AGENT: &str = "examplebot";
const KEY: HashKey = HashKey([7; 16]);
/// Steps after which a crawl that should have ended is taken for endless.
const MAX_STEPS: usize = 10_000;
/// Cap on a decoded body, bytes.
const MAX_DECODED: u64 = 16 << 20;

/// What the answers for a robots.txt forbid: asked of the addresses that its own lines name, and of some that none
/// names.
pub(crate) fn robots_fetch(case: &Value) -> Value {
    let answers = case["responses"].as_array().cloned().unwrap_or_default();
    let mut probes = vec!["/".to_owned(), "/named/by/no/line".to_owned()];
    for answer in &answers {
        let text = String::from_utf8_lossy(&body(answer)).into_owned();
        let values = text.lines().filter_map(|line| line.split_once(':'));
        let paths = values.map(|(_, path)| path.trim()).filter(|path| path.starts_with('/'));
        probes.extend(
            paths
                .filter(|path| path.len() < 1_000)
                .map(|path| format!("{path}page")),
        );
    }
    let seeds: Vec<String> = probes.iter().map(|path| format!("http://example.com{path}")).collect();
    let (robots_txt, pages) = (Canned::new(answers), Canned::new(vec![json!({ "status": 200 })]));
    let (mut allowed, mut forbidden) = (0, 0);
    crawl(&seeds, &pages, Some(&robots_txt), |step| {
        match step {
            Step::Page { .. } => allowed += 1,
            Step::Settled => forbidden += 1,
        }
        true
    });
    let mode = match (allowed, forbidden) {
        (_, 0) => "allow_all",
        (0, _) => "disallow_all",
        _ => "rules",
    };
    json!({ "mode": mode })
}

/// Where a chain of redirects ends. A crawler sends no fragment and records none; what a browser would show behind the
/// address is put there again for this set.
pub(crate) fn redirects(case: &Value) -> Value {
    let url = case["url"].as_str().unwrap_or_default();
    let chain = case["chain"].as_array().cloned().unwrap_or_default();
    let answers = chain.iter().map(|hop| match hop[1].as_str() {
        Some(to) => json!({ "status": hop[0], "headers": { "location": to } }),
        None => json!({ "status": hop[0] }),
    });
    let answers = answers.chain([json!({ "status": 200 })]).collect();
    let mut last = None;
    let mut asked = 0;
    crawl(&[url.to_owned()], &Canned::new(answers), None, |step| {
        let Step::Page { url, kind, end } = step else {
            return false;
        };
        if asked > 0 && **kind != LinkKind::Redirect {
            return false; // a link, and no redirect
        }
        asked += 1;
        last = matches!(end, End::Answered { .. }).then(|| url.href().to_owned());
        true
    });
    let fragments = std::iter::once(url).chain(chain.iter().filter_map(|hop| hop[1].as_str()));
    let fragment = fragments.filter_map(|address| address.split_once('#')).next_back();
    let whole = |href: String| fragment.map_or_else(|| href.clone(), |(_, fragment)| format!("{href}#{fragment}"));
    let last = last.filter(|_| asked == chain.len() + 1);
    json!({ "final_url": last.map(whole) })
}

/// Dates of HTTP, and how long a Retry-After asks to wait.
pub(crate) fn dates(case: &Value) -> Value {
    let value = case["value"].as_str().unwrap_or_default();
    let seconds = |time: Time| time.0 / 1_000_000;
    if case["kind"] == "date" {
        return json!({ "epoch": http_date(value).map(seconds) });
    }
    let now = http_date(case["now"].as_str().unwrap_or_default()).unwrap_or_default();
    json!({ "delay_s": retry_after(value.as_bytes(), now).map(|delay| delay.as_secs()) })
}

/// What a page says to a crawler.
pub(crate) fn robots_meta(case: &Value) -> Value {
    let lines = case["x_robots_tag"].as_array().into_iter().flatten();
    let headers: Vec<(String, Vec<u8>)> = lines
        .filter_map(Value::as_str)
        .map(|line| ("x-robots-tag".to_owned(), line.as_bytes().to_vec()))
        .collect();
    let agent = product_token(case["user_agent"].as_str().unwrap_or_default());
    let html = case["html"].as_str().unwrap_or_default();
    let mut text = String::new();
    let wanted = Wanted {
        agent,
        ..Wanted::default()
    };
    let page = extract_for(wanted, 200, Some(b"text/html"), &headers, html.as_bytes(), &mut text);
    json!({ "noindex": page.directives.noindex, "nofollow": page.directives.nofollow })
}

/// What happened in a crawl.
enum Step<'a> {
    /// A page was asked for.
    Page {
        url: &'a CrawlUrl,
        kind: &'a LinkKind,
        end: &'a End,
    },
    /// A page was settled without a request.
    Settled,
}

/// Crawls from these seeds in virtual time until nothing is left, or `seen` has seen enough. `robots_txt` answers for
/// the robots.txt; without it none is asked for.
fn crawl(seeds: &[String], pages: &Canned, robots_txt: Option<&Canned>, mut seen: impl FnMut(&Step<'_>) -> bool) {
    let identity = Identity::default();
    let settings = shard::Settings {
        traps: crawler::traps::Settings::default(),
        patience: Patience {
            delay: Duration::ZERO,
            delay_factor: 0.0,
            max_wait: Duration::from_secs(30),
            backoff_base: Duration::from_secs(1),
            max_failures: 5,
            global_rate: None,
        },
        robots: robots_txt.is_some(),
        agent: AGENT.to_owned(),
        per_host: 1,
        retries: 0,
        max_pages_per_host: None,
        own: crawler::shard::Own::default(),
        per_address: false,
        sitemaps: Sitemaps::No,
        max_sitemap_urls: u64::MAX,
    };
    let spool = tempfile::tempdir().and_then(|home| Ok((Spool::open(home.path())?, home)));
    let (Ok(set), Ok(scope), Ok(runtime), Ok((spool, _home))) = (
        seen::make(Kind::HashSet, KEY, 0, 0.01),
        Scope::new(ScopeKind::Any, &[], &[], None),
        tokio::runtime::Builder::new_current_thread().enable_all().build(),
        spool,
    ) else {
        return;
    };
    let visits = Arc::new(visit::Settings {
        judge: Judge {
            scope: RwLock::new(scope.into()),
            identity: identity.clone(),
            key: KEY,
            requisites: true,
            obey_nofollow: false,
            speculative: false,
            sitemaps: Sitemaps::No,
            traps: crawler::traps::Settings::default(),
            said: crawler::visit::judge::Said::default(),
        },
        archive: false,
        obey_noindex: false,
        max_decoded: MAX_DECODED,
        spool,
        room: visit::Room::default(),
        agent: AGENT.to_owned(),
        fields: None,
        links: false,
        cookies: false,
    });
    let mut shard = Shard::new(settings, set, 1, Time(0));
    let mut now = Time(0);
    let links = seeds.iter().filter_map(|seed| link(seed, &identity)).collect();
    shard.offer_seeds(links, LinkCounts::default(), now);
    for _ in 0..MAX_STEPS {
        match shard.next(now) {
            Next::Start(work) => {
                let page = match &work.what {
                    What::Page { item, .. } => Some(item.clone()),
                    What::Robots(_) | What::Address(_) => None,
                };
                let web = if page.is_some() { Some(pages) } else { robots_txt };
                let web = Arc::new(web.cloned().unwrap_or_default());
                let began = tokio::time::Instant::now();
                let visit = visit::visit(*work, now, began, web, Arc::clone(&visits));
                let Ok(Visited { done, .. }) = runtime.block_on(visit) else {
                    return;
                };
                now = now.max(done.at);
                if let Some(item) = page {
                    let step = Step::Page {
                        url: &item.url,
                        kind: &item.path.kind,
                        end: &done.end,
                    };
                    if !seen(&step) {
                        return;
                    }
                }
                let fact = shard.finish(done, now);
                shard.durable(fact.number);
            }
            Next::Move(fact) => shard.durable(fact.number),
            Next::Settle(settlement) => {
                shard.durable(settlement.fact.number);
                if !seen(&Step::Settled) {
                    return;
                }
            }
            Next::NotBefore(due) => now = due,
            Next::Refill { .. } | Next::Blocked | Next::Lost(_) | Next::Empty => return,
        }
    }
}

fn link(seed: &str, identity: &Identity) -> Option<Link> {
    let url = CrawlUrl::parse(seed, identity).ok()?;
    let print = KEY.fingerprint(url.canonical().as_bytes());
    Some(Link {
        url,
        print,
        kind: LinkKind::Navigation,
        depth: 0,
        requisites: 0,
        redirects: 0,
        outside: false,
        offsite: 0,
        seed: Some(print.high),
        lastmod: None,
        origin: 0,
    })
}

/// Answers in the order of the requests, the last one again and again; whatever is asked for.
#[derive(Clone, Default)]
struct Canned(Arc<(Vec<Value>, AtomicUsize)>);

impl Canned {
    fn new(answers: Vec<Value>) -> Self {
        Self(Arc::new((answers, AtomicUsize::new(0))))
    }
}

impl Fetcher for Canned {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let (answers, asked) = &*self.0;
        let at = asked
            .fetch_add(1, Ordering::Relaxed)
            .min(answers.len().saturating_sub(1));
        let private = request.url.host().parse::<IpAddr>().ok();
        if private.is_some_and(|address| !AddressPolicy::default().allows(address)) {
            return Err(no_answer(FetchErrorKind::PrivateAddress));
        }
        let Some(answer) = answers.get(at) else {
            return Err(no_answer(FetchErrorKind::Connect));
        };
        match answer["error"].as_str() {
            Some("timeout") => return Err(no_answer(FetchErrorKind::Timeout)),
            Some("connection_reset") => return Err(no_answer(FetchErrorKind::Broken)),
            Some(_) => return Err(no_answer(FetchErrorKind::Connect)),
            None => {}
        }
        let headers = answer["headers"].as_object().into_iter().flatten();
        Ok(Response {
            status: answer["status"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or(200),
            head: Vec::new(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str().unwrap_or_default().into()))
                .collect(),
            body: body(answer).into(),
            truncated: None,
            remote: None,
            skipped: None,
            request_head: Vec::new(),
            protocols: Vec::new(),
            cipher: None,
            started: Time(0),
            took: Duration::ZERO,
            repeated: None,
        })
    }

    async fn look_up(&self, _: &CrawlUrl) -> Result<IpAddr, FetchError> {
        Err(no_answer(FetchErrorKind::Dns))
    }
}

fn no_answer(kind: FetchErrorKind) -> FetchError {
    FetchError {
        kind,
        detail: String::new(),
        started: Time(0),
        took: Duration::ZERO,
        repeated: None,
    }
}

/// The body of an answer: `body`, `body_b64`, or `body_parts` of texts and how often they are repeated.
fn body(answer: &Value) -> Vec<u8> {
    if let Some(encoded) = answer["body_b64"].as_str() {
        return data_encoding::BASE64.decode(encoded.as_bytes()).unwrap_or_default();
    }
    let parts = answer["body_parts"].as_array().into_iter().flatten();
    let parts = parts.map(|part| {
        let times = part[1].as_u64().and_then(|times| times.try_into().ok()).unwrap_or(0);
        part[0].as_str().unwrap_or_default().repeat(times)
    });
    let text: String = answer["body"]
        .as_str()
        .map(str::to_owned)
        .into_iter()
        .chain(parts)
        .collect();
    text.into_bytes()
}
