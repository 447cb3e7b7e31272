//! Sampling profile of the service with Linux `perf`, as folded stacks: a line per stack with its number of
//! samples, from which a flame graph is drawn. The software clock works in virtual machines, too.
//!
//! Rule: a profiled run says what takes time and not how much: sampling copies part of each stack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Samples per second and busy core; no multiple of the intervals of timers.
const FREQUENCY: &str = "197";

/// Unwinds from copies of the stack, because the programs have no frame pointers.
const CALL_GRAPH: &str = "dwarf,16384";

/// Stops if it is dropped.
pub(crate) struct StackSampler {
    perf: Child,
    data: PathBuf,
}

impl StackSampler {
    /// Samples a process after `delay`, with its data in a directory.
    pub(crate) fn start(pid: u32, delay: Duration, directory: &Path) -> anyhow::Result<Self> {
        let data = directory.join("perf.data");
        let perf = Command::new("perf")
            .args(["record", "--quiet", "--event", "cpu-clock", "--freq", FREQUENCY])
            .args(["--call-graph", CALL_GRAPH, "--pid", &pid.to_string()])
            .args(["--delay", &delay.as_millis().max(1).to_string(), "--output"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start perf: install it, for example Debian's package linux-perf")?;
        Ok(Self { perf, data })
    }

    /// Stops and returns the folded stacks below a frame with this name.
    pub(crate) fn stop(mut self, root: &str) -> anyhow::Result<String> {
        self.interrupt().context("perf did not stop")?;
        let output = Command::new("perf")
            // Inlined functions would take minutes: perf asks another program for each address.
            .args(["script", "--no-inline", "--fields", "comm,ip,sym", "--input"])
            .arg(&self.data)
            .output()
            .context("cannot read the samples of perf")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "perf recorded no samples: {error}");
        let stacks = fold(&String::from_utf8_lossy(&output.stdout));
        let lines = stacks
            .iter()
            .map(|(stack, count)| format!("{root};{stack} {count}\n"));
        Ok(lines.collect())
    }

    /// `perf` writes its data when it is interrupted.
    fn interrupt(&mut self) -> std::io::Result<()> {
        // It may have ended by itself, with the process or an error.
        let _ = kill_process(Pid::from_child(&self.perf), Signal::INT);
        self.perf.wait().map(drop)
    }
}

impl Drop for StackSampler {
    fn drop(&mut self) {
        // The run failed with another error.
        let _ = self.interrupt();
    }
}

/// Counts equal stacks, from the thread's name to the innermost function. A sample of `perf script` has the
/// name on a line of its own, then the frames from the innermost one, then an empty line.
fn fold(script: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for sample in script.split("\n\n") {
        let mut lines = sample.trim_matches('\n').lines();
        let Some(thread) = lines.next().filter(|thread| !thread.is_empty()) else {
            continue;
        };
        let mut frames: Vec<_> = lines.filter_map(function_name).collect();
        frames.push(thread.trim());
        frames.reverse();
        *stacks.entry(frames.join(";")).or_default() += 1;
    }
    stacks
}

/// The function in a line `ADDRESS NAME`, without the hash of its compilation.
fn function_name(line: &str) -> Option<&str> {
    let (_, name) = line.trim().split_once(' ')?;
    Some(match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 => name,
        _ => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_counted_from_the_thread_to_the_innermost_function() {
        let sample = "actix-rt|system\n\t    55d0 place_order::h0123456789abcdef\n\t    55c0 \
            <core::pin::Pin<P> as Future>::poll\n\t    7f00 [unknown]\n\n";
        let script = format!("{sample}lane-0\n\t    55d0 commit\n\n{sample}");
        let stacks: Vec<_> = fold(&script).into_iter().collect();
        let stack = "actix-rt|system;[unknown];<core::pin::Pin<P> as Future>::poll;place_order";
        assert_eq!(stacks, [(stack.to_owned(), 2), ("lane-0;commit".to_owned(), 1)]);
        assert!(fold("").is_empty());
    }
}
