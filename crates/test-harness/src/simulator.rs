//! Vendor simulator process: survives every kill of a service and stops with the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::process::program;

/// Stops the simulator when standard input closes, which also happens when the test is killed.
const WATCHDOG_SCRIPT: &str = r#""$@" </dev/null & simulator=$!
cat >/dev/null
kill $simulator
wait $simulator"#;

pub struct VendorSimulator {
    shell: Child,
    stdin: Option<ChildStdin>,
    pub url: String,
}

impl VendorSimulator {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHDOG_SCRIPT, "sh"]).arg(program());
        command.args(["vendor-simulator", "--listen", "127.0.0.1:0"]);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let stdin = shell.stdin.take();
        let mut line = String::new();
        let mut stdout = BufReader::new(shell.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { shell, stdin, url }
    }
}

impl Drop for VendorSimulator {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.shell.wait());
    }
}
