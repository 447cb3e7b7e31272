//! The service as a process: started, stopped, killed and restarted on the same addresses.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::prepared_data;
use crate::process::{free_address, program, scratch_directory, send_signal};
use crate::wait::{WAIT_TIMEOUT, wait_until};

/// A limit that no test reaches by accident: some tests place hundreds of orders with one key or fail often
/// from one address. Tests of limits set them per partner or start a service with the defaults.
pub const NO_LIMIT: &str = "1000000/60";

/// More requests in flight per API key than a test sends.
const NO_IN_FLIGHT_LIMIT: &str = "65535";

/// More connections than a test opens: all of them come from one address.
const NO_CONNECTION_LIMIT: &str = "1000000";

const LIMITS: [&str; 4] = [
    "VOUCHSAFE_LIMIT_ORDERS",
    "VOUCHSAFE_LIMIT_GENERAL",
    "VOUCHSAFE_LIMIT_AUTH",
    "VOUCHSAFE_LIMIT_VOUCHERS",
];

/// Lines of the log that an error shows.
const LOG_TAIL: usize = 30;

/// Stops the service when the test dies: the pipe from the test closes without a line. A suspended service
/// stops as well. Waits for the service's Postgres and removes the directory if one is given.
const WATCHDOG_SCRIPT: &str = r#"trap '' INT
read -r _ && exit
kill -TERM "$1" && kill -CONT "$1"
[ -n "$2" ] || exit
for try in $(seq 200); do
    test -e "$2/data/postgres/data/postmaster.pid" || break
    sleep 0.2
done
exec rm -rf -- "$2""#;

pub struct Instance {
    program: PathBuf,
    data_dir: PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
    settings: Vec<(String, String)>,
    /// Limit of open files; `None`: that of the tests.
    open_files: Option<u32>,
    running: Option<(Child, Watchdog)>,
    /// Removed after the process has exited.
    _scratch: Option<TempDir>,
    /// Directory that the watchdog removes.
    kept_scratch: Option<PathBuf>,
}

/// Returns the service that all tests of this process share.
pub fn shared() -> &'static Instance {
    static SHARED: OnceLock<Instance> = OnceLock::new();
    SHARED.get_or_init(|| Instance::start_static(&[]))
}

impl Instance {
    /// A service that is not started yet.
    pub fn new(data_dir: &Path, settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter();
        Self {
            program: program().to_owned(),
            data_dir: data_dir.to_owned(),
            http: free_address(),
            admin: free_address(),
            settings: settings
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            open_files: None,
            running: None,
            _scratch: None,
            kept_scratch: None,
        }
    }

    /// Runs this copy of the program, which a concurrent build does not replace between restarts.
    pub fn with_program(mut self, program: PathBuf) -> Self {
        self.program = program;
        self
    }

    /// Starts a service whose data directory is like that of a new sandbox.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let scratch = scratch_directory();
        let mut instance = Self::on_new_directory(scratch.path(), settings);
        instance._scratch = Some(scratch);
        instance.restart();
        instance
    }

    /// Starts as [`Self::start_with`] does, with this limit of open files.
    pub fn start_with_open_files(limit: u32, settings: &[(&str, &str)]) -> Self {
        let scratch = scratch_directory();
        let mut instance = Self::on_new_directory(scratch.path(), settings);
        instance.open_files = Some(limit);
        instance._scratch = Some(scratch);
        instance.restart();
        instance
    }

    fn on_new_directory(scratch: &Path, settings: &[(&str, &str)]) -> Self {
        let data_dir = scratch.join("data");
        if prepared_data::fits(settings) {
            prepared_data::copy_to(&data_dir, |empty| {
                let mut first = Self::new(empty, &[]);
                first.restart();
                assert_eq!(first.stop(), Some(0), "{}", first.log_tail());
            });
        }
        Self::new(&data_dir, settings)
    }

    /// Starts as [`Self::start_with`] does, for a static, which is never dropped: the watchdog removes its
    /// directory.
    pub fn start_static(settings: &[(&str, &str)]) -> Self {
        let scratch = scratch_directory().keep();
        let mut instance = Self::on_new_directory(&scratch, settings);
        instance.kept_scratch = Some(scratch);
        instance.restart();
        instance
    }

    /// Starts the stopped service and returns the time until it was ready.
    pub fn restart(&mut self) -> Duration {
        let begun_at = Instant::now();
        self.spawn();
        self.wait_until_ready();
        begun_at.elapsed()
    }

    /// Starts the process without waiting for readiness.
    pub fn spawn(&mut self) {
        assert!(self.running.is_none(), "the service is still running");
        let [out, log] = ["out", "log"].map(|extension| {
            let mut file = OpenOptions::new();
            let path = self.data_dir.with_extension(extension);
            file.create(true).append(true).open(path).unwrap()
        });
        let mut command = match self.open_files {
            None => Command::new(&self.program),
            Some(limit) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", r#"ulimit -n "$0" && exec "$@""#, &limit.to_string()]);
                shell.arg(&self.program);
                shell
            }
        };
        let child = command
            .arg("--data-dir")
            .arg(&self.data_dir)
            .env_remove("DATABASE_URL")
            .envs(LIMITS.map(|name| (name, NO_LIMIT)))
            .env("VOUCHSAFE_MAX_IN_FLIGHT", NO_IN_FLIGHT_LIMIT)
            .env("VOUCHSAFE_MAX_CONNECTIONS_PER_ADDRESS", NO_CONNECTION_LIMIT)
            .env("VOUCHSAFE_HTTP_ADDR", self.http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", self.admin.to_string())
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()
            .unwrap();
        let watchdog = Watchdog::start(child.id(), self.kept_scratch.as_deref());
        self.running = Some((child, watchdog));
    }

    /// The listener that readiness probes ask: one without TLS.
    fn probed_address(&self) -> SocketAddr {
        let has_tls = |(name, _): &(String, String)| name == "VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE";
        if self.settings.iter().any(has_tls) {
            self.http
        } else {
            self.admin
        }
    }

    pub fn wait_until_ready(&mut self) {
        wait_until("the service to be ready", WAIT_TIMEOUT, || {
            if let Some((child, _)) = &mut self.running
                && let Some(status) = child.try_wait().unwrap()
            {
                panic!("the service exited: {status}\n{}", self.log_tail());
            }
            is_ready(self.probed_address()).then_some(())
        });
    }

    /// URL of the partner listener with the API prefix.
    pub fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    pub fn http_address(&self) -> SocketAddr {
        self.http
    }

    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    pub fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("the service is running").0.id()
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub fn operator_token(&self) -> String {
        let token = std::fs::read_to_string(self.data_dir.join("operator-token")).unwrap();
        token.trim().to_owned()
    }

    /// What the service has written to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default()
    }

    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }

    pub fn stdout(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("out")).unwrap_or_default()
    }

    /// Runs `vouchsafe verify` on the service's database, running or stopped.
    pub fn assert_verified(&self) {
        let mut command = Command::new(&self.program);
        command.arg("verify").arg("--data-dir").arg(&self.data_dir);
        let output = command.env_remove("DATABASE_URL").output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(
            output.status.success(),
            "verify: {}\n{stdout}{stderr}",
            output.status
        );
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        send_signal(self.pid(), Signal::TERM);
    }

    /// Sends SIGTERM and returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.wait_for_exit()
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        send_signal(self.pid(), Signal::KILL);
        self.wait_for_exit();
    }

    /// Waits for the process to exit and returns its exit code.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        let (mut child, watchdog) = self.running.take().expect("the service is running");
        let status = wait_until("the service to exit", WAIT_TIMEOUT, || child.try_wait().unwrap());
        watchdog.dismiss();
        status.code()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some((mut child, watchdog)) = self.running.take() {
            drop(watchdog);
            let deadline = Instant::now() + WAIT_TIMEOUT;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Returns whether `/readyz` responds with success.
fn is_ready(address: SocketAddr) -> bool {
    let probe = || -> std::io::Result<String> {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(WAIT_TIMEOUT))?;
        connection.write_all(b"GET /readyz HTTP/1.1\r\nhost: vouchsafe.test\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        connection.read_to_string(&mut response)?;
        Ok(response)
    };
    probe().is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}

/// A shell that terminates the service when it or this process is dropped, unless dismissed.
struct Watchdog(Child);

impl Watchdog {
    fn start(pid: u32, scratch: Option<&Path>) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCHDOG_SCRIPT, "sh", &pid.to_string()]);
        shell.arg(scratch.unwrap_or(Path::new("")));
        Self(shell.stdin(Stdio::piped()).spawn().unwrap())
    }

    fn dismiss(mut self) {
        writeln!(self.0.stdin.take().unwrap()).unwrap();
        self.0.wait().unwrap();
    }
}
