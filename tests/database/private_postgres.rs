//! Lifecycle of the private Postgres: start, stop, adoption and kills, with the real guard and server.
//!
//! This test binary, started again as `holder`, plays the service that is killed. Expectations are polled
//! until they hold or time out.

mod harness;
mod kills;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use sqlx::{Connection, Executor, PgConnection};
use vouchsafe_private_postgres::{DataDir, DataDirError, Durability, PostgresError, PrivatePostgres};

use vouchsafe_test_harness::program;

use self::harness::{
    HOLDER_VARIABLE, Holder, TestDataDir, block_on, is_answering, processes_of, query_text, start, wait_until,
};

/// Not a test: the code that a [`Holder`] process runs.
#[test]
fn holder() {
    let Some(path) = std::env::var_os(HOLDER_VARIABLE) else {
        return;
    };
    let data_dir = DataDir::open(Path::new(&path)).unwrap();
    let _postgres = start(&data_dir, Durability::ForTests);
    fs::write(data_dir.path().join("held"), "").unwrap();
    loop {
        thread::park();
    }
}

#[test]
fn first_start_is_durable_and_logs_no_values() {
    let data_dir = TestDataDir::new();
    let postgres = start(&data_dir.open(), Durability::Durable);
    let settings = [
        ("SELECT current_setting('fsync')", "on"),
        ("SELECT current_setting('synchronous_commit')", "on"),
        ("SELECT current_setting('full_page_writes')", "on"),
        ("SELECT current_setting('data_checksums')", "on"),
        ("SELECT current_setting('listen_addresses')", ""),
        ("SELECT current_setting('log_parameter_max_length')", "0"),
        ("SELECT current_setting('log_parameter_max_length_on_error')", "0"),
        ("SELECT current_setting('server_encoding')", "UTF8"),
        (
            "SELECT current_database() || ' ' || current_user",
            "vouchsafe vouchsafe",
        ),
        (
            "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user",
            "false",
        ),
    ];
    for (query, response) in settings {
        assert_eq!(
            query_text(&postgres.connect_options(), query).unwrap(),
            response,
            "{query}"
        );
    }
    violate_unique_constraint(&postgres, "geheim");
    let log = data_dir.log();
    assert!(log.contains("duplicate key") && !log.contains("geheim"), "{log}");
    postgres.stop().unwrap();

    start(&data_dir.open(), Durability::Durable).stop().unwrap();
    assert!(
        !data_dir.log().contains("automatic recovery"),
        "Postgres was not shut down cleanly:\n{}",
        data_dir.log()
    );
}

/// Causes a unique violation whose error detail and statement parameter contain the value.
fn violate_unique_constraint(postgres: &PrivatePostgres, value: &str) {
    let failed = block_on(async {
        let mut connection = PgConnection::connect_with(&postgres.connect_options()).await?;
        connection
            .execute("CREATE TEMPORARY TABLE once (value text PRIMARY KEY)")
            .await?;
        let statement = "INSERT INTO once SELECT $1 FROM generate_series(1, 2)";
        sqlx::query(statement).bind(value).execute(&mut connection).await
    });
    assert!(failed.unwrap_err().to_string().contains("duplicate key"));
}

#[test]
fn connection_without_password_is_rejected() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    let wrong = postgres.connect_options().password("wrong");
    let error = query_text(&wrong, "SELECT 'in'").unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "28P01");
    postgres.stop().unwrap();

    fs::write(data_dir.path().join("postgres-password"), "").unwrap();
    let started = PrivatePostgres::start(&data_dir.open(), program(), Durability::ForTests);
    assert!(matches!(started.err(), Some(PostgresError::PasswordMissing(_))));
}

#[test]
fn stop_leaves_no_process() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    assert!(!processes_of(&data_dir).is_empty());
    postgres.stop().unwrap();
    assert_eq!(processes_of(&data_dir), Vec::<String>::new());
    assert!(matches!(
        vouchsafe_private_postgres::find_running(&data_dir.path()),
        Err(PostgresError::NotRunning(_))
    ));
}

#[test]
fn second_service_is_rejected_with_pid_of_first() {
    let data_dir = TestDataDir::new();
    let holder = Holder::start(&data_dir);
    let DataDirError::InUse { pid, .. } = DataDir::open(&data_dir.path()).unwrap_err() else {
        panic!("the directory must be in use")
    };
    assert_eq!(pid, holder.0.id().to_string());
    // A command needs no lock while the service runs.
    let connection_options = vouchsafe_private_postgres::find_running(&data_dir.path()).unwrap();
    assert_eq!(
        query_text(&connection_options, "SELECT 'beside'").unwrap(),
        "beside"
    );
    holder.kill();
    data_dir.start().stop().unwrap();
}

#[test]
fn guard_lock_check_never_blocks_start() {
    let data_dir = TestDataDir::new();
    data_dir.start().stop().unwrap();
    let holder = Holder::start(&data_dir);
    holder.kill();
    // The guard checks the free lock until it exits.
    let end = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < end {
        drop(DataDir::open(&data_dir.path()).unwrap());
    }
    data_dir.start().stop().unwrap();
}

#[test]
fn reused_pid_in_pid_file_does_not_block_start() {
    let data_dir = TestDataDir::new();
    data_dir.start().stop().unwrap();
    let pid_file = data_dir.path().join("postgres/data/postmaster.pid");
    // As after a reboot: another program of the same user has the last server's pid.
    let mut unrelated = Command::new("cat");
    unrelated.stdin(Stdio::piped());
    if rustix::process::geteuid().is_root() {
        use std::os::unix::{fs::MetadataExt, process::CommandExt};
        let owner = fs::metadata(pid_file.parent().unwrap()).unwrap();
        unrelated.uid(owner.uid()).gid(owner.gid());
    }
    let mut unrelated = unrelated.spawn().unwrap();
    fs::write(
        &pid_file,
        format!("{}\n{}\n", unrelated.id(), pid_file.parent().unwrap().display()),
    )
    .unwrap();
    let postgres = data_dir.start();
    assert!(is_answering(&postgres));
    postgres.stop().unwrap();
    assert!(
        unrelated.try_wait().unwrap().is_none(),
        "the unrelated process must stay alive"
    );
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

#[test]
fn failed_start_reports_log_path() {
    let data_dir = TestDataDir::new();
    data_dir.start().stop().unwrap();
    let control = data_dir.path().join("postgres/data/global/pg_control");
    fs::write(&control, "broken").unwrap();
    let error = PrivatePostgres::start(&data_dir.open(), program(), Durability::ForTests)
        .err()
        .unwrap();
    let PostgresError::StartFailed { log } = &error else {
        panic!("{error}")
    };
    assert!(
        fs::read_to_string(log).unwrap().contains("PANIC"),
        "{}",
        data_dir.log()
    );
    wait_until("all processes to exit", || processes_of(&data_dir).is_empty());
}

#[test]
fn test_databases_are_created_from_template() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    postgres.create_database("template_of_tests", None).unwrap();
    let template = postgres.connect_options().database("template_of_tests");
    query_text(&template, "WITH made AS (SELECT 1) SELECT 'x' FROM made").unwrap();
    postgres
        .create_database("test_1", Some("template_of_tests"))
        .unwrap();
    let options = postgres.connect_options().database("test_1");
    assert_eq!(
        query_text(&options, "SELECT current_database()::text").unwrap(),
        "test_1"
    );
    assert!(matches!(
        postgres.create_database("test_1", None),
        Err(PostgresError::Sql(_))
    ));
    assert!(matches!(
        postgres.create_database("x; --", None),
        Err(PostgresError::BadDatabaseName(_))
    ));
    postgres.stop().unwrap();
}

#[test]
fn data_directory_longer_than_socket_path_works() {
    /// Longer than a socket path may be.
    const DEEP: &str = concat!(
        "a-directory-with-a-name-of-fifty-bytes-or-not-far-off/",
        "a-directory-with-a-name-of-fifty-bytes-or-not-far-off/",
        "data"
    );
    let data_dir = TestDataDir::with_mode(DEEP, 0o755);
    let postgres = data_dir.start();
    assert!(is_answering(&postgres));
    let socket = postgres.connect_options().get_socket().unwrap().clone();
    assert!(!socket.starts_with(data_dir.path()), "{socket:?}");
    postgres.stop().unwrap();
    fs::remove_dir_all(socket).unwrap();
}

#[test]
fn data_directory_inaccessible_to_postgres_user_works() {
    let data_dir = TestDataDir::with_mode("data", 0o700);
    let postgres = data_dir.start();
    assert!(is_answering(&postgres));
    let home = fs::canonicalize(data_dir.path().join("postgres")).unwrap();
    postgres.stop().unwrap();
    // The second start uses the same cluster.
    let second = data_dir.start();
    assert!(is_answering(&second));
    second.stop().unwrap();
    assert_eq!(fs::canonicalize(data_dir.path().join("postgres")).unwrap(), home);
    if rustix::process::geteuid().is_root() {
        assert!(home.starts_with("/var/lib/vouchsafe"), "{home:?}");
        fs::remove_dir_all(home).unwrap();
    } else {
        assert!(
            home.starts_with(fs::canonicalize(data_dir.path()).unwrap()),
            "{home:?}"
        );
    }
}
