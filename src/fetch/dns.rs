//! Names to addresses, and the guard that keeps a crawl out of private networks.
//!
//! Every connection of the process passes one of two checks, and there is no third way to an address:
//!
//! - **The host of the URL is a name.** `http/dial.rs` asks [`Names::look_up`] and connects
//!   only to what it returns. The answer holds only addresses that the policy allows, whatever a server of names or a pin says, and
//!   it is judged again at every use, cached or not: a name that changes its answer between two look-ups gains nothing.
//! - **The host is an address.** Nobody is asked for it, so `http.rs` judges the parsed host itself before anything
//!   leaves. The URL Standard has by then turned every spelling (decimal, octal,
//!   hexadecimal, shortened, IPv4 inside IPv6) into one of two forms, and a name that ends in a number is no name.
//!
//! As a net below both, the address that the kernel says the connection goes to is judged once more before anything
//! of the answer is used. The one connection that is not judged is that to a proxy, whose address the user named; the
//! targets asked of it are judged as far as they are known here. Redirects are not followed by the client: each is a new request and passes here again.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use super::address::{AddressPolicy, Cidr};

/// Look-ups that may wait for the system's resolver at once. Each holds a thread of the blocking pool.
const LOOKUPS_AT_ONCE: usize = 128;
/// Names remembered at most (about 150 bytes each). Two halves: when the younger is full, the older is forgotten.
const CACHED_NAMES: usize = 16_384;
/// How long an answer is believed.
const BELIEVE_ANSWER: Duration = Duration::from_secs(60);
/// How long a failure is believed: long enough to spare the resolver a burst, shorter than any retry of the crawl.
const BELIEVE_FAILURE: Duration = Duration::from_secs(5);
/// Addresses of one name that are kept; the rest is dropped.
const MAX_ADDRESSES: usize = 32;

/// Why a name gives no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The system's resolver has no answer; its own words.
    #[error("name look-up failed: {0}")]
    Failed(String),
    /// There are addresses, but none may be connected to; the first of them.
    #[error("{0} is not a public address (to crawl it: --allow-address {0}/{bits})", bits = if .0.is_ipv4() { 32 } else { 128 })]
    Private(IpAddr),
    /// The name leads into a private network by definition, and a proxy that looks names up would go there.
    #[error(
        "{0} is a name of private networks (to crawl it: --allow-address with a private range, such as 10.0.0.0/8)"
    )]
    Local(String),
}

/// What the system's resolver said of a name.
type Answer = Result<Arc<[IpAddr]>, String>;

/// The names a crawl asks for: pins first, then a bounded cache, then the system's resolver.
#[derive(Debug, Clone)]
pub struct Names(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    policy: AddressPolicy,
    /// By name in lower case without a closing dot.
    pins: HashMap<String, Vec<(u16, SocketAddr)>>,
    cache: Mutex<Cache>,
    turns: Arc<Semaphore>,
}

impl Names {
    /// `pins` are host, port and the address to use for them, as with `curl --resolve`.
    #[must_use]
    pub fn new(policy: AddressPolicy, pins: &[(String, u16, SocketAddr)]) -> Self {
        let mut by_name: HashMap<String, Vec<(u16, SocketAddr)>> = HashMap::new();
        for (host, port, address) in pins {
            let of_name = by_name.entry(plain(host)).or_default();
            of_name.retain(|(known, _)| known != port); // the last one holds
            of_name.push((*port, *address));
        }
        Self(Arc::new(Inner {
            policy,
            pins: by_name,
            cache: Mutex::default(),
            turns: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)),
        }))
    }

    /// The addresses of a name that may be connected to, in the resolver's order. A pin holds for its port only; where
    /// the port is not known the name's first pin holds. Ports are 0 but for those of pins.
    ///
    /// # Errors
    /// [`NameError`]: no answer, or no allowed address in it.
    pub async fn look_up(&self, name: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, NameError> {
        let name = plain(name);
        let found: Vec<SocketAddr> = match self.pinned(&name, port) {
            Some(pin) => vec![pin],
            None => self
                .answer(name)
                .await?
                .iter()
                .map(|ip| SocketAddr::new(*ip, 0))
                .collect(),
        };
        let allowed: Vec<SocketAddr> = found.iter().copied().filter(|a| self.0.policy.allows(a.ip())).collect();
        match found.first() {
            None => Err(NameError::Failed("no address".to_owned())),
            Some(first) if allowed.is_empty() => Err(NameError::Private(first.ip())),
            Some(_) => Ok(allowed),
        }
    }

    fn pinned(&self, name: &str, port: Option<u16>) -> Option<SocketAddr> {
        let pins = self.0.pins.get(name)?;
        let pin = pins
            .iter()
            .find(|(pinned, _)| port.is_none_or(|port| port == *pinned))?;
        Some(pin.1)
    }

    async fn answer(&self, name: String) -> Result<Arc<[IpAddr]>, NameError> {
        if let Some(v4) = loopback(&name) {
            return Ok(Arc::new([v4, IpAddr::V6(Ipv6Addr::LOCALHOST)]));
        }
        let cached = self.cache().get(&name, Instant::now());
        let answer = if let Some(answer) = cached {
            answer
        } else {
            // a task of its own: the answer reaches the cache even if the request has lost its patience by then
            let names = self.clone();
            let asked = tokio::spawn(async move { names.ask(name).await });
            asked.await.unwrap_or_else(|_| Err("look-up was stopped".to_owned()))
        };
        answer.map_err(NameError::Failed)
    }

    async fn ask(&self, name: String) -> Answer {
        let _turn = self.0.turns.acquire().await;
        let answer = match tokio::net::lookup_host((name.as_str(), 0)).await {
            Ok(found) => Ok(distinct(found.map(|a| a.ip()))),
            Err(e) => Err(words(&e)),
        };
        self.cache().put(name, answer.clone(), Instant::now());
        answer
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        // a cache is right in any state that a panic elsewhere could leave it in
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first [`MAX_ADDRESSES`] different addresses, in order.
fn distinct(found: impl Iterator<Item = IpAddr>) -> Arc<[IpAddr]> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        if addresses.len() < MAX_ADDRESSES && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.into()
}

/// Lower case, without the closing dot: `Example.com.` and `example.com` are one name.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// `localhost` and what ends in it are loopback, and no server of names is to be asked (RFC 6761 section 6.3).
pub(super) fn loopback(name: &str) -> Option<IpAddr> {
    let name = plain(name);
    (name == "localhost" || name.ends_with(".localhost")).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Ends of names that lead into private networks: reserved for them (RFC 6762, RFC 8375, RFC 8880, ICANN's resolution on
/// `internal`), or never given out because they are used there (RFC 6762 appendix G).
const LOCAL_ENDS: [&str; 11] = [
    "local",
    "internal",
    "localdomain",
    "home.arpa",
    "lan",
    "intranet",
    "corp",
    "private",
    "home",
    "mail",
    "svc",
];
/// Loopback by custom of `/etc/hosts`.
const LOOPBACK_NAMES: [&str; 4] = ["ip6-localhost", "ip6-loopback", "localhost6", "loopback"];
/// Metadata services of clouds, whose names end in none of [`LOCAL_ENDS`].
const METADATA_NAMES: [&str; 5] = [
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.azure.com",
];

/// Is this a name that leads into a private network, whoever looks it up? A name of one label does: no public name is
/// one (RFC 7085), and a resolver puts its own domain behind it.
pub(super) fn local(name: &str) -> bool {
    let name = plain(name);
    let ends_in = |end: &str| {
        name.strip_suffix(end)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    !name.contains('.')
        || loopback(&name).is_some()
        || LOOPBACK_NAMES.into_iter().any(ends_in)
        || LOCAL_ENDS.into_iter().any(ends_in)
        || METADATA_NAMES.into_iter().any(ends_in)
}

/// The system's own words, without the standard library's introduction.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ")
        .unwrap_or(&text)
        .to_owned()
}

/// Answers with the time until which they are believed, in two generations.
#[derive(Debug, Default)]
struct Cache {
    young: HashMap<String, (Answer, Instant)>,
    old: HashMap<String, (Answer, Instant)>,
}

impl Cache {
    fn get(&self, name: &str, now: Instant) -> Option<Answer> {
        let (answer, until) = self.young.get(name).or_else(|| self.old.get(name))?;
        (now < *until).then(|| answer.clone())
    }

    fn put(&mut self, name: String, answer: Answer, now: Instant) {
        if self.young.len() >= CACHED_NAMES / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let until = now
            + if answer.is_ok() {
                BELIEVE_ANSWER
            } else {
                BELIEVE_FAILURE
            };
        self.young.insert(name, (answer, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(allow: &[&str], pins: &[(&str, u16, &str)]) -> Names {
        let policy = AddressPolicy {
            allow: allow.iter().map(|r| r.parse().unwrap()).collect(),
        };
        let pins: Vec<_> = pins
            .iter()
            .map(|(h, p, a)| ((*h).to_owned(), *p, a.parse().unwrap()))
            .collect();
        Names::new(policy, &pins)
    }

    #[test]
    fn names_of_private_networks_are_known() {
        for name in [
            "localhost",
            "a.localhost.",
            "ip6-localhost",
            "IP6-Loopback",
            "printer.local",
            "db.INTERNAL",
            "metadata.google.internal",
            "host.localdomain",
            "router.home.arpa",
            "nas.lan",
            "wiki.intranet",
            "x.corp",
            "x.private.",
            "intranet",
            "metadata.goog",
            "metadata",
            "kubernetes.default.svc",
        ] {
            assert!(local(name), "{name}");
        }
        for name in [
            "site.test",
            "local.example.com",
            "notlocal.example",
            "mylan.de",
            "internal.org",
            "a.goog",
        ] {
            assert!(!local(name), "{name}");
        }
    }

    #[tokio::test]
    async fn pins_hold_for_their_port_in_any_spelling_of_the_name() {
        let names = names(
            &["127.0.0.0/8"],
            &[
                ("Site.test", 80, "127.0.0.2:8080"),
                ("site.test", 443, "127.0.0.3:8443"),
                ("dot.test.", 80, "127.0.0.9:80"),
                ("DOT.test", 80, "127.0.0.4:80"),
            ],
        );
        for (name, port, address) in [
            ("site.test", Some(80), "127.0.0.2:8080"),
            ("SITE.TEST.", Some(443), "127.0.0.3:8443"),
            ("site.test", None, "127.0.0.2:8080"),
            ("dot.test", Some(80), "127.0.0.4:80"),
        ] {
            assert_eq!(
                names.look_up(name, port).await,
                Ok(vec![address.parse().unwrap()]),
                "{name}"
            );
        }
    }

    #[tokio::test]
    async fn a_pin_does_not_open_a_private_network() {
        let names = names(&["127.0.0.2"], &[("in.test", 80, "127.0.0.9:80")]);
        let refused = names.look_up("in.test", Some(80)).await.unwrap_err();
        assert_eq!(refused, NameError::Private("127.0.0.9".parse().unwrap()));
        assert!(refused.to_string().contains("--allow-address 127.0.0.9"));
    }

    #[tokio::test]
    async fn names_of_loopback_are_refused_without_a_look_up() {
        for name in ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost."] {
            let refused = names(&[], &[]).look_up(name, Some(80)).await;
            assert_eq!(refused, Err(NameError::Private(Ipv4Addr::LOCALHOST.into())), "{name}");
        }
        let allowed = names(&["127.0.0.0/8"], &[])
            .look_up("localhost", Some(80))
            .await
            .unwrap();
        assert_eq!(
            allowed,
            vec!["127.0.0.1:0".parse().unwrap()],
            "the address that is not allowed is left out"
        );
    }

    #[tokio::test]
    async fn of_a_mixed_answer_only_the_public_addresses_are_given() {
        let names = names(&[], &[]);
        let mixed: Answer = Ok(Arc::new(["10.0.0.1".parse().unwrap(), "1.1.1.1".parse().unwrap()]));
        names.cache().put("mixed.test".to_owned(), mixed, Instant::now());
        assert_eq!(
            names.look_up("mixed.test", Some(80)).await,
            Ok(vec!["1.1.1.1:0".parse().unwrap()])
        );
    }

    #[tokio::test]
    async fn a_failed_look_up_says_what_the_system_says() {
        let failed = names(&[], &[])
            .look_up("no-such-host.invalid", Some(80))
            .await
            .unwrap_err();
        let text = failed.to_string();
        assert!(
            text.starts_with("name look-up failed: ") && !text.contains("failed to lookup"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn look_ups_wait_for_their_turn() {
        let names = names(&[], &[]);
        let all = names
            .0
            .turns
            .acquire_many(u32::try_from(LOOKUPS_AT_ONCE).unwrap())
            .await
            .unwrap();
        let mut waiting = std::pin::pin!(names.look_up("no-such-host.invalid", None));
        assert!(
            tokio::time::timeout(Duration::from_millis(50), &mut waiting)
                .await
                .is_err()
        );
        drop(all);
        assert!(matches!(waiting.await, Err(NameError::Failed(_))));
        assert_eq!(names.0.turns.available_permits(), LOOKUPS_AT_ONCE);
    }

    #[test]
    fn a_name_with_endless_addresses_keeps_a_few() {
        let endless = (0..1_000u32).map(|i| IpAddr::V4(Ipv4Addr::from_bits(i / 2)));
        let kept = distinct(endless);
        assert_eq!(kept.len(), MAX_ADDRESSES);
        assert_eq!(kept[1], IpAddr::V4(Ipv4Addr::new(0, 0, 0, 1)));
    }

    #[test]
    fn the_cache_forgets_in_time_and_stays_small() {
        let mut cache = Cache::default();
        let now = Instant::now();
        let answer: Answer = Ok(Arc::new([IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1))]));
        cache.put("good.test".to_owned(), answer.clone(), now);
        cache.put("bad.test".to_owned(), Err("no".to_owned()), now);
        assert_eq!(cache.get("good.test", now + BELIEVE_ANSWER / 2), Some(answer.clone()));
        assert_eq!(cache.get("good.test", now + BELIEVE_ANSWER), None);
        assert_eq!(
            cache.get("bad.test", now + BELIEVE_FAILURE / 2),
            Some(Err("no".to_owned()))
        );
        assert_eq!(cache.get("bad.test", now + BELIEVE_FAILURE), None);

        for i in 0..3 * CACHED_NAMES {
            cache.put(format!("{i}.test"), answer.clone(), now);
            assert!(cache.young.len() + cache.old.len() <= CACHED_NAMES);
        }
        assert_eq!(cache.get("good.test", now), None, "the oldest went first");
        assert!(
            cache
                .get(&format!("{}.test", 3 * CACHED_NAMES - CACHED_NAMES / 2), now)
                .is_some(),
            "half stays"
        );
    }
}
