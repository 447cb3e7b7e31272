//! Open connections of clients with a certificate, so that those of a removed authority or a revoked
//! certificate can be closed.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::net::{Shutdown, shutdown};
use rustls::pki_types::CertificateDer;

/// The connections of a listener by their number.
#[derive(Debug, Default)]
pub(super) struct ClientConnections(Arc<Mutex<Connections>>);

#[derive(Debug, Default)]
struct Connections {
    next_number: u64,
    open: HashMap<u64, ClientConnection>,
}

#[derive(Debug, Clone)]
struct ClientConnection {
    chain: Arc<[CertificateDer<'static>]>,
    socket: Arc<OwnedFd>,
}

/// A connection that is closed when its certificate is no longer accepted. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct WatchedConnection {
    number: u64,
    socket: Arc<OwnedFd>,
    connections: Arc<Mutex<Connections>>,
}

impl ClientConnections {
    /// Adds a connection whose client has shown this chain.
    pub(super) fn add(&self, chain: &[CertificateDer<'static>], socket: &Arc<OwnedFd>) -> WatchedConnection {
        let mut connections = lock(&self.0);
        let number = connections.next_number;
        connections.next_number += 1;
        let connection = ClientConnection {
            chain: chain.into(),
            socket: Arc::clone(socket),
        };
        connections.open.insert(number, connection);
        WatchedConnection {
            number,
            socket: Arc::clone(socket),
            connections: Arc::clone(&self.0),
        }
    }

    /// Closes the connections whose chain is not accepted, and returns their number.
    pub(super) fn close_unless(&self, is_accepted: impl Fn(&[CertificateDer<'static>]) -> bool) -> usize {
        // Not under the lock: checking a chain takes some hundred microseconds, and every new connection
        // takes the lock.
        let open: Vec<_> = lock(&self.0).open.values().cloned().collect();
        let refused = open.iter().filter(|connection| !is_accepted(&connection.chain));
        refused.inspect(|connection| close(&connection.socket)).count()
    }
}

impl WatchedConnection {
    pub(super) fn close(&self) {
        close(&self.socket);
    }
}

impl Drop for WatchedConnection {
    fn drop(&mut self) {
        lock(&self.connections).open.remove(&self.number);
    }
}

/// The connection's thread notices that its socket is closed.
fn close(socket: &OwnedFd) {
    if let Err(error) = shutdown(socket, Shutdown::Both) {
        tracing::debug!(error.message = %error, "the connection of a client certificate is closed already");
    }
}

fn lock(connections: &Mutex<Connections>) -> MutexGuard<'_, Connections> {
    connections.lock()
}
