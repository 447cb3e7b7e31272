//! Fault-injecting proxy in front of Postgres.
//!
//! It recognizes commits by their statement and handles whole messages only: the server sees nothing that a
//! client could not send, and the lane sees nothing that a broken connection could not cause.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use vouchsafe_simulation::conformance::CommitFault;
use vouchsafe_test_harness::postgres_proxy::{Frame, FrameReader, ProxySocket};

/// Function called by the commit statement.
const COMMIT: &[u8] = b"commit_batch_v2(";

/// Text in a statement and its replacement.
pub(crate) type Edit = (&'static str, &'static str);

/// A proxy socket for the server's socket.
pub(crate) struct Proxy {
    socket: ProxySocket,
    state: Arc<ProxyState>,
}

struct ProxyState {
    edit: Option<Edit>,
    next_fault: Mutex<Option<CommitFault>>,
    delayed: Mutex<Vec<DelayedCommit>>,
}

/// A held-back commit with its server connection.
struct DelayedCommit {
    commit: Vec<u8>,
    to_server: OwnedWriteHalf,
    from_server: FrameReader<OwnedReadHalf>,
}

impl Proxy {
    /// Opens a proxy to the server socket in this directory, with the same port.
    pub(crate) fn open(server: &Path, port: u16, edit: Option<Edit>) -> Self {
        let state = Arc::new(ProxyState {
            edit,
            next_fault: Mutex::default(),
            delayed: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        let relay = move |client, server| Arc::clone(&shared).relay(client, server);
        Self {
            socket: ProxySocket::open(server, port, relay),
            state,
        }
    }

    /// Directory of the proxy's socket.
    pub(crate) fn directory(&self) -> &Path {
        self.socket.directory()
    }

    /// Injects a fault into the next commit.
    pub(crate) fn inject_fault(&self, fault: CommitFault) {
        let before = self.state.next_fault.lock().unwrap().replace(fault);
        assert_eq!(before, None, "a fault is already pending");
    }

    /// Sends the delayed commits and waits until the server has finished them.
    pub(crate) async fn deliver_delayed(&self) {
        let delayed = std::mem::take(&mut *self.state.delayed.lock().unwrap());
        for mut late in delayed {
            late.to_server.write_all(&late.commit).await.unwrap();
            late.from_server.skip_until_ready().await.unwrap();
        }
    }
}

impl ProxyState {
    async fn relay(self: Arc<Self>, client: UnixStream, server: PathBuf) -> io::Result<()> {
        let server = UnixStream::connect(server).await?;
        let (from_client, mut to_client) = client.into_split();
        let (from_server, mut to_server) = server.into_split();
        let (mut from_client, mut from_server) =
            (FrameReader::new(from_client), FrameReader::new(from_server));
        to_server.write_all(&from_client.startup().await?).await?;
        let mut commits = BTreeSet::new();
        loop {
            tokio::select! {
                frame = from_client.next() => {
                    let frame = self.edited(frame?);
                    let fault = self.fault_of(&frame, &mut commits);
                    let Some(fault) = fault else {
                        to_server.write_all(frame.bytes()).await?;
                        continue;
                    };
                    let commit = from_client.read_until_sync(frame).await?;
                    let hang_up = move || drop((from_client, to_client));
                    let delayed = DelayedCommit { commit, to_server, from_server };
                    return self.apply_fault(fault, delayed, hang_up).await;
                }
                frame = from_server.next() => to_client.write_all(frame?.bytes()).await?,
            }
        }
    }

    fn edited(&self, frame: Frame) -> Frame {
        let edited = self.edit.filter(|_| frame.prepared_statement().is_some());
        let edited = edited.and_then(|(from, to)| frame.with_replacement(from.as_bytes(), to.as_bytes()));
        edited.unwrap_or(frame)
    }

    /// The pending fault, if this frame begins a commit.
    fn fault_of(&self, frame: &Frame, commits: &mut BTreeSet<Vec<u8>>) -> Option<CommitFault> {
        if let Some((name, text)) = frame.prepared_statement()
            && text.windows(COMMIT.len()).any(|window| window == COMMIT)
        {
            commits.insert(name.to_vec());
        }
        let is_commit = frame.bound_statement().is_some_and(|name| commits.contains(name));
        self.next_fault.lock().unwrap().take_if(|_| is_commit)
    }

    async fn apply_fault(
        &self,
        fault: CommitFault,
        mut delayed: DelayedCommit,
        hang_up: impl FnOnce(),
    ) -> io::Result<()> {
        match fault {
            CommitFault::Aborted => panic!("an abort is done by the server, not the proxy"),
            CommitFault::NeverSent => hang_up(),
            CommitFault::ResponseLost => {
                delayed.to_server.write_all(&delayed.commit).await?;
                delayed.from_server.skip_until_ready().await?;
                hang_up();
            }
            CommitFault::Detached => {
                delayed.to_server.write_all(&delayed.commit).await?;
                hang_up();
                delayed.from_server.skip_until_ready().await?;
            }
            CommitFault::Delayed => {
                // Stored before the lane sees the disconnect, because the test may deliver it at once.
                self.delayed.lock().unwrap().push(delayed);
                hang_up();
            }
        }
        Ok(())
    }
}
