//! Which program runs under a pid?
//!
//! A pid in a file may long belong to somebody else. So before a process is believed to be the server, or is sent a
//! signal, its user and its command line are compared with what we would have started.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::programs::leading_number;

/// What the system tells about a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) uid: u32,
    /// Program and arguments, joined by spaces.
    pub(super) command_line: String,
}

/// Looks at a process; `None` if there is none, or it has ended and only waits to be reaped.
pub(super) fn inspect(pid: u32) -> Option<ProcessInfo> {
    let found = if Path::new("/proc/self/cmdline").exists() {
        from_proc(pid)
    } else {
        from_ps(pid)
    };
    found.filter(|running| !running.command_line.is_empty())
}

/// Whether there is a process of this pid, be it only one that waits to be reaped.
pub(super) fn exists(pid: u32) -> bool {
    to_pid(pid).is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// The form in which [`look`] gives a command line.
pub(super) fn join_command_line<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> String {
    let words: Vec<_> = words.into_iter().map(OsStr::to_string_lossy).collect();
    words.join(" ").trim_end().to_owned()
}

/// Sends a signal.
///
/// # Errors
/// What the system says; that the process has gone is no error.
pub(super) fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = to_pid(pid).ok_or(io::ErrorKind::InvalidInput)?;
    match kill_process(pid, signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => sent.map_err(io::Error::from),
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn from_proc(pid: u32) -> Option<ProcessInfo> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let uid = fs::metadata(&directory).ok()?.uid();
    let words = fs::read(directory.join("cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&words)
        .replace('\0', " ")
        .trim_end()
        .to_owned();
    Some(ProcessInfo { uid, command_line })
}

fn from_ps(pid: u32) -> Option<ProcessInfo> {
    let output = Command::new("ps")
        .args(["-ww", "-o", "uid=", "-o", "command=", "-p", &pid.to_string()])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (uid, command_line) = line.split_once(char::is_whitespace)?;
    Some(ProcessInfo {
        uid: leading_number(uid)?,
        command_line: command_line.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::account::Account;

    #[test]
    fn a_process_is_seen_with_user_and_command_line_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let expected = ProcessInfo {
            uid: Account::current().uid,
            command_line: join_command_line(["sleep", "60"].map(OsStr::new)),
        };
        // The child is ours a moment before it becomes `sleep`.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while inspect(child.id()).as_ref() != Some(&expected) {
            assert!(std::time::Instant::now() < deadline, "{:?}", inspect(child.id()));
            std::thread::yield_now();
        }
        assert_eq!(from_ps(child.id()), Some(expected));
        child.kill().unwrap();
        while inspect(child.id()).is_some() {
            assert!(std::time::Instant::now() < deadline, "{:?}", inspect(child.id()));
            std::thread::yield_now();
        }
        assert!(exists(child.id()), "it has ended, and nobody has reaped it");
        child.wait().unwrap();
        assert!(!exists(child.id()));
        signal(child.id(), Signal::TERM).unwrap();
    }
}
