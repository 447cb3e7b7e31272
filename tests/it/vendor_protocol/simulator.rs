//! Vendor simulator process and captured log.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use tracing::Level;

use crate::support::PROGRAM;

/// Stops the simulator when standard input closes, which also happens when the test is killed.
const WATCHDOG_SCRIPT: &str = r#""$@" </dev/null & simulator=$!
cat >/dev/null
kill $simulator
wait $simulator"#;

pub(crate) struct Simulator {
    shell: Child,
    stdin: Option<ChildStdin>,
    pub(crate) url: String,
}

impl Simulator {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            WATCHDOG_SCRIPT,
            "sh",
            PROGRAM,
            "vendor-simulator",
            "--listen",
            "127.0.0.1:0",
        ]);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let stdin = shell.stdin.take();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { shell, stdin, url }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.shell.wait());
    }
}

#[derive(Clone, Default)]
pub(super) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    /// Captures every log line of this thread from now on.
    pub(super) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(Level::TRACE);
        let guard = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
        (log, guard)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}
