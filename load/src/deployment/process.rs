//! Parts of a deployment's process: free ports, waiting for the end, and a watchdog that cleans up.
//!
//! The ports lie below the ephemeral range: a client that connects to a closed port of that range can be
//! connected to itself, and the service would then find its address in use.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Polling interval.
pub(super) const POLL: Duration = Duration::from_millis(20);

const PORTS: std::ops::Range<u16> = 20_000..32_000;

pub(super) fn wait_for_exit(
    child: &mut Child,
    time: Duration,
) -> std::io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + time;
    loop {
        let exit_status = child.try_wait()?;
        if exit_status.is_some() || Instant::now() >= deadline {
            return Ok(exit_status);
        }
        thread::sleep(POLL);
    }
}

/// Cleans up if this process is killed: a shell holds the read end of a pipe and acts when the pipe closes
/// without a line.
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Stops the service, waits for it, and removes the directory.
    pub(super) fn start(pid: u32, directory: &Path) -> std::io::Result<Self> {
        // The shell must survive a signal to the process group, for example from the terminal.
        let script = r#"
            trap '' INT TERM HUP
            read -r _ && exit
            kill -TERM "$0"
            while kill -0 "$0" 2>/dev/null; do sleep 0.2; done
            rm -rf -- "$1"
        "#;
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(script)
            .arg(pid.to_string())
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        shell.spawn().map(Self)
    }

    pub(super) fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // The shell may have ended.
            let _ = writeln!(pipe);
        }
        let _ = self.0.wait();
    }
}

/// Finds two free addresses. The search starts at a port derived from the process id and continues over all
/// deployments of the process, so that concurrent searches find different ports.
pub(super) fn free_addresses() -> anyhow::Result<(SocketAddr, SocketAddr)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = u32::from(PORTS.end - PORTS.start);
    let mut free = (0..span)
        .map(|_| std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % span)
        .filter_map(|offset| u16::try_from(u32::from(PORTS.start) + offset).ok())
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .filter(|address| TcpListener::bind(address).is_ok());
    let addresses = free.next().zip(free.next());
    addresses.with_context(|| format!("no free port in {PORTS:?}"))
}
