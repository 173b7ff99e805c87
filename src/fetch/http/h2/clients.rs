//! The client that keeps connections for their hosts' next turns, with a bound on how many.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::Client;

use super::{HttpSettings, client};
use crate::fetch::dns::Names;

/// A client whose idle connections are bounded over all hosts.
///
/// The client itself bounds them for each host only: a crawl of many hosts would keep one of each until its time is
/// over, and run out of open files. So the client is let go, and with it whatever is idle in it, when it has opened as
/// many connections as may be idle. A crawl of few hosts never gets there; one of many has little to lose.
pub(super) struct Clients {
    settings: HttpSettings,
    names: Names,
    current: Mutex<Current>,
}

struct Current {
    client: Client,
    opened: usize,
}

impl Clients {
    pub(super) fn new(settings: &HttpSettings, names: &Names) -> Result<Self, String> {
        Ok(Self {
            settings: settings.clone(),
            names: names.clone(),
            current: Mutex::new(Current {
                client: client(settings, names, settings.per_host_connections)?,
                opened: 0,
            }),
        })
    }

    /// The client for a request.
    pub(super) fn current(&self) -> Client {
        self.state().client.clone()
    }

    /// A request opened a connection, which may be idle soon.
    pub(super) fn opened(&self) {
        let mut current = self.state();
        current.opened += 1;
        if current.opened < self.settings.idle_connections {
            return;
        }
        // what could be set up once can be again; if not, the old one goes on
        if let Ok(client) = client(&self.settings, &self.names, self.settings.per_host_connections) {
            *current = Current { client, opened: 0 };
        }
    }

    fn state(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
