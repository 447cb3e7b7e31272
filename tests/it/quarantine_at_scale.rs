//! Orders while much stock is quarantined, compared with what was sold, and released.
//!
//! `VOUCHSAFE_QUARANTINE_CHUNKS` and `VOUCHSAFE_QUARANTINE_ALLOCATIONS` set the numbers of free chunks and of
//! sold vouchers; `-- --nocapture` prints the durations (docs/performance.md).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection};
use vouchsafe_test_harness::{
    Database, Instance, Operator, Partner, Sale, WAIT_TIMEOUT, expect_success, id_of,
};

/// Twelve parts of a release, and what the sandbox has.
const CHUNKS: u64 = 12_000;

const ALLOCATIONS: u64 = 20_000;

const MASTER_KEY: (&str, &str) = (
    "VOUCHSAFE_MASTER_KEY",
    "efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef",
);

/// Free chunks of a hundred SKUs, and sales of the last day in their order. Neither has codes: no order takes
/// them.
const FILL: &str = "
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id, cleared_epoch)
    SELECT '$product', 1 + i % 100, 100000000000 + i * 2, 100000000001 + i * 2, 0 FROM generate_series(1, $chunks) AS i;
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT 200000000000 + i,
           (lpad(to_hex((extract(epoch FROM now() - interval '1 day') * 1000 + i::bigint * 86400000 / $allocations)::bigint), 12, '0')
                || '70008' || substr(md5(i::text), 1, 15))::uuid,
           gen_random_uuid(), gen_random_uuid(), 0
      FROM generate_series(1, $allocations) AS i;";

const COUNT_FREE: &str = "
    SELECT sum(last_stock_id - first_stock_id + 1 - (SELECT count(*) FROM allocations WHERE stock_id BETWEEN first_stock_id AND last_stock_id))::bigint
      FROM chunks
     WHERE NOT emptied";

/// What a failover leaves behind: another timeline, and no connection.
const FAIL_OVER: &str = "
    UPDATE continuity SET timeline = timeline + 1;
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'vouchsafe lane%'";

fn volume(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

async fn fill(connection: &mut PgConnection, sale: &Sale) {
    let fill = FILL
        .replace("$product", &sale.product_id)
        .replace(
            "$chunks",
            &volume("VOUCHSAFE_QUARANTINE_CHUNKS", CHUNKS).to_string(),
        )
        .replace(
            "$allocations",
            &volume("VOUCHSAFE_QUARANTINE_ALLOCATIONS", ALLOCATIONS).to_string(),
        );
    for statement in fill.split(';') {
        connection
            .execute(AssertSqlSafe(statement.to_owned()))
            .await
            .unwrap();
    }
    connection
        .execute("VACUUM ANALYZE chunks, allocations")
        .await
        .unwrap();
}

/// Orders one voucher until it is delivered. Returns its code, and the time that the attempt took which
/// succeeded.
async fn buy_at_last(partner: &mut Partner, sale: &Sale) -> (String, Duration) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let started = Instant::now();
        let response = partner.order(sale, 1).await;
        if response.status == 201 {
            let took = started.elapsed();
            let codes = expect_success(
                &partner.get_codes(&id_of(&expect_success(&response, 201))).await,
                200,
            );
            return (
                codes["data"][0]["credentials"][0]["value"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
                took,
            );
        }
        assert!(Instant::now() < deadline, "{response:?}");
    }
}

async fn released_part(operator: &mut Operator, quarantine: &Value) -> Value {
    let request = json!({ "after": "RESTORE", "quarantine": quarantine, "reason": "a test" });
    operator
        .send_json(Method::POST, "/admin/v1/stock/quarantine/release", &request)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_go_on_while_much_stock_is_quarantined_and_released() {
    let database = Database::create().await;
    let url = database.options().to_url_lossy().to_string();
    let service = Instance::start_with(&[MASTER_KEY, ("DATABASE_URL", url.as_str())]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(100).await;
    let other = operator.add_stocked_product(1).await;
    let sold_out = operator.add_stocked_product(0).await;
    let mut partner = operator.add_partner("100000").await;
    let mut connection = database.connect().await;
    let mut codes = BTreeSet::from([buy_at_last(&mut partner, &sale).await.0]);
    fill(&mut connection, &sale).await;

    let free = sqlx::query_scalar::<_, i64>(COUNT_FREE)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let started = Instant::now();
    connection.execute(FAIL_OVER).await.unwrap();
    let detected = "SELECT quarantined_at IS NOT NULL FROM continuity";
    while !sqlx::query_scalar::<_, bool>(detected)
        .fetch_one(&mut connection)
        .await
        .unwrap()
    {
        // A lane connects again when it has something to write, here a rejection.
        drop(partner.order(&sold_out, 1).await);
        assert!(started.elapsed() < WAIT_TIMEOUT, "the failover is not detected");
    }
    println!("quarantined after {:?}", started.elapsed());
    // One for each part of the release, of 1,000 chunks.
    let parts = volume("VOUCHSAFE_QUARANTINE_CHUNKS", CHUNKS) / 1_000;
    let vouchers = usize::try_from(parts).unwrap() + 1_000;
    operator.restock(&other, vouchers, "2099-12-31").await;
    codes.insert(buy_at_last(&mut partner, &other).await.0);
    println!(
        "stock that was imported since is sold after {:?}",
        started.elapsed()
    );

    // Vouchers that only their ids name, all of one hour.
    let sold = "SELECT 'vch_' || replace(voucher_id::text, '-', '') FROM allocations
                 WHERE stock_id > 200000000000 ORDER BY stock_id LIMIT 1000";
    let sold: Vec<String> = sqlx::query_scalar(sold).fetch_all(&mut connection).await.unwrap();
    let vouchers: Vec<Value> = sold.iter().map(|id| json!({ "voucher_id": id })).collect();
    let request = json!({ "vouchers": vouchers, "reason": "a test" });
    let compared = Instant::now();
    let report = operator
        .send_json(Method::POST, "/admin/v1/stock/quarantine/sold", &request)
        .await;
    println!("1,000 sold vouchers compared in {:?}", compared.elapsed());
    assert_eq!(report["known"], 1_000);

    let released = Instant::now();
    let (mut vouchers, mut quarantine, mut parts, mut slowest) = (0, Value::Null, 0, Duration::ZERO);
    let mut orders = Vec::new();
    loop {
        // An order runs beside each part.
        let part = async {
            let started = Instant::now();
            let part = released_part(&mut operator, &quarantine).await;
            (part, started.elapsed())
        };
        let ((part, took), (code, order)) = tokio::join!(part, buy_at_last(&mut partner, &other));
        assert!(codes.insert(code), "a voucher was sold twice");
        orders.push(order);
        slowest = slowest.max(took);
        parts += 1;
        vouchers += part["released"].as_u64().unwrap();
        quarantine = part["quarantine"].clone();
        if part["has_more"] == false {
            assert_eq!(part["stock_quarantined"], false);
            break;
        }
    }
    orders.sort_unstable();
    println!(
        "{vouchers} vouchers released in {:?}, {parts} parts, the slowest in {slowest:?}; orders beside: median {:?}, slowest {:?}",
        released.elapsed(),
        orders[orders.len() / 2],
        orders.last().unwrap(),
    );
    assert_eq!(i64::try_from(vouchers).unwrap(), free);
    for _ in 0..99 {
        let (code, _) = buy_at_last(&mut partner, &sale).await;
        assert!(codes.insert(code), "a voucher was sold twice");
    }
    drop(service);
    database.remove().await;
}
