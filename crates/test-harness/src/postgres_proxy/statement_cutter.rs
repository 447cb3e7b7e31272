//! Proxy that ends all connections of a program at one of its statements, as a kill would.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::postgres::PgConnectOptions;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::{Frame, FrameReader, ProxySocket};

/// When a program is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Before the server receives the statement.
    BeforeStatement,
    /// After the server has run it, before the program receives the response.
    AfterStatement,
}

/// A proxy that counts the statements of all its connections.
pub struct StatementCutter {
    socket: ProxySocket,
    options: PgConnectOptions,
    state: Arc<CutterState>,
}

struct CutterState {
    statements: AtomicUsize,
    cut_at: usize,
    cut: Cut,
    is_cut: watch::Sender<bool>,
}

impl StatementCutter {
    /// Opens a proxy to the server of these options, which cuts the statement with this number, from 1.
    pub fn open(options: &PgConnectOptions, cut_at: usize, cut: Cut) -> Self {
        let state = Arc::new(CutterState {
            statements: AtomicUsize::new(0),
            cut_at,
            cut,
            is_cut: watch::Sender::new(false),
        });
        let relay = {
            let state = Arc::clone(&state);
            move |client, server| {
                let is_cut = state.is_cut.subscribe();
                Arc::clone(&state).relay(client, server, is_cut)
            }
        };
        let server = options.get_socket().expect("the server has a Unix socket");
        let socket = ProxySocket::open(server, options.get_port(), relay);
        Self {
            options: options.clone().socket(socket.directory()),
            socket,
            state,
        }
    }

    /// Connection options of the program that is to be killed.
    pub fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// Ends all connections, waits until the server has ended their sessions, and returns whether a statement
    /// was cut.
    pub async fn close(self) -> bool {
        let was_cut = self.state.is_cut.send_replace(true);
        self.state.is_cut.closed().await;
        drop(self.socket);
        was_cut
    }
}

impl CutterState {
    async fn relay(
        self: Arc<Self>,
        client: UnixStream,
        server: PathBuf,
        mut is_cut: watch::Receiver<bool>,
    ) -> io::Result<()> {
        if *is_cut.borrow() {
            return Ok(());
        }
        let (from_client, mut to_client) = client.into_split();
        let (from_server, mut to_server) = UnixStream::connect(server).await?.into_split();
        let (mut from_client, mut from_server) =
            (FrameReader::new(from_client), FrameReader::new(from_server));
        to_server.write_all(&from_client.startup().await?).await?;
        loop {
            tokio::select! {
                _ = is_cut.changed() => break,
                frame = from_client.next() => {
                    let Ok(frame) = frame else { break };
                    if self.is_reached(&frame) {
                        if self.cut == Cut::AfterStatement {
                            to_server.write_all(&from_client.read_until_sync(frame).await?).await?;
                            from_server.skip_until_ready().await?;
                        }
                        self.is_cut.send_replace(true);
                        break;
                    }
                    to_server.write_all(frame.bytes()).await?;
                }
                frame = from_server.next() => to_client.write_all(frame?.bytes()).await?,
            }
        }
        drop((from_client, to_client, to_server));
        // The server closes its side when the session has ended.
        while from_server.next().await.is_ok() {}
        Ok(())
    }

    fn is_reached(&self, frame: &Frame) -> bool {
        frame.runs_statement() && self.statements.fetch_add(1, Ordering::Relaxed) + 1 == self.cut_at
    }
}
