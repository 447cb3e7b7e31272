//! A Postgres server without durability for the tests of one process, on a unix socket.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

/// Runs the server until the pipe to this shell closes, however the tests end, then removes the directory.
const SCRIPT: &str = r#"
    trap '' INT
    cd "$0"
    PATH="$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1)"
    initdb -D data -A trust -U peer --no-sync >log 2>&1
    postgres -D data -k "$0" -c listen_addresses= -c fsync=off </dev/null >>log 2>&1 &
    cat >/dev/null
    kill -INT $!
    wait $!
    rm -rf "$0"
"#;

struct Server {
    home: PathBuf,
    _supervisor: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();

/// Starts the server at the first call; returns the superuser's options.
pub(crate) async fn superuser_options() -> PgConnectOptions {
    let home = &SERVER.get_or_init(start).home;
    let options = PgConnectOptions::new_without_pgpass()
        .socket(home)
        .username("peer")
        .database("postgres");
    // Only a hang takes this long.
    let deadline = Instant::now() + Duration::from_mins(5);
    loop {
        match PgConnection::connect_with(&options).await {
            Ok(_) => return options,
            Err(_) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}: {:?}", std::fs::read_to_string(home.join("log"))),
        }
    }
}

fn start() -> Server {
    let mode = std::fs::Permissions::from_mode(0o700);
    let home = tempfile::Builder::new()
        .permissions(mode)
        .tempdir()
        .unwrap()
        .keep();
    let mut supervisor = Command::new("sh");
    supervisor.args(["-c", SCRIPT]).arg(&home).stdin(Stdio::piped());
    // Postgres refuses to run as root.
    if id("-u", "").as_deref() == Some("0") {
        let number = |flag| id(flag, "postgres").unwrap().parse().unwrap();
        let (uid, gid) = (number("-u"), number("-g"));
        chown(&home, Some(uid), Some(gid)).unwrap();
        supervisor.uid(uid).gid(gid);
    }
    Server {
        home,
        _supervisor: supervisor.spawn().unwrap(),
    }
}

/// User or group id of an account, or of this process.
fn id(flag: &str, account: &str) -> Option<String> {
    let mut command = Command::new("id");
    command
        .arg(flag)
        .args(Some(account).filter(|account| !account.is_empty()));
    Some(
        String::from_utf8(command.output().ok()?.stdout)
            .ok()?
            .trim()
            .to_owned(),
    )
}
