//! Starting and ending the real program.

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

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_vouchsafe");

/// Limits that no test reaches by accident: some place hundreds of orders from one key, and fail from one address to see
/// what they are told. Tests of limits give their partner limits of its own, or start a service with the defaults.
const NO_LIMITS: [(&str, &str); 4] = [
    ("VOUCHSAFE_LIMIT_ORDERS", "1000000/60"),
    ("VOUCHSAFE_LIMIT_GENERAL", "1000000/60"),
    ("VOUCHSAFE_LIMIT_AUTH", "1000000/60"),
    ("VOUCHSAFE_LIMIT_VOUCHERS", "1000000/60"),
];

/// How long a start may take before the test gives up on it: on a busy machine `initdb` takes its time.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// How long a service may take to end: it gives up on its own after 30 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);

/// Runs the service, says its pid, and ends it when nobody holds our end of standard input any more, also when this
/// process was killed. Takes the scratch directory with it where nobody else would.
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

/// A service process of our own.
pub(crate) struct Instance {
    /// The shell that runs the service.
    shell: Child,
    pid: u32,
    http: SocketAddr,
    admin: SocketAddr,
    data_dir: PathBuf,
    settings: Vec<(&'static str, &'static str)>,
    _scratch: Option<TempDir>,
}

/// The service that all tests of this process share.
pub(crate) fn shared() -> &'static Instance {
    static SHARED: OnceLock<Instance> = OnceLock::new();
    SHARED.get_or_init(|| Instance::start_static(&[]))
}

/// A directory that the user of Postgres may pass through, too.
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
    /// A service on an empty data directory of its own.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Like [`Self::start`], with further settings.
    pub(crate) fn start_with(settings: &[(&'static str, &'static str)]) -> Self {
        let scratch = scratch();
        let mut instance = Self::spawn(&scratch.path().join("data"), settings.to_vec(), None);
        instance._scratch = Some(scratch);
        instance
    }

    /// Like [`Self::start_with`], for a static: nothing drops one, so the shell clears its directory away.
    pub(crate) fn start_static(settings: &[(&'static str, &'static str)]) -> Self {
        let scratch = scratch().keep();
        Self::spawn(&scratch.join("data"), settings.to_vec(), Some(&scratch))
    }

    /// Another process on the data directory of this one, which has ended.
    pub(crate) fn restart(&mut self) {
        assert!(self.shell.try_wait().unwrap().is_some(), "it has not ended yet");
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
        // The first output makes the directory; until then there may be none.
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
        // The greeting says that the listeners are bound.
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

    /// Where partners are served, with the prefix.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    /// Where partners are served.
    pub(crate) fn http_address(&self) -> SocketAddr {
        self.http
    }

    /// Where operators are served.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Where operators are served, as a URL.
    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Where it keeps what it needs.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default()
    }

    /// What it said on its terminal so far.
    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("out")).unwrap_or_default()
    }

    /// Every invariant holds in its database, whether it runs or not.
    pub(crate) fn assert_verified(&self) {
        let mut command = Command::new(PROGRAM);
        command
            .arg("--data-dir")
            .arg(&self.data_dir)
            .arg("verify")
            .env_remove("DATABASE_URL");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{complained}");
    }

    /// Asks it to end, as an operator would.
    pub(crate) fn terminate(&self) {
        send_signal(self.pid, Signal::TERM);
    }

    /// SIGTERM, and the exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.wait_for_exit()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        send_signal(self.pid, Signal::KILL);
        self.wait_for_exit();
    }

    /// Waits for the end, and says the exit code.
    pub(crate) fn wait_for_exit(&mut self) -> Option<i32> {
        let shell = &mut self.shell;
        wait_until("the service has ended", STOP_TIMEOUT, || {
            shell.try_wait().unwrap()
        })
        .code()
    }
}

impl Drop for Instance {
    /// The shell does the rest when its input ends; the directory goes after the processes.
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

/// Sends a signal to a process of ours.
pub(crate) fn send_signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Two addresses that nobody listens on.
pub(crate) fn free_addresses() -> [SocketAddr; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

/// Keeps what a process writes in a file, and passes the lines on. It never writes into a full pipe.
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

/// The rest of the first line that begins so.
fn read_prefixed_line(lines: &Receiver<String>, beginning: &str) -> String {
    let line = lines.recv_timeout(START_TIMEOUT).unwrap();
    line.strip_prefix(beginning)
        .unwrap_or_else(|| panic!("{line}"))
        .to_owned()
}
