//! Private Postgres server of the tests, which stops with this process.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use vouchsafe_private_postgres::{DataDir, Durability, PrivatePostgres};

use crate::process::{program, scratch_directory};

/// Waits until this process has exited and the guard has stopped the server, then removes the directory.
const CLEANUP_SCRIPT: &str = r#"cat >/dev/null
for try in $(seq 100); do
    test -e "$1/data/postgres/data/postmaster.pid" || break
    sleep 0.2
done
exec rm -rf "$1""#;

pub struct PrivateServer {
    pub postgres: PrivatePostgres,
    pub log: PathBuf,
    /// Its standard input is a pipe from this process, so that it runs however this process exits.
    _cleanup: Child,
}

impl PrivateServer {
    pub fn start(durability: Durability) -> Self {
        let directory = scratch_directory().keep();
        let cleanup = Command::new("sh")
            .args(["-c", CLEANUP_SCRIPT, "sh"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .spawn();
        let data_dir = DataDir::open(&directory.join("data")).unwrap();
        Self {
            postgres: PrivatePostgres::start(&data_dir, program(), durability).unwrap(),
            log: directory.join("data/postgres.log"),
            _cleanup: cleanup.unwrap(),
        }
    }
}
