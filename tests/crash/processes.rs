//! Which processes are there, and what does it mean to strike at them? Only what runs on the data directory of the test is
//! ever sent a signal.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::PgConnection;

use crate::rng::Rng;
use crate::program::Program;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// kill -9 of the service.
    Service,
    /// kill -9 of the server.
    Postmaster,
    /// kill -9 of both, one right after the other.
    ServiceAndPostmaster,
    /// kill -9 of the service and of the server's guard; the server is left behind alone.
    ServiceAndGuard,
    /// kill -9 of service, guard and server.
    Everything,
    /// kill -9 of one backend: the server throws everybody out and recovers.
    Backend,
    /// One backend is told to end, in the middle of what it does.
    Session,
    /// SIGTERM to the service: it finishes what is under way.
    Drain,
}

impl Fault {
    /// All kinds.
    pub(crate) const ALL: [Self; 8] = [
        Self::Service,
        Self::Postmaster,
        Self::ServiceAndPostmaster,
        Self::ServiceAndGuard,
        Self::Everything,
        Self::Backend,
        Self::Session,
        Self::Drain,
    ];

    /// Whether the service is among them.
    pub(crate) const fn has_service(self) -> bool {
        !matches!(self, Self::Postmaster | Self::Backend | Self::Session)
    }
}

/// Strikes. `beside` is a connection that was opened before.
pub(crate) async fn inject(
    kind: Fault,
    program: &mut Program,
    beside: &mut PgConnection,
    chance: &mut Rng,
) {
    let mut victims: Vec<&str> = match kind {
        Fault::Service => vec!["service"],
        Fault::Postmaster => vec!["server"],
        Fault::ServiceAndPostmaster => vec!["service", "server"],
        Fault::ServiceAndGuard => vec!["service", "guard"],
        Fault::Everything => vec!["service", "guard", "server"],
        Fault::Backend => return send_signal(busy_backend(beside).await, Signal::KILL),
        Fault::Session => return send_signal(busy_backend(beside).await, Signal::TERM),
        Fault::Drain => {
            return assert!(
                program.stop(),
                "told to end, it ends well:\n{}",
                program.log_tail()
            );
        }
    };
    chance.shuffle(&mut victims);
    let (server, guard) = (postmaster_pid(program.data_dir()), guard_pid(program.data_dir()));
    for victim in victims {
        match victim {
            "server" => send_signal(server, Signal::KILL),
            "guard" => send_signal(guard, Signal::KILL),
            _ => program.kill(),
        }
    }
}

/// The backend of a lane, or of whoever was the last to ask something.
async fn busy_backend(beside: &mut PgConnection) -> u32 {
    let pid: i32 = sqlx::query_scalar(
        "SELECT a.pid
           FROM pg_stat_activity AS a
          WHERE a.backend_type = 'client backend' AND a.datname = current_database() AND a.pid <> pg_backend_pid()
          ORDER BY a.query LIKE '%commit_batch%' DESC, a.state = 'active' DESC, a.query_start DESC
          LIMIT 1",
    )
    .fetch_one(beside)
    .await
    .unwrap();
    pid.cast_unsigned()
}

/// The server that runs in this data directory.
pub(crate) fn postmaster_pid(data_dir: &Path) -> u32 {
    read_pid(data_dir, "postgres/data/postmaster.pid")
}

fn guard_pid(data_dir: &Path) -> u32 {
    read_pid(data_dir, "guard.lock")
}

/// The pid in a file, which must be that of a process that was started for this data directory.
fn read_pid(data_dir: &Path, file: &str) -> u32 {
    let text = fs::read_to_string(data_dir.join(file)).unwrap();
    let pid = text.split_whitespace().next().unwrap().parse().unwrap();
    let command = Command::new("ps")
        .args(["-ww", "-o", "command=", "-p", &format!("{pid}")])
        .output()
        .unwrap();
    let command = String::from_utf8_lossy(&command.stdout).into_owned();
    assert!(
        command.contains(&data_dir.display().to_string()),
        "{file} names a stranger: {pid} `{command}`"
    );
    pid
}

/// Sends a signal.
pub(crate) fn send_signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Asks again until it holds.
pub(crate) fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
