//! Unix sockets in front of the server's, which read the messages of its connections.

mod frames;
mod statement_cutter;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use crate::wait::spawn;

pub use self::frames::{Frame, FrameReader};
pub use self::statement_cutter::{Cut, StatementCutter};

/// Prefix of the socket's file name, before the port.
const SOCKET: &str = ".s.PGSQL.";

/// A socket with the port of the server's, for a client that has its directory as host.
pub struct ProxySocket(TempDir);

impl ProxySocket {
    /// Opens a socket for the server whose socket is in this directory. `relay` gets each connection and the
    /// path of the server's socket.
    pub fn open<R>(
        server: &Path,
        port: u16,
        relay: impl Fn(UnixStream, PathBuf) -> R + Send + 'static,
    ) -> Self
    where
        R: Future<Output = io::Result<()>> + Send + 'static,
    {
        let name = format!("{SOCKET}{port}");
        let directory = tempfile::Builder::new().prefix("vs").tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(&name)).unwrap();
        let server = server.join(name);
        spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let relayed = relay(client, server.clone());
                // A connection closed by either side is not a test failure.
                spawn(async move { drop(relayed.await) });
            }
        });
        Self(directory)
    }

    /// Directory of the socket.
    pub fn directory(&self) -> &Path {
        self.0.path()
    }
}
