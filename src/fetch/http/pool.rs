//! Connections kept for the next request to their origin: bounded for each origin and over all, and for a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::h2::session::Session;
use super::stream::Connection;

/// Read buffers kept for the next exchange. Idle connections have none.
const SPARE_BUFFERS: usize = 64;
/// Largest buffer kept, bytes.
const MAX_SPARE_BYTES: usize = 64 * 1024;

/// A connection by what is spoken over it.
#[derive(Debug)]
pub(super) enum Line {
    H1(Connection),
    H2(Box<Session>),
}

impl Line {
    fn remote(&self) -> Option<IpAddr> {
        match self {
            Self::H1(connection) => connection.remote,
            Self::H2(session) => session.remote,
        }
    }

    fn is_quiet(&mut self) -> bool {
        match self {
            Self::H1(connection) => connection.is_quiet(),
            Self::H2(session) => session.is_quiet(),
        }
    }
}

/// Idle connections.
#[derive(Debug)]
pub(super) struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    spare: Mutex<Vec<BytesMut>>,
    per_origin: usize,
    total: usize,
    timeout: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Each origin's, the oldest first.
    by_origin: HashMap<Arc<str>, VecDeque<Idle>>,
    /// All, the oldest first. All are kept for the same time, so this is also the order in which their time is over.
    by_age: BTreeMap<u64, (Arc<str>, Instant)>,
    next: u64,
    /// A task waits for the oldest one's end.
    watched: bool,
}

#[derive(Debug)]
struct Idle {
    number: u64,
    connection: Line,
}

impl Pool {
    pub(super) fn new(per_origin: usize, total: usize, timeout: Duration) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            spare: Mutex::default(),
            per_origin,
            total,
            timeout,
        }))
    }

    /// The youngest connection of an origin that is still open and silent; if `to` is given, one to that address.
    pub(super) fn take(&self, origin: &str, to: Option<IpAddr>) -> Option<Line> {
        let mut dead = Vec::new(); // closed after the lock
        let mut state = self.0.state();
        state.expire(Instant::now(), self.0.timeout, &mut dead);
        loop {
            let list = state.by_origin.get_mut(origin)?;
            let fits = |idle: &Idle| to.is_none_or(|to| idle.connection.remote() == Some(to));
            let at = list.iter().rposition(fits)?;
            let mut idle = list.remove(at)?;
            if list.is_empty() {
                state.by_origin.remove(origin);
            }
            state.by_age.remove(&idle.number);
            if idle.connection.is_quiet() {
                return Some(idle.connection);
            }
            dead.push(idle.connection);
        }
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(super) fn put(&self, origin: &str, connection: Line) {
        if self.0.per_origin == 0 || self.0.total == 0 {
            return;
        }
        let now = Instant::now();
        let mut dead = Vec::new();
        let mut state = self.0.state();
        state.expire(now, self.0.timeout, &mut dead);
        let number = state.next;
        state.next += 1;
        let (origin, full) = match state.by_origin.get_key_value(origin) {
            Some((known, list)) => (
                Arc::clone(known),
                list.front()
                    .filter(|_| list.len() >= self.0.per_origin)
                    .map(|idle| idle.number),
            ),
            None => (Arc::from(origin), None),
        };
        dead.extend(full.and_then(|number| state.remove(number)));
        while state.by_age.len() >= self.0.total {
            let Some(oldest) = state.by_age.keys().next().copied() else {
                break;
            };
            dead.extend(state.remove(oldest));
        }
        let idle = Idle { number, connection };
        state.by_origin.entry(Arc::clone(&origin)).or_default().push_back(idle);
        state.by_age.insert(number, (origin, now));
        if !std::mem::replace(&mut state.watched, true) {
            tokio::spawn(watch(Arc::downgrade(&self.0), self.0.timeout));
        }
    }

    /// An empty buffer for an exchange.
    pub(super) fn buffer(&self) -> BytesMut {
        lock(&self.0.spare).pop().unwrap_or_default()
    }

    /// A buffer that is done with.
    pub(super) fn spare(&self, mut buffer: BytesMut) {
        buffer.clear();
        buffer.reserve(1); // what was read from its front is room again
        let mut spare = lock(&self.0.spare);
        if spare.len() < SPARE_BUFFERS && buffer.capacity() <= MAX_SPARE_BYTES {
            spare.push(buffer);
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes out what was idle for too long.
    fn expire(&mut self, now: Instant, timeout: Duration, dead: &mut Vec<Line>) {
        while let Some((number, (_, since))) = self.by_age.first_key_value() {
            if now.saturating_duration_since(*since) < timeout {
                return;
            }
            let number = *number;
            dead.extend(self.remove(number));
        }
    }

    fn remove(&mut self, number: u64) -> Option<Line> {
        let (origin, _) = self.by_age.remove(&number)?;
        let list = self.by_origin.get_mut(&origin)?;
        let at = list.iter().position(|idle| idle.number == number)?;
        let idle = list.remove(at)?;
        if list.is_empty() {
            self.by_origin.remove(&origin);
        }
        Some(idle.connection)
    }
}

/// Closes connections when their time is over, also while no request is made. Ends with the last of them.
async fn watch(pool: Weak<Inner>, timeout: Duration) {
    loop {
        let oldest = {
            let Some(pool) = pool.upgrade() else { return };
            let mut dead = Vec::new();
            let mut state = pool.state();
            state.expire(Instant::now(), timeout, &mut dead);
            let Some((_, since)) = state.by_age.values().next() else {
                state.watched = false;
                return;
            };
            *since
        };
        let Some(end) = oldest.checked_add(timeout) else { return };
        tokio::time::sleep_until(end.into()).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::super::stream::Stream;
    use super::*;

    async fn connection(listener: &TcpListener) -> (Line, TcpStream) {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let remote = stream.peer_addr().ok().map(|peer| peer.ip());
        let connection = Connection {
            stream: Stream::Plain(stream),
            remote,
            tls: None,
            cipher: None,
        };
        (Line::H1(connection), server)
    }

    #[tokio::test]
    async fn the_oldest_go_first_and_none_stays_beyond_the_bounds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = Pool::new(2, 3, Duration::from_secs(60));
        let mut servers = Vec::new();
        for origin in ["a", "a", "a", "b", "c", "c"] {
            let (connection, server) = connection(&listener).await;
            pool.put(origin, connection);
            servers.push(server);
            let state = pool.0.state();
            assert!(state.by_age.len() <= 3 && state.by_origin.values().all(|list| list.len() <= 2));
            assert_eq!(
                state.by_age.len(),
                state.by_origin.values().map(VecDeque::len).sum::<usize>()
            );
        }
        assert!(pool.take("a", None).is_none(), "the oldest of all are gone");
        let elsewhere = Some("127.0.0.9".parse().unwrap());
        assert!(pool.take("b", elsewhere).is_none());
        assert!(pool.take("b", Some("127.0.0.1".parse().unwrap())).is_some());
        assert!(pool.take("c", None).is_some() && pool.take("c", None).is_some() && pool.take("c", None).is_none());
        let state = pool.0.state();
        assert!(state.by_age.is_empty() && state.by_origin.is_empty());
    }

    #[tokio::test]
    async fn a_closed_connection_and_one_whose_time_is_over_are_not_given() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = Pool::new(2, 3, Duration::from_millis(50));
        let (closed, server) = connection(&listener).await;
        pool.put("a", closed);
        drop(server);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(pool.take("a", None).is_none());
        let (old, _server) = connection(&listener).await;
        pool.put("a", old);
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(pool.take("a", None).is_none());
        let none = Pool::new(0, 3, Duration::from_secs(1));
        let (unwanted, _server) = connection(&listener).await;
        none.put("a", unwanted);
        assert!(none.take("a", None).is_none());
    }

    #[test]
    fn spare_buffers_are_few_and_small() {
        let pool = Pool::new(1, 1, Duration::ZERO);
        for _ in 0..2 * SPARE_BUFFERS {
            pool.spare(BytesMut::with_capacity(1_024));
        }
        pool.spare(BytesMut::with_capacity(2 * MAX_SPARE_BYTES));
        let spare = lock(&pool.0.spare);
        assert_eq!(spare.len(), SPARE_BUFFERS);
        assert!(spare.iter().all(|buffer| buffer.capacity() <= MAX_SPARE_BYTES));
    }
}
