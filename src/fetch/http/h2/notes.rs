//! What the client does about connections, seen from outside: one attempt's notes, and our resolver in its place.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tower_layer::Layer;
use tower_service::Service;

use super::super::super::dns::{NameError, Names};

tokio::task_local! {
    /// The attempt whose request the current task is making.
    static ATTEMPT: Arc<Attempt>;
}

/// What is known of one request's connection.
#[derive(Debug)]
pub(in super::super) struct Attempt {
    /// The port asked for: pins hold for one port, and the client's resolver is told names only.
    port: Option<u16>,
    /// The only address that may be connected to, if one was chosen.
    to: Option<IpAddr>,
    connecting: AtomicBool,
    connected: AtomicBool,
}

impl Attempt {
    pub(in super::super) fn new(port: Option<u16>, to: Option<IpAddr>) -> Arc<Self> {
        Arc::new(Self {
            port,
            to,
            connecting: AtomicBool::new(false),
            connected: AtomicBool::new(false),
        })
    }

    /// A connection was begun and not made.
    pub(in super::super) fn stuck_connecting(&self) -> bool {
        self.connecting.load(Relaxed) && !self.connected.load(Relaxed)
    }

    /// The request went out on a connection that was not made for it.
    pub(in super::super) fn reused(&self) -> bool {
        !self.connected.load(Relaxed)
    }
}

/// Runs a request so that its connection is noted in `attempt`.
pub(in super::super) fn noting<F: Future>(attempt: &Arc<Attempt>, request: F) -> impl Future<Output = F::Output> {
    ATTEMPT.scope(Arc::clone(attempt), request)
}

/// Puts [`NoteConnect`] around the client's connector.
#[derive(Debug, Clone)]
pub(in super::super) struct NoteLayer;

impl<S> Layer<S> for NoteLayer {
    type Service = NoteConnect<S>;

    fn layer(&self, inner: S) -> Self::Service {
        NoteConnect(inner)
    }
}

/// Notes when a connection is begun and made. The client polls the connector in the task of the request that wants
/// it; if a kept connection comes free first, the rest of connecting moves to a task of its own, where there is no
/// attempt to note anything in. So "connected" means: this request got this new connection.
#[derive(Debug, Clone)]
pub(in super::super) struct NoteConnect<S>(S);

impl<S, R> Service<R> for NoteConnect<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // ignored where there is no attempt: then nobody asks
        let _ = ATTEMPT.try_with(|attempt| attempt.connecting.store(true, Relaxed));
        let connecting = self.0.call(request);
        Box::pin(async move {
            let connection = connecting.await?;
            let _ = ATTEMPT.try_with(|attempt| attempt.connected.store(true, Relaxed));
            Ok(connection)
        })
    }
}

/// [`Names`] as the client's resolver.
#[derive(Debug)]
pub(in super::super) struct Resolver(pub(in super::super) Names);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.0.clone();
        let asked = ATTEMPT.try_with(|attempt| (attempt.port, attempt.to));
        let (port, to) = asked.unwrap_or_default();
        Box::pin(async move {
            let mut found = names.look_up(name.as_str(), port).await?;
            if let Some(to) = to {
                // an address that the name has no more keeps its turn, if it may be connected to
                if !names.allows(to) {
                    return Err(NameError::Private(to).into());
                }
                let known = found.iter().find(|address| address.ip() == to);
                found = vec![known.copied().unwrap_or_else(|| SocketAddr::new(to, 0))];
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
