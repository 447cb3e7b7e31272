//! Process inspection by pid.
//!
//! A pid in a file may have been reused. Before a process is treated as the server or sent a signal, its user
//! and command line are compared with the expected ones.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::programs::leading_number;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) uid: u32,
    /// Program and arguments, joined by spaces.
    pub(super) command_line: String,
}

/// `None` if the process does not exist or is a zombie.
pub(super) fn inspect(pid: u32) -> Option<ProcessInfo> {
    let info = if Path::new("/proc/self/cmdline").exists() {
        from_proc(pid)
    } else {
        from_ps(pid)
    };
    info.filter(|info| !info.command_line.is_empty())
}

/// Whether a process with this pid exists, including zombies.
pub(super) fn exists(pid: u32) -> bool {
    to_pid(pid).is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Formats a command line like [`inspect`].
pub(super) fn join_command_line<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> String {
    let arguments: Vec<_> = arguments.into_iter().map(OsStr::to_string_lossy).collect();
    arguments.join(" ").trim_end().to_owned()
}

/// Sends a signal; a process that has exited is not an error.
///
/// # Errors
/// Those of the operating system.
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
    let arguments = fs::read(directory.join("cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&arguments)
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
    use crate::account::Account;

    #[test]
    fn process_is_inspected_until_it_exits() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let expected = ProcessInfo {
            uid: Account::current().uid,
            command_line: join_command_line(["sleep", "60"].map(OsStr::new)),
        };
        // Between fork and exec the child has this program's command line.
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
        assert!(exists(child.id()), "a zombie exists until it is reaped");
        child.wait().unwrap();
        assert!(!exists(child.id()));
        signal(child.id(), Signal::TERM).unwrap();
    }
}
