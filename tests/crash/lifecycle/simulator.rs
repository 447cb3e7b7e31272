//! Vendor simulator process: survives every kill and stops with the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::program::Program;

pub(super) const VENDOR_ID: &str = "simulator";

/// Stops the simulator when standard input closes, which also happens when the test is killed.
const WATCHDOG_SCRIPT: &str = r#""$@" </dev/null & simulator=$!
cat >/dev/null
kill $simulator
wait $simulator"#;

pub(super) struct Simulator {
    shell: Child,
    stdin: Option<ChildStdin>,
    pub(super) url: String,
}

impl Simulator {
    pub(super) fn start(program: &Program) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHDOG_SCRIPT, "sh"])
            .arg(program.binary())
            .args(["vendor-simulator", "--listen", "127.0.0.1:0"]);
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
