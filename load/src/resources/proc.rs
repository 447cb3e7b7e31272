//! CPU time and memory from Linux `/proc`.
//!
//! `schedstat` counts in nanoseconds. The ticks of `stat` (hundredths of a second) are too coarse for a thread that
//! costs a microsecond per order.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fmt, fs, io};

use serde::Serialize;

/// `USER_HZ`: the kernel reports ticks to user space as hundredths of a second on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// Index of `cutime` (user time of waited-for children) in `stat`, counted from the state field after the name.
const CHILDREN_USER: usize = 13;
/// Index of `cstime` (their system time).
const CHILDREN_SYSTEM: usize = 14;

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

/// Reads the threads of a process, by id. Digits in names become `*`: `worker-3` is reported as `worker-*`.
pub(crate) fn read_threads(pid: u32, component: Component) -> io::Result<BTreeMap<u32, ThreadSample>> {
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The thread may have ended since the directory was listed.
        if let (Ok(name), Ok(cpu)) = (fs::read_to_string(entry.path().join("comm")), read_cpu_time(id)) {
            let name = collapse_digits(name.trim());
            threads.insert(id, ThreadSample { component, name, cpu });
        }
    }
    Ok(threads)
}

/// Reads the CPU time of a thread, or of a single-threaded process.
pub(crate) fn read_cpu_time(id: u32) -> io::Result<Duration> {
    read(&format!("/proc/{id}/schedstat"), |text| {
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    })
}

/// Reads the CPU time of ended children of a process.
pub(crate) fn read_ended_children(pid: u32) -> io::Result<Duration> {
    read(&format!("/proc/{pid}/stat"), parse_children_time)
}

/// Reads the CPU time of all cores since boot.
pub(crate) fn read_machine_time() -> io::Result<MachineCpuTime> {
    read("/proc/stat", parse_machine_time)
}

/// Reads the resident memory of a process, in KiB.
pub(crate) fn read_resident_kib(pid: u32) -> io::Result<u64> {
    read(&format!("/proc/{pid}/status"), parse_resident_kib)
}

fn read<T>(path: &str, parse: impl Fn(&str) -> Option<T>) -> io::Result<T> {
    parse(&fs::read_to_string(path)?)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("unexpected format of {path}")))
}

fn parse_resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * (1_000 / TICKS_PER_SECOND))
}

fn parse_children_time(stat: &str) -> Option<Duration> {
    // The name is in parentheses and may contain parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(ticks(number(CHILDREN_USER)? + number(CHILDREN_SYSTEM)?))
}

fn parse_machine_time(stat: &str) -> Option<MachineCpuTime> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let counts: Option<Vec<u64>> = all.split_whitespace().map(|count| count.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = counts?[..] else {
        return None;
    };
    Some(MachineCpuTime {
        busy: ticks(user + nice + system + irq + softirq + steal),
        idle: ticks(idle + iowait),
        steal: ticks(steal),
    })
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
    fn proc_files_are_parsed() {
        assert_eq!(parse_resident_kib("Name:\tx\nVmRSS:\t  1234 kB\n"), Some(1_234));
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 130 25 20 0";
        assert_eq!(parse_children_time(stat), Some(Duration::from_millis(1_550)));
        let cores = parse_machine_time("cpu  100 0 50 800 20 1 2 27 0 0\ncpu0 1 1\n").unwrap();
        assert_eq!(cores.busy, Duration::from_millis(1_800));
        assert_eq!(cores.idle, Duration::from_millis(8_200));
        assert_eq!(cores.steal, Duration::from_millis(270));
    }

    #[test]
    fn malformed_proc_files_are_rejected() {
        assert_eq!(parse_resident_kib("VmRSS:\n"), None);
        assert_eq!(parse_children_time("12 (a) S 1"), None);
        assert_eq!(parse_machine_time("cpu 1 2 3\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_process_has_cpu_time_and_memory() {
        let me = std::process::id();
        let threads = read_threads(me, Component::Generator).unwrap();
        let total: Duration = threads.values().map(|thread| thread.cpu).sum();
        assert!(!total.is_zero(), "{threads:?}");
        assert!(read_resident_kib(me).unwrap() > 0);
        assert!(!read_machine_time().unwrap().busy.is_zero());
    }
}
