//! Restored databases: free stock is quarantined, and what was sold after the backup is never sold again.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use hyper::Method;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use vouchsafe_test_harness::{
    Database, Instance, Operator, Partner, Sale, expect_error, expect_success, id_of, postgres_program,
    program, text_of, unique,
};

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef",
);

/// Runs a client program of Postgres on the database.
fn run_client(database: &Database, client: &str, arguments: &[&str]) -> Output {
    let options = database.options();
    let url = options.to_url_lossy();
    let host = options
        .get_socket()
        .map_or(Path::new(options.get_host()), |path| path);
    let output = Command::new(postgres_program(client))
        .arg("--host")
        .arg(host)
        .args(["--username", options.get_username()])
        .args(["--dbname", options.get_database().unwrap()])
        .args(arguments)
        .env("PGPASSWORD", url.password().unwrap_or_default())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs `vouchsafe stock release` with these arguments.
fn release(service: &Instance, arguments: &[&str]) -> String {
    let output = Command::new(program())
        .args([
            "stock",
            "release",
            "--reason",
            "a test",
            "--admin-url",
            &service.admin_url(),
        ])
        .args(arguments)
        .env("VOUCHSAFE_OPERATOR_TOKEN", service.operator_token())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{text:?}");
    text.concat()
}

/// Orders vouchers and returns their codes.
async fn buy(partner: &mut Partner, sale: &Sale, quantity: u32) -> BTreeSet<String> {
    let order = expect_success(&partner.order(sale, quantity).await, 201);
    let codes = expect_success(&partner.get_codes(&id_of(&order)).await, 200);
    let codes = codes["data"].as_array().unwrap().iter();
    codes
        .map(|voucher| voucher["credentials"][0]["value"].as_str().unwrap().to_owned())
        .collect()
}

async fn level(operator: &mut Operator, sale: &Sale) -> [Value; 3] {
    let path = format!("/admin/v1/stock?product_id={}", sale.product_id);
    let levels = operator.get(&path).await;
    ["free", "quarantined", "void"].map(|field| levels["data"][0][field].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_after_restored_dump_is_quarantined_and_lost_sales_are_never_sold_again() {
    let database = Database::create().await;
    let url = database.options().to_url_lossy().to_string();
    let settings = [MASTER_KEY, ("DATABASE_URL", url.as_str())];
    let mut service = Instance::start_with(&settings);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(5).await;
    let mut partner = operator.add_partner("1000").await;
    let mut sold = buy(&mut partner, &sale, 1).await;
    let other_sale = operator.add_stocked_product(1).await;
    let unread = id_of(&expect_success(&partner.order(&other_sale, 1).await, 201));
    let cancel = format!("/orders/{unread}/cancel");
    let dump = run_client(&database, "pg_dump", &["--no-owner"]).stdout;

    sold.extend(buy(&mut partner, &sale, 2).await);
    // The voucher of an order of the backup is sold to another order.
    expect_success(&partner.send_signed(Method::POST, &cancel, "").await, 200);
    buy(&mut partner, &other_sale, 1).await;
    let feed = text_of(&partner.get("/events?limit=100").await).to_owned();
    let lost = "COPY (SELECT s.code_id, 'vch_' || replace(a.voucher_id::text, '-', '') AS voucher_id FROM allocations AS a JOIN stock AS s USING (stock_id)
                       WHERE a.order_id IS NOT NULL AND a.returned_at IS NULL) TO STDOUT (FORMAT csv, HEADER)";
    let lost = run_client(&database, "psql", &["--command", lost]).stdout;
    assert_eq!(service.stop(), Some(0));
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        std::fs::write(files.path().join(name), content).unwrap();
        files.path().join(name).display().to_string()
    };
    let dump = file("dump.sql", &dump);
    // `pg_dump --clean` cannot drop partitions.
    let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
    run_client(&database, "psql", &["--quiet", "--command", empty]);
    run_client(
        &database,
        "psql",
        &["--quiet", "--set", "ON_ERROR_STOP=1", "--file", &dump],
    );
    service.restart();

    let mut operator = Operator::of(&service);
    let mut partner = partner.connect_to(&service.base_url());
    assert_eq!(level(&mut operator, &sale).await, [0, 4, 0].map(Value::from));
    let key = unique("key");
    let refused = partner.order_with_key(&key, &sale, 1).await;
    expect_error(&refused, 503, "STOCK_QUARANTINED");
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(operator.get("/readyz").await["stock_quarantined"], true);
    // What is imported now was not sold before.
    operator.restock(&sale, 1, "2099-12-31").await;
    assert!(sold.is_disjoint(&buy(&mut partner, &sale, 1).await));
    expect_error(
        &partner.order_with_key(&key, &sale, 1).await,
        503,
        "STOCK_QUARANTINED",
    );

    // A feed tells the SKU of a lost sale, not the voucher.
    let feed = file("feed.json", feed.as_bytes());
    let output = release(&service, &["--after-restore", "--sold", &feed]);
    assert!(output.contains("stays quarantined"), "{output}");
    expect_error(
        &partner.order_with_key(&key, &sale, 1).await,
        503,
        "STOCK_QUARANTINED",
    );

    let lost = file("sold.csv", &lost);
    let output = release(&service, &["--after-restore", "--sold", &feed, "--sold", &lost]);
    assert!(
        output.contains("2 known here, 2 out of sale, 1 of orders here"),
        "{output}"
    );
    expect_error(
        &partner.send_signed(Method::POST, &cancel, "").await,
        409,
        "ORDER_NOT_CANCELLABLE",
    );
    assert!(output.contains("no stock is quarantined"), "{output}");
    assert_eq!(level(&mut operator, &sale).await, [2, 0, 2].map(Value::from));
    let order = expect_success(&partner.order_with_key(&key, &sale, 1).await, 201);
    assert_eq!(partner.count_codes(&id_of(&order)).await, 1);
    assert!(sold.is_disjoint(&buy(&mut partner, &sale, 1).await));
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    let actions: Vec<Value> = operator.audit_entries("subject=stock").await;
    let actions: BTreeSet<&str> = actions
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        BTreeSet::from(["stock.compare", "stock.quarantine", "stock.release"])
    );

    let verified = Command::new(program())
        .arg("verify")
        .env("DATABASE_URL", &url)
        .output()
        .unwrap();
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
    drop(service);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_on_new_timeline_is_quarantined_until_failover_is_confirmed() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("1000").await;
    buy(&mut partner, &sale, 1).await;
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    let mut operator = Operator::of(&service);
    assert_eq!(
        operator.get("/readyz").await,
        json!({ "status": "ready" }),
        "a restart is no restore"
    );

    assert_eq!(service.stop(), Some(0));
    // An archive recovery without an archive ends at the last commit, on a new timeline.
    let cluster = service.data_dir().join("postgres/data");
    let signal = cluster.join("recovery.signal");
    std::fs::write(&signal, "").unwrap();
    std::fs::set_permissions(&signal, std::fs::Permissions::from_mode(0o666)).unwrap();
    let settings = cluster.join("postgresql.auto.conf");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{text}restore_command = 'false'\n")).unwrap();
    service.restart();
    let mut operator = Operator::of(&service);
    partner = partner.connect_to(&service.base_url());
    expect_error(&partner.order(&sale, 1).await, 503, "STOCK_QUARANTINED");

    let output = release(&service, &["--after-failover"]);
    assert!(output.contains("no stock is quarantined"), "{output}");
    assert_eq!(level(&mut operator, &sale).await, [1, 0, 0].map(Value::from));
    buy(&mut partner, &sale, 1).await;
    service.assert_verified();
}
