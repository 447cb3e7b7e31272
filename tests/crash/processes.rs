//! Fault injection by signals. Only processes that run on the test's data directory receive a signal.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use sqlx::PgConnection;

use crate::rng::Rng;
use vouchsafe_test_harness::{Instance, send_signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Service,
    Postmaster,
    /// SIGKILL to both, in quick succession.
    ServiceAndPostmaster,
    /// SIGKILL to the service and the server's guard; the server is orphaned.
    ServiceAndGuard,
    Everything,
    /// SIGKILL to one backend: the server disconnects all clients and recovers.
    Backend,
    /// SIGTERM to one backend in the middle of its work.
    Session,
    /// SIGTERM to the service, which drains.
    Drain,
}

impl Fault {
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

    pub(crate) const fn has_service(self) -> bool {
        !matches!(self, Self::Postmaster | Self::Backend | Self::Session)
    }
}

/// Injects the fault. `observer` is a connection opened before.
pub(crate) async fn inject(kind: Fault, program: &mut Instance, observer: &mut PgConnection, rng: &mut Rng) {
    let mut victims: Vec<&str> = match kind {
        Fault::Service => vec!["service"],
        Fault::Postmaster => vec!["server"],
        Fault::ServiceAndPostmaster => vec!["service", "server"],
        Fault::ServiceAndGuard => vec!["service", "guard"],
        Fault::Everything => vec!["service", "guard", "server"],
        Fault::Backend => return send_signal(busy_backend(observer).await, Signal::KILL),
        Fault::Session => return send_signal(busy_backend(observer).await, Signal::TERM),
        Fault::Drain => {
            return assert_eq!(
                program.stop(),
                Some(0),
                "the service failed to drain:\n{}",
                program.log_tail()
            );
        }
    };
    rng.shuffle(&mut victims);
    let (server, guard) = (postmaster_pid(program.data_dir()), guard_pid(program.data_dir()));
    for victim in victims {
        match victim {
            "server" => send_signal(server, Signal::KILL),
            "guard" => send_signal(guard, Signal::KILL),
            _ => program.kill(),
        }
    }
}

/// Returns the pid of a lane's backend, or else of the most recently active one.
async fn busy_backend(observer: &mut PgConnection) -> u32 {
    let pid: i32 = sqlx::query_scalar(
        "SELECT a.pid
           FROM pg_stat_activity AS a
          WHERE a.backend_type = 'client backend' AND a.datname = current_database() AND a.pid <> pg_backend_pid()
          ORDER BY a.query LIKE '%commit_batch%' DESC, a.state = 'active' DESC, a.query_start DESC
          LIMIT 1",
    )
    .fetch_one(observer)
    .await
    .unwrap();
    pid.cast_unsigned()
}

pub(crate) fn postmaster_pid(data_dir: &Path) -> u32 {
    read_pid(data_dir, "postgres/data/postmaster.pid")
}

fn guard_pid(data_dir: &Path) -> u32 {
    read_pid(data_dir, "guard.lock")
}

/// Reads a pid from a file and asserts that its process was started for this data directory.
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
        "{file} contains the pid of another program: {pid} `{command}`"
    );
    pid
}
