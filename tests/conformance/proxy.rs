//! A way to Postgres on which commits come to grief: it passes everything on, until it is told to lose something.
//!
//! Rule: it knows a commit by its statement, and touches nothing but whole messages, so that the server sees nothing that
//! a client could not have sent, and the lane nothing that a broken connection could not have done.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use vouchsafe_actors::testing::conformance::CommitFault;

use crate::frames::{Frame, Frames};
use crate::spawn;

/// What a commit's statement calls.
const COMMIT: &[u8] = b"commit_batch(";

/// The file that a client looks for in the directory it is given, behind the port.
const SOCKET: &str = ".s.PGSQL.";

/// A text in a statement, and what it becomes on its way.
pub(crate) type Edit = (&'static str, &'static str);

/// A socket that leads to the server's.
pub(crate) struct Proxy {
    directory: TempDir,
    way: Arc<Way>,
}

/// What all connections of a proxy share.
struct Way {
    server: PathBuf,
    edit: Option<Edit>,
    armed: Mutex<Option<CommitFault>>,
    delayed: Mutex<Vec<Delayed>>,
}

/// A commit on its way, with the connection that it will arrive on.
struct Delayed {
    commit: Vec<u8>,
    to_server: OwnedWriteHalf,
    from_server: Frames<OwnedReadHalf>,
}

impl Proxy {
    /// Opens a way to the server that listens in this directory, under the same port.
    pub(crate) fn open(server: &Path, port: u16, edit: Option<Edit>) -> Self {
        let name = format!("{SOCKET}{port}");
        let directory = tempfile::Builder::new().prefix("vs").tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(&name)).unwrap();
        let way = Arc::new(Way {
            server: server.join(name),
            edit,
            armed: Mutex::default(),
            delayed: Mutex::default(),
        });
        let shared = Arc::clone(&way);
        spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let way = Arc::clone(&shared);
                spawn(async move {
                    // A connection that ends, from whichever side, is no failure of the test.
                    let _ = way.relay(client).await;
                });
            }
        });
        Self { directory, way }
    }

    /// Where clients find the socket.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Lets this befall the next commit.
    pub(crate) fn arm(&self, fault: CommitFault) {
        let before = self.way.armed.lock().unwrap().replace(fault);
        assert_eq!(before, None, "one fault befalls a commit");
    }

    /// Delivers what was delayed, and returns once the server is done with it.
    pub(crate) async fn deliver(&self) {
        let delayed = std::mem::take(&mut *self.way.delayed.lock().unwrap());
        for mut late in delayed {
            late.to_server.write_all(&late.commit).await.unwrap();
            late.from_server.until_ready().await.unwrap();
        }
    }
}

impl Way {
    async fn relay(&self, client: UnixStream) -> io::Result<()> {
        let server = UnixStream::connect(&self.server).await?;
        let (from_client, mut to_client) = client.into_split();
        let (from_server, mut to_server) = server.into_split();
        let (mut from_client, mut from_server) = (Frames::new(from_client), Frames::new(from_server));
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
                    let commit = from_client.until_sync(frame).await?;
                    let hang_up = move || drop((from_client, to_client));
                    let delayed = Delayed { commit, to_server, from_server };
                    return self.befall(fault, delayed, hang_up).await;
                }
                frame = from_server.next() => to_client.write_all(frame?.bytes()).await?,
            }
        }
    }

    fn edited(&self, frame: Frame) -> Frame {
        let edited = self.edit.filter(|_| frame.prepares().is_some());
        let edited = edited.and_then(|(from, to)| frame.replaced(from.as_bytes(), to.as_bytes()));
        edited.unwrap_or(frame)
    }

    /// What befalls the commit that begins with this frame, if it is one and something does.
    fn fault_of(&self, frame: &Frame, commits: &mut BTreeSet<Vec<u8>>) -> Option<CommitFault> {
        if let Some((name, text)) = frame.prepares()
            && text.windows(COMMIT.len()).any(|window| window == COMMIT)
        {
            commits.insert(name.to_vec());
        }
        let is_commit = frame.binds().is_some_and(|name| commits.contains(name));
        self.armed.lock().unwrap().take_if(|_| is_commit)
    }

    async fn befall(
        &self,
        fault: CommitFault,
        mut delayed: Delayed,
        hang_up: impl FnOnce(),
    ) -> io::Result<()> {
        match fault {
            CommitFault::Refused => panic!("a refusal is the server's word"),
            CommitFault::NeverSent => hang_up(),
            CommitFault::AnswerLost => {
                delayed.to_server.write_all(&delayed.commit).await?;
                delayed.from_server.until_ready().await?;
                hang_up();
            }
            CommitFault::Adrift => {
                delayed.to_server.write_all(&delayed.commit).await?;
                hang_up();
                delayed.from_server.until_ready().await?;
            }
            CommitFault::Late => {
                // Kept before the lane hears of it, which may ask for it at once.
                self.delayed.lock().unwrap().push(delayed);
                hang_up();
            }
        }
        Ok(())
    }
}
