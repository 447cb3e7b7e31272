//! Integration with service managers: systemd notifications, health check, secrets in files, manual pages.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use sqlx::{Connection as _, PgConnection};
use vouchsafe_private_postgres::find_running;
use vouchsafe_test_harness::{
    Instance, WAIT_TIMEOUT, eventually, free_address, program, scratch_directory, wait_until,
};

use crate::commands::{run, utf8};

/// The service manager's side of `NOTIFY_SOCKET`.
struct NotifySocket(UnixDatagram);

impl NotifySocket {
    /// The next message, if there is one.
    fn try_receive(&self) -> Option<String> {
        let mut message = [0; 1024];
        let length = self.0.recv(&mut message).ok()?;
        Some(utf8(&message[..length]))
    }

    fn expect(&self, expected: &str) {
        wait_until(expected, WAIT_TIMEOUT, || {
            let message = self.try_receive()?;
            message.starts_with(expected).then_some(())
        });
    }
}

fn health(service: &Instance) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.args(["health", "--admin-url", &service.admin_url()]);
    let output = command.env_remove("VOUCHSAFE_ADMIN_URL").output().unwrap();
    (output.status.code(), utf8(&output.stdout) + &utf8(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn service_manager_is_notified_of_readiness_commits_and_shutdown() {
    let scratch = scratch_directory();
    let path = scratch.path().join("notify");
    let socket = NotifySocket(UnixDatagram::bind(&path).unwrap());
    socket.0.set_nonblocking(true).unwrap();
    let settings = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "60000000"),
    ];
    let mut service = Instance::new(&scratch.path().join("data"), &settings);
    assert_eq!(health(&service).0, Some(3), "not started");
    service.spawn();
    let served = format!(
        "READY=1\nSTATUS=serving partners on {}, operators on {}\n",
        service.http_address(),
        service.admin_address()
    );
    socket.expect(&served);
    assert_eq!(health(&service), (Some(0), "status  ready\n".to_owned()));
    socket.expect("WATCHDOG=1\n");
    // Commits hang without the standby, so that the lease is not renewed.
    let superuser = find_running(service.data_dir()).unwrap();
    let superuser = superuser.username("vouchsafe_admin");
    let mut database = PgConnection::connect_with(&superuser).await.unwrap();
    let mut set_standby = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(&mut database).await.unwrap();
        let reload = sqlx::raw_sql("SELECT pg_reload_conf()");
        reload.execute(&mut database).await.unwrap();
    };
    let mut observer = PgConnection::connect_with(&superuser).await.unwrap();
    let mut observe = async |query: &'static str| -> Option<String> {
        sqlx::query_scalar(query).fetch_one(&mut observer).await.unwrap()
    };
    set_standby("ALTER SYSTEM SET synchronous_standby_names = 'away'").await;
    wait_until("the health check to fail", WAIT_TIMEOUT, || {
        let (code, text) = health(&service);
        (code == Some(1) && text.contains("the node's lease cannot be renewed")).then_some(())
    });
    let latest_attempt = "SELECT max(query_start)::text FROM pg_stat_activity WHERE query LIKE '%UPDATE \
        nodes%' AND pid <> pg_backend_pid()";
    let before: Option<String> = observe(latest_attempt).await;
    while socket.try_receive().is_some() {}
    // The one that ran before has failed when another one begins.
    eventually("another renewal", WAIT_TIMEOUT, async || {
        (observe(latest_attempt).await > before).then_some(())
    })
    .await;
    assert_eq!(socket.try_receive(), None, "no renewal, no keep-alive");
    set_standby("ALTER SYSTEM RESET synchronous_standby_names").await;
    socket.expect("WATCHDOG=1\n");
    service.terminate();
    socket.expect("STOPPING=1\nSTATUS=finishing requests in flight\n");
    assert_eq!(service.wait_for_exit(), Some(0));
}

#[test]
fn secret_in_a_file_is_used_and_never_with_its_value() {
    let scratch = scratch_directory();
    let path = scratch.path().join("token");
    std::fs::write(&path, "a-token-that-nobody-has\n").unwrap();
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(program());
        let url = format!("http://{}", free_address());
        command.args(["actors", "--admin-url", &url]);
        command.env_remove("VOUCHSAFE_OPERATOR_TOKEN");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        (output.status.code(), utf8(&output.stderr))
    };
    let file = ("VOUCHSAFE_OPERATOR_TOKEN_FILE", path.to_str().unwrap());
    let (code, error) = run(&[file]);
    assert_eq!(code, Some(3), "has a token and finds no service: {error}");
    let (code, error) = run(&[file, ("VOUCHSAFE_OPERATOR_TOKEN", "another")]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("are both set") && !error.contains("another"),
        "{error}"
    );
    let (code, error) = run(&[("VOUCHSAFE_OPERATOR_TOKEN_FILE", "/nowhere/at/all")]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("VOUCHSAFE_OPERATOR_TOKEN_FILE /nowhere/at/all"),
        "{error}"
    );
}

#[test]
fn manual_has_a_page_per_command() {
    let scratch = scratch_directory();
    let output = run(&["man-pages", scratch.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", utf8(&output.stderr));
    let page = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    let root = page("vouchsafe.1");
    assert!(root.contains("DATABASE_URL_FILE") && root.contains("Exit codes:"));
    assert!(page("vouchsafe-stock-import.1").contains("Examples:"));
    let error = run(&["man-pages", "/nowhere/at/all"]);
    assert_eq!(error.status.code(), Some(1));
}
