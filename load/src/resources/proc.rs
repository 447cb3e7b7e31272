//! CPU time, memory and listening processes from Linux `/proc`.
//!
//! `schedstat` counts in nanoseconds. The ticks of `stat` (hundredths of a second) are too coarse for a
//! thread that costs a microsecond per order.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use procfs::net::{TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process, all_processes};
use procfs::{CurrentSI as _, KernelStats, ProcResult, ticks_per_second};
use serde::Serialize;

/// The component that used the CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// The service, or another contender in a comparison.
    Service,
    Postgres,
    Generator,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "service",
            Self::Postgres => "Postgres",
            Self::Generator => "generator",
        })
    }
}

/// CPU time of one thread, or of a process with one thread, at one point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadSample {
    pub component: Component,
    /// Threads with the same name are reported together.
    pub name: String,
    pub cpu: Duration,
}

/// Cumulative CPU time of all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineCpuTime {
    /// Includes steal time.
    pub busy: Duration,
    pub idle: Duration,
    pub steal: Duration,
}

fn process(pid: u32) -> ProcResult<Process> {
    Process::new(pid.cast_signed())
}

/// Reads the threads of a process, by id. Digits in names become `*`: `worker-3` is reported as `worker-*`.
pub(crate) fn read_threads(pid: u32, component: Component) -> ProcResult<BTreeMap<u32, ThreadSample>> {
    let tasks = process(pid)?.tasks()?.flatten();
    // A thread may have ended since the directory was listed.
    let samples = tasks.filter_map(|task| {
        let name = collapse_digits(&task.stat().ok()?.comm);
        let cpu = Duration::from_nanos(task.schedstat().ok()?.sum_exec_runtime);
        Some((task.tid.cast_unsigned(), ThreadSample { component, name, cpu }))
    });
    Ok(samples.collect())
}

/// Reads the CPU time of a single-threaded process.
pub(crate) fn read_cpu_time(pid: u32) -> ProcResult<Duration> {
    let schedstat = process(pid)?.schedstat()?;
    Ok(Duration::from_nanos(schedstat.sum_exec_runtime))
}

/// Reads the CPU time of ended children of a process.
pub(crate) fn read_ended_children(pid: u32) -> ProcResult<Duration> {
    let stat = process(pid)?.stat()?;
    let ticks = (stat.cutime + stat.cstime).cast_unsigned();
    Ok(Duration::from_millis(ticks * 1_000 / ticks_per_second()))
}

/// The process that started another one.
pub(crate) fn read_parent(pid: u32) -> ProcResult<u32> {
    Ok(process(pid)?.stat()?.ppid.cast_unsigned())
}

/// Reads the CPU time of all cores since boot.
pub(crate) fn read_machine_time() -> ProcResult<MachineCpuTime> {
    let total = KernelStats::current()?.total;
    let steal = total.steal_duration().unwrap_or_default();
    let interrupts = [total.irq_duration(), total.softirq_duration()];
    let working = [
        total.user_duration(),
        total.nice_duration(),
        total.system_duration(),
        steal,
    ];
    Ok(MachineCpuTime {
        busy: working.into_iter().chain(interrupts.into_iter().flatten()).sum(),
        idle: total.idle_duration() + total.iowait_duration().unwrap_or_default(),
        steal,
    })
}

/// Reads the resident memory of a process, in KiB.
pub(crate) fn read_resident_kib(pid: u32) -> ProcResult<u64> {
    Ok(process(pid)?.status()?.vmrss.unwrap_or_default())
}

/// Finds the process that listens at a port of this machine; `None` if there is none, or if it belongs to
/// another user.
#[must_use]
pub fn find_listener(port: u16) -> Option<u32> {
    let mut sockets = [tcp(), tcp6()].into_iter().flatten().flatten();
    let listener =
        sockets.find(|socket| socket.state == TcpState::Listen && socket.local_address.port() == port)?;
    let listens = |process: &Process| {
        let files = process.fd().into_iter().flatten().flatten();
        files
            .into_iter()
            .any(|file| matches!(file.target, FDTarget::Socket(inode) if inode == listener.inode))
    };
    let mut processes = all_processes().ok()?.flatten();
    Some(processes.find(listens)?.pid.cast_unsigned())
}

fn collapse_digits(name: &str) -> String {
    let mut text = name.replace(|character: char| character.is_ascii_digit(), "*");
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_names_differing_in_digits_are_equal() {
        assert_eq!(collapse_digits("lane 12 of 3"), "lane * of *");
        assert_eq!(collapse_digits("actix-rt|system"), "actix-rt|system");
    }

    #[test]
    fn own_process_has_cpu_time_memory_and_its_listener() {
        let me = std::process::id();
        let threads = read_threads(me, Component::Generator).unwrap();
        let total: Duration = threads.values().map(|thread| thread.cpu).sum();
        assert!(!total.is_zero(), "{threads:?}");
        assert!(read_resident_kib(me).unwrap() > 0);
        assert_eq!(read_parent(me).unwrap(), std::os::unix::process::parent_id());
        assert!(!read_machine_time().unwrap().busy.is_zero());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(find_listener(port), Some(me));
        drop(listener);
        assert_eq!(find_listener(port), None);
    }
}
