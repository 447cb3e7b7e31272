//! Postgres servers that tests replicate, kill, freeze and promote. They listen on loopback, trust their
//! clients, and stop with this process.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};

use crate::process::{free_address, send_signal};
use crate::wait::{WAIT_TIMEOUT, eventually, wait_until};

const SUPERUSER: &str = "admin";
const DATABASE: &str = "vouchsafe";

/// Small and without fsync: a killed process loses nothing of what it has written.
const SETTINGS: [&str; 9] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "max_connections=150",
    "shared_buffers=32MB",
    "min_wal_size=32MB",
    "wal_keep_size=256MB",
    "wal_receiver_status_interval=1s",
    "wal_retrieve_retry_interval=100ms",
];

/// Runs the server until its standard input ends, which is a pipe from this process.
const SUPERVISOR_SCRIPT: &str = r#"
"$@" &
read -r _
kill -CONT $! 2>/dev/null
kill -QUIT $! 2>/dev/null
wait"#;

/// A server with the database and the role `vouchsafe`.
#[derive(Debug)]
pub struct PostgresServer {
    data: PathBuf,
    address: SocketAddr,
    supervisor: Option<Child>,
}

impl PostgresServer {
    /// Creates and starts a primary with an empty database. Blocks.
    pub fn create(scratch: &Path) -> Self {
        let mut server = Self::in_new_directory(scratch);
        let mut initdb = server.command("initdb");
        initdb.args([
            "--username",
            SUPERUSER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]);
        run(initdb
            .args(["--no-sync", "--data-checksums", "--pgdata"])
            .arg(&server.data));
        server.start();
        server
    }

    /// Copies this primary, and starts the copy as its standby with the replication name `name`. Blocks.
    pub fn create_standby(&self, scratch: &Path, name: &str) -> Self {
        let mut standby = Self::in_new_directory(scratch);
        standby.copy(self, name);
        standby.start();
        standby
    }

    /// Replaces this stopped server by a standby of another one, at the same address. Blocks.
    pub fn return_as_standby(&mut self, primary: &Self, name: &str) {
        fs::remove_dir_all(&self.data).unwrap();
        self.copy(primary, name);
        self.start();
    }

    fn copy(&self, primary: &Self, name: &str) {
        let source = format!(
            "host=127.0.0.1 port={} user={SUPERUSER} application_name={name}",
            primary.address.port()
        );
        let mut backup = self.command("pg_basebackup");
        backup.args([
            "--no-sync",
            "--checkpoint=fast",
            "--write-recovery-conf",
            "--dbname",
            &source,
        ]);
        run(backup.arg("--pgdata").arg(&self.data));
    }

    fn in_new_directory(scratch: &Path) -> Self {
        let address = free_address();
        let home = scratch.join(format!("postgres-{}", address.port()));
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        if let Some((uid, gid)) = unprivileged_account() {
            chown(&home, Some(uid), Some(gid)).unwrap();
        }
        Self {
            data: home.join("data"),
            address,
            supervisor: None,
        }
    }

    /// Postgres refuses to run as root.
    fn command(&self, name: &str) -> Command {
        as_unprivileged(Command::new(postgres_program(name)), &self.data)
    }

    /// Starts the stopped server. Blocks until it answers.
    pub fn start(&mut self) {
        assert!(self.supervisor.is_none(), "the server is still running");
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.data.with_extension("log"))
            .unwrap();
        let mut supervisor = Command::new("sh");
        supervisor.args(["-c", SUPERVISOR_SCRIPT, "sh"]);
        supervisor
            .arg(postgres_program("postgres"))
            .arg("-D")
            .arg(&self.data);
        supervisor.arg("-p").arg(self.address.port().to_string());
        supervisor.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        let mut supervisor = as_unprivileged(supervisor, &self.data);
        supervisor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.supervisor = Some(supervisor.spawn().unwrap());
        let mut is_ready = self.command("pg_isready");
        is_ready.args([
            "--quiet",
            "--host=127.0.0.1",
            "--port",
            &self.address.port().to_string(),
        ]);
        wait_until("Postgres to accept connections", WAIT_TIMEOUT, || {
            is_ready.status().unwrap().success().then_some(())
        });
    }

    /// Creates the role of the service, which may read the state of standbys, and its database.
    pub async fn create_database(&self) {
        let mut superuser = PgConnection::connect_with(&self.superuser_options().database("postgres"))
            .await
            .unwrap();
        for statement in [
            "CREATE ROLE vouchsafe LOGIN",
            "GRANT pg_monitor TO vouchsafe",
            "CREATE DATABASE vouchsafe OWNER vouchsafe",
        ] {
            superuser.execute(statement).await.unwrap();
        }
    }

    /// `127.0.0.1:PORT`.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn superuser_options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.address.port())
            .username(SUPERUSER)
            .database(DATABASE)
    }

    /// Runs statements as the superuser.
    pub async fn execute(&self, statements: &'static str) {
        let mut superuser = PgConnection::connect_with(&self.superuser_options())
            .await
            .unwrap();
        superuser.execute(sqlx::raw_sql(statements)).await.unwrap();
    }

    /// Makes commits wait for a standby from now on.
    pub async fn replicate_synchronously(&self) {
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            .await;
        self.execute("SELECT pg_reload_conf()").await;
    }

    /// Makes commits wait for no standby from now on.
    pub async fn replicate_asynchronously(&self) {
        self.execute("ALTER SYSTEM RESET synchronous_standby_names").await;
        self.execute("SELECT pg_reload_conf()").await;
    }

    /// Waits until this standby has what the primary has written.
    pub async fn wait_for_replay_of(&self, primary: &Self) {
        let mut superuser = PgConnection::connect_with(&primary.superuser_options())
            .await
            .unwrap();
        let written: String = sqlx::query_scalar("SELECT pg_current_wal_flush_lsn()::text")
            .fetch_one(&mut superuser)
            .await
            .unwrap();
        let mut superuser = PgConnection::connect_with(&self.superuser_options())
            .await
            .unwrap();
        eventually("the standby to follow", WAIT_TIMEOUT, async || {
            let is_replayed = sqlx::query_scalar("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn");
            let is_replayed: bool = is_replayed
                .bind(&written)
                .fetch_one(&mut superuser)
                .await
                .unwrap();
            is_replayed.then_some(())
        })
        .await;
    }

    /// Cuts this standby off from its primary, and waits until it receives nothing more.
    pub async fn stop_receiving(&self) {
        self.execute("ALTER SYSTEM SET primary_conninfo = ''").await;
        self.execute("SELECT pg_reload_conf()").await;
        let mut superuser = PgConnection::connect_with(&self.superuser_options())
            .await
            .unwrap();
        eventually("the standby to be cut off", WAIT_TIMEOUT, async || {
            let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
            let count: i64 = sqlx::query_scalar(receivers)
                .fetch_one(&mut superuser)
                .await
                .unwrap();
            (count == 0).then_some(())
        })
        .await;
    }

    /// Makes a standby the primary, and waits until it is.
    pub async fn promote(&self) {
        self.execute("SELECT pg_promote()").await;
    }

    fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.data.join("postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }

    /// Sends SIGKILL to the server and its backends.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait_for_supervisor();
    }

    /// Suspends the server and its backends, as a lost network does: connections stay open, and nothing
    /// answers.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.pid();
        // First the server, which would start other processes.
        send_signal(pid, signal);
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let pid = Pid::from_raw(child.parse().unwrap()).unwrap();
            match kill_process(pid, signal) {
                // It has ended with its server.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => panic!("signal a backend: {error}"),
            }
        }
    }

    fn wait_for_supervisor(&mut self) {
        let mut supervisor = self.supervisor.take().expect("the server is running");
        drop(supervisor.stdin.take());
        supervisor.wait().unwrap();
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.supervisor.is_some() {
            self.kill();
        }
    }
}

/// `DATABASE_URL` of the role `vouchsafe` with these servers, in this order.
pub fn database_url<'a>(servers: impl IntoIterator<Item = &'a PostgresServer>) -> String {
    let addresses = servers.into_iter().map(|server| server.address.to_string());
    let addresses: Vec<String> = addresses.collect();
    format!(
        "postgres://vouchsafe@{}/{DATABASE}?target_session_attrs=read-write",
        addresses.join(",")
    )
}

/// The newest installed program of Postgres with this name.
pub fn postgres_program(name: &str) -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = installed.map(|version| version.unwrap().path().join("bin").join(name));
    let newest = versions.filter(|path| path.exists()).max();
    newest.unwrap_or_else(|| PathBuf::from(name))
}

/// The account of Postgres if this process runs as root.
fn unprivileged_account() -> Option<(u32, u32)> {
    let number = |flag: &str| {
        let output = Command::new("id").args([flag, "postgres"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    };
    geteuid().is_root().then(|| (number("-u"), number("-g")))
}

fn as_unprivileged(mut command: Command, data: &Path) -> Command {
    command.env("LC_ALL", "C").current_dir(data.parent().unwrap());
    if let Some((uid, gid)) = unprivileged_account() {
        command.uid(uid).gid(gid);
    }
    command
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
