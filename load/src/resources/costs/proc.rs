//! CPU time, context switches and memory from Linux `/proc`, per thread.
//!
//! `schedstat` counts in nanoseconds. The ticks of `stat` (hundredths of a second) are too coarse for a thread that
//! costs a microsecond per order.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use super::{Component, ThreadSample};

/// `USER_HZ`: the kernel reports ticks to user space as hundredths of a second on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// Index of `cutime` (user time of waited-for children) in `stat`, counted from the state field after the name.
const CHILDREN_USER: usize = 13;
/// Index of `cstime` (their system time).
const CHILDREN_SYSTEM: usize = 14;

/// Cumulative usage of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    pub cpu: Duration,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
}

impl CpuUsage {
    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }

    /// Usage since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// Cumulative CPU time of all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCpuTime {
    /// Includes steal time.
    pub busy: Duration,
    pub idle: Duration,
}

impl MachineCpuTime {
    /// Usage since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }
}

/// Reads the threads of a process, by id. Digits in names become `*`: `worker-3` is reported as `worker-*`.
///
/// # Errors
/// If the process or `/proc` does not exist.
pub fn read_threads(pid: u32, component: Component) -> io::Result<BTreeMap<u32, ThreadSample>> {
    let mut tasks = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The thread may have ended since the directory was listed.
        if let Ok((name, read_usage)) = read_thread(&entry.path()) {
            let name = collapse_digits(&name);
            tasks.insert(
                id,
                ThreadSample {
                    component,
                    name,
                    usage: read_usage,
                },
            );
        }
    }
    Ok(tasks)
}

/// Reads the usage of a single-threaded process.
///
/// # Errors
/// If the process does not exist.
pub fn read_process(pid: u32) -> io::Result<CpuUsage> {
    read_usage(Path::new(&format!("/proc/{pid}/task/{pid}")))
}

/// Reads the CPU time of ended children of a process.
///
/// # Errors
/// If the process does not exist.
pub fn read_ended_children(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_children_time(&stat).ok_or_else(|| malformed("stat"))
}

/// Reads the CPU time of all cores since boot.
///
/// # Errors
/// If there is no `/proc`.
pub fn read_machine_time() -> io::Result<MachineCpuTime> {
    parse_machine_time(&fs::read_to_string("/proc/stat")?).ok_or_else(|| malformed("/proc/stat"))
}

/// Reads the resident memory of a process, in KiB.
///
/// # Errors
/// If the process does not exist.
pub fn read_resident_kib(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    parse_status_field(&status, "VmRSS:").ok_or_else(|| malformed("status"))
}

fn read_thread(task: &Path) -> io::Result<(String, CpuUsage)> {
    let name = fs::read_to_string(task.join("comm"))?;
    Ok((name.trim().to_owned(), read_usage(task)?))
}

fn read_usage(task: &Path) -> io::Result<CpuUsage> {
    let cpu = parse_schedstat(&fs::read_to_string(task.join("schedstat"))?)
        .ok_or_else(|| malformed("schedstat"))?;
    let status = fs::read_to_string(task.join("status"))?;
    let count = |name| parse_status_field(&status, name).ok_or_else(|| malformed("status"));
    Ok(CpuUsage {
        cpu,
        voluntary: count("voluntary_ctxt_switches:")?,
        involuntary: count("nonvoluntary_ctxt_switches:")?,
    })
}

fn malformed(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("unexpected format of {file}"))
}

fn parse_schedstat(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

fn parse_status_field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
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
    let counts: Vec<u64> = all
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = counts[..] else {
        return None;
    };
    Some(MachineCpuTime {
        busy: ticks(user + nice + system + irq + softirq + steal),
        idle: ticks(idle + iowait),
    })
}

fn collapse_digits(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if text.ends_with('*') => {}
            '0'..='9' => text.push('*'),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_names_differing_in_digits_are_equal() {
        for (name, expected) in [
            ("worker-3", "worker-*"),
            ("actix-rt|system", "actix-rt|system"),
            ("lane 12 of 3", "lane * of *"),
        ] {
            assert_eq!(collapse_digits(name), expected);
        }
    }

    #[test]
    fn proc_files_are_parsed() {
        assert_eq!(
            parse_schedstat("856061 10669014 2\n"),
            Some(Duration::from_nanos(856_061))
        );
        let status =
            "Name:\tx\nVmRSS:\t  1234 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(parse_status_field(status, "VmRSS:"), Some(1_234));
        assert_eq!(parse_status_field(status, "voluntary_ctxt_switches:"), Some(7));
        assert_eq!(parse_status_field(status, "nonvoluntary_ctxt_switches:"), Some(2));
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 130 25 20 0";
        assert_eq!(parse_children_time(stat), Some(Duration::from_millis(1_550)));
        let cores = parse_machine_time("cpu  100 0 50 800 20 1 2 27 0 0\ncpu0 1 1\n").unwrap();
        assert_eq!(cores.busy, Duration::from_millis(1_800));
        assert_eq!(cores.idle, Duration::from_millis(8_200));
    }

    #[test]
    fn malformed_proc_files_are_rejected() {
        assert_eq!(parse_schedstat(""), None);
        assert_eq!(parse_status_field("VmRSS:\n", "VmRSS:"), None);
        assert_eq!(parse_children_time("12 (a) S 1"), None);
        assert_eq!(parse_machine_time("cpu 1 2 3\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_process_has_cpu_time_and_memory() {
        let me = std::process::id();
        let threads = read_threads(me, Component::Generator).unwrap();
        let total: Duration = threads.values().map(|task| task.usage.cpu).sum();
        assert!(!total.is_zero(), "{threads:?}");
        assert!(read_resident_kib(me).unwrap() > 0);
        assert!(!read_machine_time().unwrap().busy.is_zero());
    }
}
