//! The real program as a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::wait::wait_until;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_vouchsafe");

/// Limits that no test reaches by accident: some tests place hundreds of orders with one key or fail often from one address.
/// Tests of limits set them per partner or start a service with the defaults.
const NO_LIMITS: [(&str, &str); 4] = [
    ("VOUCHSAFE_LIMIT_ORDERS", "1000000/60"),
    ("VOUCHSAFE_LIMIT_GENERAL", "1000000/60"),
    ("VOUCHSAFE_LIMIT_AUTH", "1000000/60"),
    ("VOUCHSAFE_LIMIT_VOUCHERS", "1000000/60"),
];

/// `initdb` is slow on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// The service itself stops within 30 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);

/// Runs the service, prints its pid and stops it when standard input closes, which also happens when the test is killed.
/// Removes the scratch directory if one is given.
const WATCHDOG_SCRIPT: &str = r#"
trap '' INT
scratch=$1; shift
exec 3<&0 </dev/null
"$@" 3<&- &
service=$!
echo "pid $service"
{ read -r _ <&3; kill -TERM $service; } >/dev/null 2>&1 &
watcher=$!
exec 3<&- >/dev/null 2>&1
wait $service
code=$?
kill $watcher
[ -z "$scratch" ] || rm -rf -- "$scratch"
exit $code
"#;

pub(crate) struct Instance {
    /// Parent of the service process.
    shell: Child,
    pid: u32,
    http: SocketAddr,
    admin: SocketAddr,
    data_dir: PathBuf,
    settings: Vec<(&'static str, &'static str)>,
    _scratch: Option<TempDir>,
}

/// Returns the service that all tests of this process share.
pub(crate) fn shared() -> &'static Instance {
    static SHARED: OnceLock<Instance> = OnceLock::new();
    SHARED.get_or_init(|| Instance::start_static(&[]))
}

/// Creates a directory that the Postgres user can traverse.
fn scratch() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("vouchsafe-it-")
        .permissions(mode)
        .tempdir()
        .unwrap()
}

impl Instance {
    /// Starts a service on an empty data directory.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(settings: &[(&'static str, &'static str)]) -> Self {
        let scratch = scratch();
        let mut instance = Self::spawn(&scratch.path().join("data"), settings.to_vec(), None);
        instance._scratch = Some(scratch);
        instance
    }

    /// Like [`Self::start_with`] for a static, which is never dropped: the shell removes its directory.
    pub(crate) fn start_static(settings: &[(&'static str, &'static str)]) -> Self {
        let scratch = scratch().keep();
        Self::spawn(&scratch.join("data"), settings.to_vec(), Some(&scratch))
    }

    /// Starts another process on the data directory of the stopped one.
    pub(crate) fn restart(&mut self) {
        assert!(
            self.shell.try_wait().unwrap().is_some(),
            "the service is still running"
        );
        let mut next = Self::spawn(&self.data_dir, self.settings.clone(), None);
        next._scratch = self._scratch.take();
        *self = next;
    }

    fn spawn(data_dir: &Path, settings: Vec<(&'static str, &'static str)>, scratch: Option<&Path>) -> Self {
        let [http, admin] = free_addresses();
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHDOG_SCRIPT, "sh"])
            .arg(scratch.unwrap_or(Path::new("")));
        command.arg(PROGRAM).arg("--data-dir").arg(data_dir);
        command
            .env("VOUCHSAFE_HTTP_ADDR", http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", admin.to_string());
        command.env_remove("DATABASE_URL").envs(NO_LIMITS);
        command.envs(settings.iter().copied());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        // The program creates the directory, but the log files need it now.
        std::fs::create_dir_all(data_dir.parent().unwrap()).unwrap();
        drop(tee_output(
            shell.stderr.take().unwrap(),
            data_dir.with_extension("log"),
        ));
        let out = tee_output(shell.stdout.take().unwrap(), data_dir.with_extension("out"));
        let pid = read_prefixed_line(&out, "pid ").trim().parse().unwrap();
        let mut instance = Self {
            shell,
            pid,
            http,
            admin,
            data_dir: data_dir.to_owned(),
            settings,
            _scratch: None,
        };
        // The banner is printed after the listeners are bound.
        instance.wait_until_ready(&out);
        instance
    }

    fn wait_until_ready(&mut self, out: &Receiver<String>) {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match out.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains("is ready") => return,
                Ok(_) => {}
                Err(error) => panic!("the service did not start: {error}\n{}", self.log()),
            }
        }
    }

    /// URL of the partner listener with the API prefix.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    pub(crate) fn http_address(&self) -> SocketAddr {
        self.http
    }

    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default()
    }

    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("out")).unwrap_or_default()
    }

    /// Runs `vouchsafe verify` on the service's database, running or stopped.
    pub(crate) fn assert_verified(&self) {
        let mut command = Command::new(PROGRAM);
        command
            .arg("--data-dir")
            .arg(&self.data_dir)
            .arg("verify")
            .env_remove("DATABASE_URL");
        let output = command.output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stdout}{stderr}");
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        send_signal(self.pid, Signal::TERM);
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.wait_for_exit()
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&mut self) {
        send_signal(self.pid, Signal::KILL);
        self.wait_for_exit();
    }

    /// Waits for the process to exit and returns its exit code.
    pub(crate) fn wait_for_exit(&mut self) -> Option<i32> {
        let shell = &mut self.shell;
        wait_until("the service to exit", STOP_TIMEOUT, || shell.try_wait().unwrap()).code()
    }
}

impl Drop for Instance {
    /// The shell stops the service when its input closes. The directory is removed after the processes.
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

pub(crate) fn send_signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

pub(crate) fn free_addresses() -> [SocketAddr; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

/// Copies a process's output into a file and forwards its lines. The pipe never fills up.
fn tee_output(output: impl std::io::Read + Send + 'static, path: PathBuf) -> Receiver<String> {
    let (sender, lines): (Sender<String>, _) = channel();
    std::thread::spawn(move || {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            drop(file.write_all(&line));
            drop(sender.send(String::from_utf8_lossy(&line).into_owned()));
            line.clear();
        }
    });
    lines
}

/// Returns the rest of the first line, which must have this prefix.
fn read_prefixed_line(lines: &Receiver<String>, prefix: &str) -> String {
    let line = lines.recv_timeout(START_TIMEOUT).unwrap();
    line.strip_prefix(prefix)
        .unwrap_or_else(|| panic!("{line}"))
        .to_owned()
}
