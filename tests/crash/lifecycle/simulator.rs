//! A vendor over HTTP that lives through everything, and goes with the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::program::Program;

/// Under which id it is put.
pub(super) const VENDOR_ID: &str = "simulator";

/// Ends the simulator when nobody holds our end of standard input any more, also when the test was killed.
const WATCHDOG_SCRIPT: &str = r#""$@" </dev/null & simulator=$!
cat >/dev/null
kill $simulator
wait $simulator"#;

/// A simulator of our own.
pub(super) struct Simulator {
    shell: Child,
    stdin: Option<ChildStdin>,
    pub(super) url: String,
}

impl Simulator {
    pub(super) fn start(program: &Program) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHDOG_SCRIPT, "sh"]).arg(program.binary()).args([
            "vendor-simulator",
            "--listen",
            "127.0.0.1:0",
        ]);
        let mut shell = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = shell.stdin.take();
        let mut line = String::new();
        let stdout = shell.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
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
