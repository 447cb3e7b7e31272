//! Control of a service that runs under valgrind's callgrind: counting on demand, and counters since the
//! previous reading.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Events that callgrind counts with [`launcher`], in this order.
const EVENTS: &str = "events: Ir sysCount sysTime";

/// Line of a dump with the sums of all events.
const TOTALS: &str = "totals: ";

/// Entry points of the service's allocator. Its C code keeps their names in every profile, and only Rust code
/// calls them.
const ALLOCATORS: [&str; 3] = ["mi_malloc_aligned", "mi_zalloc_aligned", "mi_realloc_aligned"];

/// Counters of the service since the previous reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceCounters {
    pub instructions: u64,
    /// Includes reads of the clock, which need a system call under valgrind only.
    pub system_calls: u64,
    /// Calls of the allocator for new or larger memory.
    pub allocations: u64,
}

/// The command before the program: it counts nothing until [`Callgrind::start`].
pub(super) fn launcher(directory: &Path) -> Vec<OsString> {
    let mut output = OsString::from("--callgrind-out-file=");
    output.push(output_file(directory));
    let fixed = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        "--collect-systime=yes",
        // Threads run in turns, in the order in which they ask.
        "--fair-sched=try",
    ];
    fixed.map(OsString::from).into_iter().chain([output]).collect()
}

fn output_file(directory: &Path) -> PathBuf {
    directory.join("callgrind")
}

/// Version of the installed valgrind, such as `3.19.0`; `None` if there is none.
pub(super) fn valgrind_version() -> Option<String> {
    let output = Command::new("valgrind").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().trim_start_matches("valgrind-").to_owned()).filter(|_| output.status.success())
}

/// A service under callgrind.
pub(super) struct Callgrind {
    pid: u32,
    output: PathBuf,
    dumps: u32,
}

impl Callgrind {
    /// Begins to count.
    pub(super) fn start(pid: u32, directory: &Path) -> anyhow::Result<Self> {
        let callgrind = Self {
            pid,
            output: output_file(directory),
            dumps: 1,
        };
        callgrind.send(&["instrumentation", "on"])?;
        // The first dump may have no counts at all.
        callgrind.send(&["dump"])?;
        Ok(callgrind)
    }

    /// Counters since the previous reading.
    pub(super) fn read(&mut self) -> anyhow::Result<ServiceCounters> {
        self.send(&["dump"])?;
        self.dumps += 1;
        let path = self.output.with_extension(self.dumps.to_string());
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        parse_dump(&text).with_context(|| format!("`{}` is not a dump of callgrind", path.display()))
    }

    fn send(&self, command: &[&str]) -> anyhow::Result<()> {
        let output = Command::new("vgdb")
            .arg(format!("--pid={}", self.pid))
            .args(command)
            .output()
            .context("cannot run vgdb, which is part of valgrind")?;
        ensure!(
            output.status.success(),
            "vgdb: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

fn parse_dump(text: &str) -> Option<ServiceCounters> {
    let mut counters = None;
    let (mut allocations, mut allocators, mut calls_allocator) = (0, HashSet::new(), false);
    let mut has_events = false;
    for line in text.lines() {
        if let Some(callee) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            // The first occurrence of a number has the name.
            let (number, name) = callee.split_once(' ').unwrap_or((callee, ""));
            if ALLOCATORS.contains(&name) {
                allocators.insert(number);
            }
            calls_allocator = line.starts_with("cfn=") && allocators.contains(number);
        } else if let Some(calls) = line.strip_prefix("calls=").filter(|_| calls_allocator) {
            allocations += calls.split(' ').next()?.parse::<u64>().ok()?;
        } else if let Some(totals) = line.strip_prefix(TOTALS) {
            let mut totals = totals.split(' ').map(str::parse);
            counters = Some((totals.next()?.ok()?, totals.next()?.ok()?));
        }
        has_events |= line == EVENTS;
    }
    let (instructions, system_calls) = counters.filter(|_| has_events)?;
    Some(ServiceCounters {
        instructions,
        system_calls,
        allocations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_has_totals_and_calls_of_the_allocator() {
        let dump = "events: Ir sysCount sysTime\nfn=(1) main\n0 7\ncfn=(2) mi_malloc_aligned\ncalls=5 0\n0 90\n\
                    cfn=(3) free\ncalls=8 0\n0 1\nfn=(2)\n0 90\nfn=(4) grow\ncfn=(2)\ncalls=2 0\n0 3\ntotals: 191 12 40\n";
        let expected = ServiceCounters {
            instructions: 191,
            system_calls: 12,
            allocations: 7,
        };
        assert_eq!(parse_dump(dump), Some(expected));
        assert_eq!(parse_dump("events: Ir\ntotals: 191\n"), None);
        assert_eq!(parse_dump(&dump.replace("totals", "summary")), None);
    }
}
