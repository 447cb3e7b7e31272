//! Commits that fail or hang: `/readyz` follows them, and the log says so once.

use hyper::Method;
use sqlx::{Connection as _, PgConnection};
use vouchsafe_private_postgres::find_running;
use vouchsafe_test_harness::{
    Instance, Operator, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success, unique,
};

/// Fails each batch as a full disk does.
const FILL_DISK: &str = "
    CREATE FUNCTION fail_for_space() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not extend file \"base/1/1\": No space left on device' USING ERRCODE = '53100';
    END
    $$;
    CREATE TRIGGER disk_full BEFORE INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION fail_for_space()";

const FREE_DISK: &str = "DROP FUNCTION fail_for_space() CASCADE";

async fn wait_for_readiness(operator: &mut Operator, status: u16) {
    let probe = async || {
        let response = operator.call_json(Method::GET, "/readyz", "").await;
        (response.status == status).then_some(())
    };
    eventually(&format!("readyz to answer {status}"), WAIT_TIMEOUT, probe).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_fails_the_readiness_probe_and_is_logged_once() {
    const ORDERS: usize = 20;
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("100").await;
    let mut database = ServiceDatabase::of(&service).await;
    database.run(FILL_DISK.to_owned()).await;
    let key = unique("key");
    for _ in 0..ORDERS {
        expect_error(
            &partner.order_with_key(&key, &sale, 1).await,
            503,
            "SERVICE_UNAVAILABLE",
        );
    }
    wait_for_readiness(&mut operator, 503).await;
    let log = service.log();
    let failures: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("No space left"))
        .collect();
    assert_eq!(failures.len(), 1, "{failures:#?}");
    database.run(FREE_DISK.to_owned()).await;
    let decided = eventually("the order to be decided", WAIT_TIMEOUT, async || {
        let response = partner.order_with_key(&key, &sale, 1).await;
        Some(response).filter(|response| response.status != 503)
    });
    expect_success(&decided.await, 201);
    wait_for_readiness(&mut operator, 200).await;
    service.assert_verified();
}

/// No order is sent: the renewal of the lease hangs.
#[tokio::test(flavor = "multi_thread")]
async fn absent_synchronous_standby_fails_the_readiness_probe() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    wait_for_readiness(&mut operator, 200).await;
    let superuser = find_running(service.data_dir())
        .unwrap()
        .username("vouchsafe_admin");
    let mut database = PgConnection::connect_with(&superuser).await.unwrap();
    let mut set_standbys = async |statement: &'static str, status: u16| {
        // Not replicated itself: it changes a file of the server.
        sqlx::raw_sql(statement).execute(&mut database).await.unwrap();
        sqlx::raw_sql("SELECT pg_reload_conf()")
            .execute(&mut database)
            .await
            .unwrap();
        wait_for_readiness(&mut operator, status).await;
    };
    set_standbys("ALTER SYSTEM SET synchronous_standby_names = 'away'", 503).await;
    set_standbys("ALTER SYSTEM RESET synchronous_standby_names", 200).await;
}
