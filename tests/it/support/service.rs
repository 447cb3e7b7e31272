//! Starting and ending the real program.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a start may take before the test gives up on it: on a busy machine `initdb` takes its time.
const START_DEADLINE: Duration = Duration::from_secs(90);

/// How long a service may take to end.
const STOP_DEADLINE: Duration = Duration::from_secs(40);

/// A service process of our own.
pub(crate) struct Instance {
    child: Child,
    http: SocketAddr,
    admin: SocketAddr,
    data_dir: PathBuf,
    _owned: Option<TempDir>,
}

/// The service that all tests of this process share.
pub(crate) fn shared() -> &'static Instance {
    static SHARED: OnceLock<Instance> = OnceLock::new();
    SHARED.get_or_init(|| Instance::start_watched(tempdir()))
}

/// A directory that the user of Postgres may pass through, too.
fn tempdir() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::Builder::new().prefix("vouchsafe-it-").tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

impl Instance {
    /// A service on an empty data directory of its own.
    pub(crate) fn start() -> Self {
        let directory = tempdir();
        let mut instance = Self::start_on(&directory.path().join("data"), &[]);
        instance._owned = Some(directory);
        instance
    }

    /// A service on this data directory, with further settings.
    pub(crate) fn start_on(data_dir: &Path, settings: &[(&str, &str)]) -> Self {
        let [http, admin] = free_addresses();
        let mut command = Command::new(env!("CARGO_BIN_EXE_vouchsafe"));
        command.arg("--data-dir").arg(data_dir).envs(settings.iter().copied());
        Self::spawn(command, http, admin, data_dir)
    }

    /// Like [`Self::start`], with a shell that ends the service when this process is gone.
    fn start_watched(directory: TempDir) -> Self {
        let [http, admin] = free_addresses();
        let data_dir = directory.path().join("data");
        let mut command = Command::new("sh");
        command.arg("-c").arg(r#""$@" & service=$!; read -r _; kill -TERM $service; wait $service"#).arg("sh");
        command.arg(env!("CARGO_BIN_EXE_vouchsafe")).arg("--data-dir").arg(&data_dir).stdin(Stdio::piped());
        let mut instance = Self::spawn(command, http, admin, &data_dir);
        instance._owned = Some(directory);
        instance
    }

    fn spawn(mut command: Command, http: SocketAddr, admin: SocketAddr, data_dir: &Path) -> Self {
        command
            .env("VOUCHSAFE_HTTP_ADDR", http.to_string())
            .env("VOUCHSAFE_ADMIN_ADDR", admin.to_string())
            .env_remove("DATABASE_URL")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let kept = data_dir.with_extension("log");
        std::thread::spawn(move || keep(log, &kept));
        wait_until_ready(&mut child);
        Self { child, http, admin, data_dir: data_dir.to_owned(), _owned: None }
    }

    /// Where partners are served, with the prefix.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.http)
    }

    /// Where operators are served.
    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// Where it keeps what it needs.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM, and the exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        self.ended()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end, and says the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + STOP_DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the service does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            self.stop();
        }
    }
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// Two addresses that nobody listens on.
fn free_addresses() -> [SocketAddr; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

/// The greeting says that the listeners are bound.
fn wait_until_ready(child: &mut Child) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (sender, greeted) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let ready = out.read_line(&mut line).is_ok_and(|_| line.contains("is ready"));
        drop(sender.send(ready));
        // Read on, so that the service never writes into a full pipe.
        drop(out.read_to_end(&mut Vec::new()));
    });
    let ready = greeted.recv_timeout(START_DEADLINE);
    assert_eq!(ready, Ok(true), "the service did not start: {:?}", child.try_wait());
}

fn keep(mut log: impl std::io::Read, path: &Path) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    drop(std::io::copy(&mut log, &mut file));
}
