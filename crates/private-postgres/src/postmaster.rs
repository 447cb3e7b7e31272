//! Server process: start, adoption, and stop.
//!
//! `postmaster.pid` in the cluster names its server. A server that matches the plan is adopted, whichever
//! process started it; any other server is stopped first. Files that Postgres maintains are never removed.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{iter, thread};

use rustix::process::Signal;

use super::plan::ServerPlan;
use super::{process, settings, socket};

/// Interval between checks of a stopping server.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Line of `postmaster.pid` with the server's state, counted from 0.
const STATE_LINE: usize = 7;

/// Line of `postmaster.pid` with the socket's directory, counted from 0.
const SOCKET_LINE: usize = 4;

/// How long a server may take to exit before the next harsher signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopTimeouts {
    /// After SIGINT: the server disconnects all clients, writes a checkpoint and exits.
    pub(super) fast: Duration,
    /// After SIGQUIT: the server exits at once and recovers at the next start.
    pub(super) immediate: Duration,
}

/// The server process of one cluster.
#[derive(Debug)]
pub(super) enum Postmaster {
    /// Started by this process, which must reap it.
    Child(Child),
    /// Started by an earlier guard, and running as planned.
    Adopted(u32),
}

/// What runs under the pid in `postmaster.pid`.
#[derive(Debug, PartialEq, Eq)]
enum PidFileState {
    NoServer,
    /// A server that runs as planned.
    Matching(u32),
    /// A server of this cluster, with other settings or of another version.
    Different(u32),
    /// A process unrelated to this cluster.
    Unrelated,
}

impl Postmaster {
    /// Adopts the running server, or starts one.
    ///
    /// # Errors
    /// If the program cannot be run. A server that exits again is detected by [`Postmaster::has_ended`].
    pub(super) fn adopt_or_start(plan: &ServerPlan, timeouts: StopTimeouts) -> io::Result<Self> {
        match read_pid_file(plan) {
            PidFileState::Matching(pid) => {
                tracing::info!(postmaster.pid = pid, "adopting the running server");
                return Ok(Self::Adopted(pid));
            }
            PidFileState::Different(pid) => {
                tracing::info!(postmaster.pid = pid, "stopping a server with other settings");
                stop(
                    timeouts,
                    |signal| process::signal(pid, signal),
                    || Ok(!is_of_cluster(plan, pid)),
                )?;
            }
            PidFileState::Unrelated => replace_stale_pid(plan, &plan.pgdata.join("postmaster.pid"))?,
            PidFileState::NoServer => {}
        }
        release_socket_lock(plan)?;
        let child = plan
            .account
            .command(&plan.program, &plan.pgdata)
            .args(plan.server_arguments())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()?;
        tracing::info!(postmaster.pid = child.id(), "server started");
        Ok(Self::Child(child))
    }

    /// Whether the process has exited.
    ///
    /// # Errors
    /// Those of waiting for the child.
    pub(super) fn has_ended(&mut self, plan: &ServerPlan) -> io::Result<bool> {
        match self {
            Self::Child(child) => Ok(child.try_wait()?.is_some()),
            Self::Adopted(pid) => Ok(!is_of_cluster(plan, *pid)),
        }
    }

    /// Stops the process with ever harsher signals and returns when it has exited.
    ///
    /// # Errors
    /// If a signal cannot be sent.
    pub(super) fn stop(mut self, plan: &ServerPlan, timeouts: StopTimeouts) -> io::Result<()> {
        let pid = self.pid();
        stop(
            timeouts,
            |signal| process::signal(pid, signal),
            || self.has_ended(plan),
        )
    }

    pub(super) fn pid(&self) -> u32 {
        match self {
            Self::Child(child) => child.id(),
            Self::Adopted(pid) => *pid,
        }
    }
}

/// Whether this server accepts connections, by its own account. Compares the pid, because the file of a
/// killed server stays until its successor overwrites it.
pub(super) fn is_ready(pgdata: &Path, pid: u32) -> bool {
    recorded_pid(pgdata) == Some(pid)
        && pid_file_line(pgdata, STATE_LINE).is_some_and(|state| state == "ready")
}

/// Whether a server of the planned cluster runs and accepts connections.
pub(super) fn is_serving(plan: &ServerPlan) -> bool {
    running_pid(plan).is_some_and(|pid| is_ready(&plan.pgdata, pid))
}

/// The pid of the server that runs in the planned cluster, whatever its settings.
pub(super) fn running_pid(plan: &ServerPlan) -> Option<u32> {
    match read_pid_file(plan) {
        PidFileState::Matching(pid) | PidFileState::Different(pid) => Some(pid),
        PidFileState::NoServer | PidFileState::Unrelated => None,
    }
}

/// The socket's directory according to `postmaster.pid`.
pub(super) fn recorded_socket(pgdata: &Path) -> Option<String> {
    pid_file_line(pgdata, SOCKET_LINE).filter(|path| !path.is_empty())
}

fn stop(
    timeouts: StopTimeouts,
    send: impl Fn(Signal) -> io::Result<()>,
    mut has_ended: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    for (signal, timeouts) in [(Signal::INT, timeouts.fast), (Signal::QUIT, timeouts.immediate)] {
        let deadline = Instant::now() + timeouts;
        send(signal)?;
        while Instant::now() < deadline {
            if has_ended()? {
                return Ok(());
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
    }
    // Its child processes notice its death and exit, too.
    send(Signal::KILL)?;
    while !has_ended()? {
        thread::sleep(EXIT_POLL_INTERVAL);
    }
    Ok(())
}

fn read_pid_file(plan: &ServerPlan) -> PidFileState {
    let Some(pid) = recorded_pid(&plan.pgdata) else {
        return PidFileState::NoServer;
    };
    let command: Vec<OsString> = iter::once(plan.program.clone().into())
        .chain(plan.server_arguments())
        .collect();
    let planned = process::join_command_line(command.iter().map(OsString::as_os_str));
    match process::inspect(pid) {
        // A zombie: Postgres would consider it alive.
        None if process::exists(pid) => PidFileState::Unrelated,
        None => PidFileState::NoServer,
        Some(process_info)
            if process_info.uid == plan.account.uid && process_info.command_line == planned =>
        {
            PidFileState::Matching(pid)
        }
        Some(_) if is_of_cluster(plan, pid) => PidFileState::Different(pid),
        Some(_) => PidFileState::Unrelated,
    }
}

/// Whether a process is a server of the planned cluster, with any settings.
fn is_of_cluster(plan: &ServerPlan, pid: u32) -> bool {
    let data_dir_argument = format!(" -D {} ", plan.pgdata.display());
    process::inspect(pid).is_some_and(|process_info| {
        process_info.uid == plan.account.uid
            && process_info.command_line.contains("postgres")
            && format!("{} ", process_info.command_line).contains(&data_dir_argument)
    })
}

/// Lets the server start although its old pid now belongs to another process, which is common after a restart
/// of the machine or the container; Postgres would refuse to start. Keeps the file, because it also names the
/// shared memory by which Postgres detects surviving children of the old server. Only the pid becomes that of
/// this process, the new server's parent, which Postgres knows not to be a server.
fn replace_stale_pid(plan: &ServerPlan, path: &Path) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let text = fs::read_to_string(path)?;
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    tracing::info!(path = %path.display(), "replacing a stale pid that another program reuses");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // A new file, renamed into place: another user owns the directory and could have planted a link.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    write!(file, "{}\n{rest}", std::process::id())?;
    fchown(&file, Some(plan.account.uid), Some(plan.account.gid))?;
    fs::rename(temporary, path)
}

/// The socket's lock file also names the last server and outlives it. A server that fails to get the socket
/// removes `postmaster.pid` on exit, so the lock is checked separately, before every start.
fn release_socket_lock(plan: &ServerPlan) -> io::Result<()> {
    let Some(lock) = settings::socket_directory(&plan.settings).map(|socket| socket.join(socket::LOCK_FILE))
    else {
        return Ok(());
    };
    match first_line(&lock).and_then(|pid| pid.parse().ok()) {
        Some(pid) if process::exists(pid) && !is_of_cluster(plan, pid) => replace_stale_pid(plan, &lock),
        _ => Ok(()),
    }
}

fn recorded_pid(pgdata: &Path) -> Option<u32> {
    first_line(&pgdata.join("postmaster.pid"))?.parse().ok()
}

fn first_line(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()?
        .lines()
        .next()
        .map(|line| line.trim().to_owned())
}

fn pid_file_line(pgdata: &Path, number: usize) -> Option<String> {
    let text = fs::read_to_string(pgdata.join("postmaster.pid")).ok()?;
    text.lines().nth(number).map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::plan::tests::plan;

    fn plan_in(dir: &Path) -> ServerPlan {
        ServerPlan {
            pgdata: dir.to_path_buf(),
            account: Account::current(),
            ..plan()
        }
    }

    #[test]
    fn pid_file_is_read_by_line() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_ready(dir.path(), 4));
        let text = "4\n/pgdata\n1764000000\n5432\n/socket\n\n  123  4\nready   \n";
        fs::write(dir.path().join("postmaster.pid"), text).unwrap();
        assert!(is_ready(dir.path(), 4));
        assert!(!is_ready(dir.path(), 5), "another server was ready");
        assert_eq!(recorded_socket(dir.path()).as_deref(), Some("/socket"));
    }

    #[test]
    fn stale_pid_is_replaced_and_shared_memory_kept() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan_in(dir.path());
        let path = dir.path().join("postmaster.pid");
        let own = std::process::id();
        fs::write(
            &path,
            format!("{own}\n{}\n0\n5432\n/s\n\n 12 34\nready\n", dir.path().display()),
        )
        .unwrap();
        assert_eq!(read_pid_file(&plan), PidFileState::Unrelated);
        replace_stale_pid(&plan, &path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with(&format!("{own}\n")) && text.contains("\n 12 34\n"),
            "{text}"
        );
    }

    #[test]
    fn server_that_ignores_signals_is_killed() {
        let mut sent = std::cell::RefCell::new(Vec::new());
        let no_wait = StopTimeouts {
            fast: Duration::ZERO,
            immediate: Duration::ZERO,
        };
        let send = |signal| {
            sent.borrow_mut().push(signal);
            Ok(())
        };
        stop(no_wait, send, || Ok(true)).unwrap();
        assert_eq!(*sent.get_mut(), [Signal::INT, Signal::QUIT, Signal::KILL]);
    }
}
