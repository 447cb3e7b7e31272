//! Does the private Postgres live and die as it promises?
//!
//! Against the real executable as the guard and a real server. A service that is killed is played by this test binary
//! itself, started again to hold a data directory until it dies. Nothing here sleeps for a result: each expectation is
//! asked again until it holds or its deadline has passed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it cannot go on"
)]

#[path = "private_postgres/kills.rs"]
mod kills;
#[path = "private_postgres/harness.rs"]
mod harness;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use sqlx::{Connection, Executor, PgConnection};
use vouchsafe::postgres::{self, DataDir, DataDirError, Durability, PostgresError, PrivatePostgres};

use crate::harness::{
    EXIT_TIMEOUT, EXECUTABLE, HOLDER_VARIABLE, Holder, TestDataDir, WAIT_TIMEOUT, is_answering, query_text, processes_of, start, wait_until,
};

/// No test of its own: what a [`Holder`] runs.
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
fn it_starts_in_seconds_and_is_durable_and_silent() {
    let place = TestDataDir::new();
    let begin = Instant::now();
    let postgres = start(&place.open(), Durability::Durable);
    assert!(begin.elapsed() < WAIT_TIMEOUT, "first start took {:?}", begin.elapsed());
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
    for (question, answer) in settings {
        assert_eq!(
            query_text(&postgres.connect_options(), question).unwrap(),
            answer,
            "{question}"
        );
    }
    violate_unique_constraint(&postgres, "geheim");
    let log = place.log();
    assert!(log.contains("duplicate key") && !log.contains("geheim"), "{log}");
    postgres.stop().unwrap();

    let begin = Instant::now();
    let again = start(&place.open(), Durability::Durable);
    assert!(
        begin.elapsed() < EXIT_TIMEOUT,
        "second start took {:?}",
        begin.elapsed()
    );
    again.stop().unwrap();
    assert!(
        !place.log().contains("automatic recovery"),
        "it was not shut down properly:\n{}",
        place.log()
    );
}

/// A unique violation, whose detail would name the value, in a statement whose parameter it is.
fn violate_unique_constraint(postgres: &PrivatePostgres, value: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let failed = runtime.block_on(async {
        let mut connection = PgConnection::connect_with(&postgres.connect_options()).await?;
        connection
            .execute("CREATE TEMPORARY TABLE once (value text PRIMARY KEY)")
            .await?;
        let twice = "INSERT INTO once SELECT $1 FROM generate_series(1, 2)";
        sqlx::query(twice).bind(value).execute(&mut connection).await
    });
    assert!(failed.unwrap_err().to_string().contains("duplicate key"));
}

#[test]
fn nobody_comes_in_without_the_password() {
    let place = TestDataDir::new();
    let postgres = place.start();
    let wrong = postgres.connect_options().password("wrong");
    let error = query_text(&wrong, "SELECT 'in'").unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "28P01");
    postgres.stop().unwrap();

    fs::write(place.path().join("postgres-password"), "").unwrap();
    let lost = PrivatePostgres::start(&place.open(), Path::new(EXECUTABLE), Durability::ForTests);
    assert!(matches!(lost.err(), Some(PostgresError::PasswordMissing(_))));
}

#[test]
fn stop_leaves_no_process() {
    let place = TestDataDir::new();
    let postgres = place.start();
    assert!(!processes_of(&place).is_empty());
    postgres.stop().unwrap();
    assert_eq!(processes_of(&place), Vec::<String>::new());
    assert!(matches!(
        postgres::find_running(&place.path()),
        Err(PostgresError::NotRunning(_))
    ));
}

#[test]
fn a_second_service_is_refused_and_told_who_the_first_is() {
    let place = TestDataDir::new();
    let holder = Holder::start(&place);
    let DataDirError::InUse { pid, .. } = DataDir::open(&place.path()).unwrap_err() else {
        panic!("it is in use")
    };
    assert_eq!(pid, holder.0.id().to_string());
    // A command beside the running service needs no lock.
    let beside = postgres::find_running(&place.path()).unwrap();
    assert_eq!(query_text(&beside, "SELECT 'beside'").unwrap(), "beside");
    holder.kill();
    place.start().stop().unwrap();
}

#[test]
fn a_look_by_the_guard_never_refuses_a_start() {
    let place = TestDataDir::new();
    place.start().stop().unwrap();
    let holder = Holder::start(&place);
    holder.kill();
    // From now on until it goes, the guard looks at a free lock.
    let end = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < end {
        drop(DataDir::open(&place.path()).unwrap());
    }
    place.start().stop().unwrap();
}

#[test]
fn a_pid_that_belongs_to_somebody_else_now_stops_nothing() {
    let place = TestDataDir::new();
    place.start().stop().unwrap();
    let pid_file = place.path().join("postgres/data/postmaster.pid");
    // As after a restart of the machine: the last server's pid is that of a program of the same user.
    let mut stranger = Command::new("sleep");
    stranger.arg("60");
    if rustix::process::geteuid().is_root() {
        use std::os::unix::{fs::MetadataExt, process::CommandExt};
        let owner = fs::metadata(pid_file.parent().unwrap()).unwrap();
        stranger.uid(owner.uid()).gid(owner.gid());
    }
    let mut stranger = stranger.spawn().unwrap();
    fs::write(
        &pid_file,
        format!("{}\n{}\n", stranger.id(), pid_file.parent().unwrap().display()),
    )
    .unwrap();
    let postgres = place.start();
    assert!(is_answering(&postgres));
    postgres.stop().unwrap();
    assert!(
        stranger.try_wait().unwrap().is_none(),
        "the stranger was left alone"
    );
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_server_that_cannot_start_says_where_to_read_why() {
    let place = TestDataDir::new();
    place.start().stop().unwrap();
    let control = place.path().join("postgres/data/global/pg_control");
    fs::write(&control, "broken").unwrap();
    let error = PrivatePostgres::start(&place.open(), Path::new(EXECUTABLE), Durability::ForTests)
        .err()
        .unwrap();
    let PostgresError::StartFailed { log } = &error else {
        panic!("{error}")
    };
    assert!(
        fs::read_to_string(log).unwrap().contains("PANIC"),
        "{}",
        place.log()
    );
    wait_until("nothing is left", EXIT_TIMEOUT, || processes_of(&place).is_empty());
}

#[test]
fn tests_get_databases_of_their_own() {
    let place = TestDataDir::new();
    let postgres = place.start();
    postgres.create_database("template_of_tests", None).unwrap();
    let template = postgres.connect_options().database("template_of_tests");
    query_text(&template, "WITH made AS (SELECT 1) SELECT 'x' FROM made").unwrap();
    postgres
        .create_database("test_1", Some("template_of_tests"))
        .unwrap();
    let mine = postgres.connect_options().database("test_1");
    assert_eq!(query_text(&mine, "SELECT current_database()::text").unwrap(), "test_1");
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
fn a_deep_data_directory_works() {
    /// Longer than the path of a socket may be.
    const DEEP: &str = concat!(
        "a-directory-with-a-name-of-fifty-bytes-or-not-far-off/",
        "a-directory-with-a-name-of-fifty-bytes-or-not-far-off/",
        "data"
    );
    let place = TestDataDir::with_mode(DEEP, 0o755);
    let postgres = place.start();
    assert!(is_answering(&postgres));
    let socket = postgres.connect_options().get_socket().unwrap().clone();
    assert!(!socket.starts_with(place.path()), "{socket:?}");
    postgres.stop().unwrap();
    fs::remove_dir_all(socket).unwrap();
}

#[test]
fn root_may_keep_its_data_where_the_user_of_postgres_cannot_go() {
    let place = TestDataDir::with_mode("data", 0o700);
    let postgres = place.start();
    assert!(is_answering(&postgres));
    let home = fs::canonicalize(place.path().join("postgres")).unwrap();
    postgres.stop().unwrap();
    // The second start finds the same cluster.
    let again = place.start();
    assert!(is_answering(&again));
    again.stop().unwrap();
    assert_eq!(fs::canonicalize(place.path().join("postgres")).unwrap(), home);
    if rustix::process::geteuid().is_root() {
        assert!(home.starts_with("/var/lib/vouchsafe"), "{home:?}");
        fs::remove_dir_all(home).unwrap();
    } else {
        assert!(
            home.starts_with(fs::canonicalize(place.path()).unwrap()),
            "{home:?}"
        );
    }
}
