//! How much of the machine did a process have so far, thread by thread? As Linux tells it below `/proc`.
//!
//! The scheduler counts in nanoseconds (`schedstat`); the older count in hundredths of a second would say nothing of a
//! thread that costs a microsecond an order.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{ThreadSample, Component};

/// Ticks in a second, of what is counted in ticks: the kernel gives them to programs as hundredths on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// Fields of `stat` that stand behind the name, counted from the state: time of the children that ended, and were waited
/// for.
const CHILDREN_USER: usize = 13;
/// The same, inside the kernel.
const CHILDREN_SYSTEM: usize = 14;

/// What a task used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// Time on a core.
    pub cpu: Duration,
    /// How often it waited.
    pub voluntary: u64,
    /// How often it was made to wait.
    pub involuntary: u64,
}

impl CpuUsage {
    /// Both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }

    /// What came after an earlier look.
    #[must_use]
    pub fn since(self, then: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(then.cpu),
            voluntary: self.voluntary.saturating_sub(then.voluntary),
            involuntary: self.involuntary.saturating_sub(then.involuntary),
        }
    }
}

/// What the cores did, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCpuTime {
    /// For anybody, and what a host above this machine took.
    pub busy: Duration,
    pub idle: Duration,
}

impl MachineCpuTime {
    /// What came after an earlier look.
    #[must_use]
    pub fn since(self, then: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(then.busy),
            idle: self.idle.saturating_sub(then.idle),
        }
    }
}

/// The threads of a process, by their ids. Numbers in names are left out: `worker-3` is one of `worker-*`.
///
/// # Errors
/// When the process is not there, or there is no `/proc`.
pub fn read_threads(pid: u32, who: Component) -> io::Result<BTreeMap<u32, ThreadSample>> {
    let mut tasks = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A thread may end while it is looked at.
        if let Ok((name, used)) = named(&entry.path()) {
            let name = without_numbers(&name);
            tasks.insert(id, ThreadSample { component: who, name, usage: used });
        }
    }
    Ok(tasks)
}

/// What a process of one thread used.
///
/// # Errors
/// When it is not there.
pub fn read_process(pid: u32) -> io::Result<CpuUsage> {
    used(Path::new(&format!("/proc/{pid}/task/{pid}")))
}

/// What the children of a process used that have ended.
///
/// # Errors
/// When the process is not there.
pub fn read_ended_children(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    children_time(&stat).ok_or_else(|| malformed("stat"))
}

/// What the cores did since the machine started.
///
/// # Errors
/// When there is no `/proc`.
pub fn read_machine_time() -> io::Result<MachineCpuTime> {
    machine_time(&fs::read_to_string("/proc/stat")?).ok_or_else(|| malformed("/proc/stat"))
}

/// Resident memory of a process, in KiB.
///
/// # Errors
/// When it is not there.
pub fn read_resident_kib(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    field(&status, "VmRSS:").ok_or_else(|| malformed("status"))
}

fn named(task: &Path) -> io::Result<(String, CpuUsage)> {
    let name = fs::read_to_string(task.join("comm"))?;
    Ok((name.trim().to_owned(), used(task)?))
}

fn used(task: &Path) -> io::Result<CpuUsage> {
    let cpu = on_core(&fs::read_to_string(task.join("schedstat"))?).ok_or_else(|| malformed("schedstat"))?;
    let status = fs::read_to_string(task.join("status"))?;
    let count = |name| field(&status, name).ok_or_else(|| malformed("status"));
    Ok(CpuUsage {
        cpu,
        voluntary: count("voluntary_ctxt_switches:")?,
        involuntary: count("nonvoluntary_ctxt_switches:")?,
    })
}

fn malformed(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file} is of another form"))
}

fn on_core(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * (1_000 / TICKS_PER_SECOND))
}

fn children_time(stat: &str) -> Option<Duration> {
    // The name stands in brackets, and may have some itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(ticks(number(CHILDREN_USER)? + number(CHILDREN_SYSTEM)?))
}

fn machine_time(stat: &str) -> Option<MachineCpuTime> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let counts: Vec<u64> = all
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [user, nice, system, idle, waiting, interrupts, soft, stolen, ..] = counts[..] else {
        return None;
    };
    Some(MachineCpuTime {
        busy: ticks(user + nice + system + interrupts + soft + stolen),
        idle: ticks(idle + waiting),
    })
}

fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
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
    fn threads_of_a_kind_have_one_name() {
        for (name, expected) in [
            ("worker-3", "worker-*"),
            ("actix-rt|system", "actix-rt|system"),
            ("lane 12 of 3", "lane * of *"),
        ] {
            assert_eq!(without_numbers(name), expected);
        }
    }

    #[test]
    fn what_linux_writes_is_read() {
        assert_eq!(
            on_core("856061 10669014 2\n"),
            Some(Duration::from_nanos(856_061))
        );
        let status =
            "Name:\tx\nVmRSS:\t  1234 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(field(status, "VmRSS:"), Some(1_234));
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(7));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), Some(2));
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 130 25 20 0";
        assert_eq!(children_time(stat), Some(Duration::from_millis(1_550)));
        let cores = machine_time("cpu  100 0 50 800 20 1 2 27 0 0\ncpu0 1 1\n").unwrap();
        assert_eq!(cores.busy, Duration::from_millis(1_800));
        assert_eq!(cores.idle, Duration::from_millis(8_200));
    }

    #[test]
    fn what_is_of_another_form_is_not_guessed() {
        assert_eq!(on_core(""), None);
        assert_eq!(field("VmRSS:\n", "VmRSS:"), None);
        assert_eq!(children_time("12 (a) S 1"), None);
        assert_eq!(machine_time("cpu 1 2 3\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_used_something() {
        let me = std::process::id();
        let threads = read_threads(me, Component::Generator).unwrap();
        let whole: Duration = threads.values().map(|task| task.usage.cpu).sum();
        assert!(!whole.is_zero(), "{threads:?}");
        assert!(read_resident_kib(me).unwrap() > 0);
        assert!(!read_machine_time().unwrap().busy.is_zero());
    }
}
