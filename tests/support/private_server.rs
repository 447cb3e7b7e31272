//! Private Postgres server of the tests, which stops with this process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use vouchsafe_private_postgres::{DataDir, Durability, PrivatePostgres};

/// Waits until this process has exited and the guard has stopped the server, then removes the directory.
const CLEANUP_SCRIPT: &str = r#"cat >/dev/null
for try in $(seq 100); do
    test -e "$1/data/postgres/data/postmaster.pid" || break
    sleep 0.2
done
exec rm -rf "$1""#;

pub(crate) struct PrivateServer {
    pub(crate) postgres: PrivatePostgres,
    #[allow(dead_code, reason = "only the plan tests read the log")]
    pub(crate) log: PathBuf,
    /// Its standard input is a pipe from this process, so that it runs however this process exits.
    _cleanup: Child,
}

impl PrivateServer {
    pub(crate) fn start(durability: Durability) -> Self {
        let directory = create_directory();
        let cleanup = Command::new("sh")
            .args(["-c", CLEANUP_SCRIPT, "sh"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .spawn();
        let data_dir = DataDir::open(&directory.join("data")).unwrap();
        let executable = Path::new(env!("CARGO_BIN_EXE_vouchsafe"));
        Self {
            postgres: PrivatePostgres::start(&data_dir, executable, durability).unwrap(),
            log: directory.join("data/postgres.log"),
            _cleanup: cleanup.unwrap(),
        }
    }
}

/// Creates a directory that the Postgres user can traverse.
fn create_directory() -> PathBuf {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("vs")
        .permissions(mode)
        .tempdir()
        .unwrap()
        .keep()
}
