//! Overview, samples, live feed, nodes, lanes and refused requests of the operator API, and the commands that
//! show them.

use hyper::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::approvals::{add_manual_product_under_approval, place_order_awaiting_approval};
use crate::commands::{run_ok, run_with, utf8};
use crate::live_feed::LiveFeed;
use crate::multi_node::start_two_nodes;
use vouchsafe_store::schema::Migrations;
use vouchsafe_test_harness::{
    Instance, Operator, WAIT_TIMEOUT, eventually, expect_error, expect_success, json_of, shared,
};

#[tokio::test]
async fn overview_counts_waiting_work_and_samples_show_orders() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(3).await;
    let approved = add_manual_product_under_approval(&mut operator, 0).await;
    place_order_awaiting_approval(&mut partner, &approved, 1).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let sample = eventually("a sample with both orders", WAIT_TIMEOUT, async || {
        let samples = operator.get("/admin/v1/samples?period=ten_seconds").await;
        let mut samples = samples["data"].as_array().unwrap().clone().into_iter();
        samples.find(|sample| sample["orders_per_s"].as_f64() > Some(0.0))
    })
    .await;
    assert!(sample["order_p50_ms"].as_f64() > Some(0.0), "{sample}");
    assert!(sample["order_p99_ms"].as_f64() >= sample["order_p50_ms"].as_f64());
    assert!(sample["commit_ms"].as_f64() > Some(0.0), "{sample}");
    eventually(
        "both orders in the samples of seconds",
        WAIT_TIMEOUT,
        async || {
            let seconds = operator.get("/admin/v1/samples").await;
            let samples = seconds["data"].as_array().unwrap();
            // A period is not exactly a second.
            let orders = samples.windows(2).map(|pair| {
                let [begin, end] = [&pair[0], &pair[1]]
                    .map(|sample| OffsetDateTime::parse(sample["at"].as_str().unwrap(), &Rfc3339).unwrap());
                pair[1]["orders_per_s"].as_f64().unwrap() * (end - begin).as_seconds_f64()
            });
            (orders.sum::<f64>() > 1.5).then_some(())
        },
    )
    .await;

    let overview = operator.get("/admin/v1/overview").await;
    let expected = [
        ("environment", json!("sandbox")),
        ("is_ready", json!(true)),
        ("orders_to_approve", json!(1)),
        ("orders_at_vendors", json!(0)),
        ("requests_to_confirm", json!(0)),
        ("drifts_open", json!(0)),
        ("webhooks_failing", json!(0)),
        ("webhooks_gone", json!(0)),
        ("circuits_open", json!(0)),
        ("exports_behind", json!(0)),
        ("nodes_live", json!(1)),
        ("nodes_lost", json!(0)),
    ];
    for (name, value) in expected {
        assert_eq!(overview[name], value, "{name}");
    }
    assert!(overview["traffic"].is_object(), "{overview}");
    let error = operator
        .call_json(Method::GET, "/admin/v1/samples?period=hour", "")
        .await;
    expect_error(&error, 422, "VALIDATION_FAILED");

    let followed = LiveFeed::open(&service).await.next_event().await;
    for event in [followed, operator.get("/admin/v1/live").await] {
        assert!(event["sample"]["at"].is_string(), "{event}");
        let mut actors = event["actors"]["data"].as_array().unwrap().iter();
        let wallet = actors.find(|actor| actor["key"] == json!(partner.partner_id));
        assert_eq!(wallet.unwrap()["kind"], "wallet");
    }
}

#[tokio::test]
async fn traffic_of_all_nodes_outlives_the_node_that_had_it() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(1).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    eventually("a sample with the order", WAIT_TIMEOUT, async || {
        let samples = operator.get("/admin/v1/samples").await;
        let mut samples = samples["data"].as_array().unwrap().clone().into_iter();
        samples.find(|sample| sample["orders_per_s"].as_f64() > Some(0.0))
    })
    .await;
    service.stop();
    service.restart();

    let traffic = Operator::of(&service)
        .get("/admin/v1/traffic?from=2020-01-01")
        .await;
    assert_eq!(traffic["step_s"], 7_200, "30 days at most: {traffic}");
    let minutes = traffic["data"].as_array().unwrap();
    let with_orders: Vec<_> = minutes
        .iter()
        .filter(|minute| minute["orders_per_s"].as_f64() > Some(0.0))
        .collect();
    let [minute] = with_orders[..] else {
        panic!("{traffic}")
    };
    assert!(minute["order_p99_ms"].as_f64() > Some(0.0), "{minute}");
    let read = Operator::of(&service).get("/admin/v1/traffic").await;
    assert_eq!(read["step_s"], 240, "a day without `from`");
    let sales = Operator::of(&service).get("/admin/v1/overview").await["sales"].take();
    for (list, of) in [
        ("by_currency", json!({})),
        ("by_partner", json!({ "partner_id": partner.partner_id })),
        ("by_product", json!({ "product_id": sale.product_id })),
    ] {
        let [row] = &sales[list].as_array().unwrap()[..] else {
            panic!("{list}: {sales}")
        };
        // The test may run at midnight.
        let [orders, vouchers, amount] = ["orders", "vouchers", "amount"].map(|of| {
            row[format!("{of}_today")].as_f64().unwrap() + row[format!("{of}_yesterday")].as_f64().unwrap()
        });
        assert_eq!((orders, vouchers, amount), (1.0, 1.0, 25.0), "{row}");
        for (field, id) in of.as_object().unwrap() {
            assert_eq!(row[field], *id, "{list}");
        }
    }
}

#[tokio::test]
async fn lanes_show_their_commits_and_actors_their_handling_times() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(3).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let lanes = operator.get("/admin/v1/lanes").await;
    let lanes = lanes["data"].as_array().unwrap();
    assert_eq!(lanes.len(), 2);
    for (number, lane) in lanes.iter().enumerate() {
        assert_eq!(
            (&lane["lane"], &lane["can_commit"]),
            (&json!(number), &json!(true))
        );
    }
    let batches = |lane: &Value| lane["batches"].as_u64().unwrap();
    let busy = lanes.iter().find(|lane| batches(lane) > 0).unwrap();
    assert!(busy["last_batch_records"].as_u64() > Some(0), "{busy}");
    assert!(busy["last_commit_us"].as_u64() > Some(0), "{busy}");
    let actors = operator.get("/admin/v1/actors?limit=10000&kind=wallet").await;
    let mut actors = actors["data"].as_array().unwrap().iter();
    let wallet = actors
        .find(|actor| actor["key"] == json!(partner.partner_id))
        .unwrap();
    assert!(wallet["handling_p50_us"].as_u64() > Some(0), "{wallet}");
    assert!(wallet["handling_p99_us"].as_u64() >= wallet["handling_p50_us"].as_u64());
    assert_eq!(wallet["last_error"], Value::Null);
    assert!(run_ok(&["lanes"]).contains("LAST COMMIT (µS)"));
}

#[tokio::test]
async fn nodes_are_listed_with_lease_version_and_claimed_stock() {
    let [first, mut second] = start_two_nodes();
    let mut operator = Operator::of(&second);
    let sale = operator.add_stocked_product(3).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let name_of = |service: &Instance| {
        let name = std::fs::read_to_string(service.data_dir().join("node")).unwrap();
        name.trim().to_owned()
    };
    let (selling, idle) = (name_of(&second), name_of(&first));
    let nodes = Operator::of(&first).get("/admin/v1/nodes").await;
    let node = |nodes: &Value, name: &str| {
        let nodes = nodes["data"].as_array().unwrap().iter();
        nodes
            .clone()
            .find(|node| node["node"] == json!(name))
            .unwrap()
            .clone()
    };
    let seller = node(&nodes, &selling);
    let claimed = ["claimed_skus", "claimed_chunks"].map(|name| seller[name].as_i64().unwrap());
    assert!(claimed.iter().all(|count| *count >= 1), "{seller}");
    assert_eq!(
        (&seller["is_live"], &seller["version"], &seller["migration"]),
        (
            &json!(true),
            &json!(env!("CARGO_PKG_VERSION")),
            &json!(Migrations::of_program().newest())
        )
    );
    assert_eq!(node(&nodes, &idle)["is_live"], true);
    assert_eq!(second.stop(), Some(0));
    let mut operator = Operator::of(&first);
    // On a machine under load the statement that ends the lease may time out; then the lease expires.
    let stopped = eventually("the end of the lease", WAIT_TIMEOUT, async || {
        let stopped = node(&operator.get("/admin/v1/nodes").await, &selling);
        (stopped["is_live"] == false).then_some(stopped)
    })
    .await;
    assert_eq!(stopped["incarnation"], 1);
    let table = run_with(&first, &["nodes"], None);
    assert!(String::from_utf8_lossy(&table.stdout).contains(&idle));
}

fn text_of_command(service: &Instance, arguments: &[&str]) -> String {
    utf8(&run_with(service, arguments, None).stdout)
}

#[tokio::test]
async fn refused_requests_are_counted_by_partner_and_code() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let [mut partner, mut other] = [operator.add_partner("10").await, operator.add_partner("10").await];
    expect_error(&other.get("/orders/ord_1").await, 404, "ORDER_NOT_FOUND");
    for _ in 0..2 {
        let absent = partner.get("/orders/ord_00000000000000000000000000000000").await;
        expect_error(&absent, 404, "ORDER_NOT_FOUND");
    }
    let count = |partner_id: &str, requests: u32| json!({ "code": "ORDER_NOT_FOUND", "status": 404, "partner_id": partner_id, "requests": requests });
    let [of_partner, of_other] = [count(&partner.partner_id, 2), count(&other.partner_id, 1)];
    // Requests during the start of the service were refused, too.
    let (mut found, mut cursor) = (Vec::new(), String::new());
    let path = "/admin/v1/refusals?hours=24";
    loop {
        let page = operator.get(&format!("{path}&limit=1{cursor}")).await;
        found.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    found.retain(|count| !count["partner_id"].is_null());
    assert_eq!(found, [of_partner, of_other.clone()], "the most frequent first");
    let filtered = operator
        .get(&format!("{path}&partner_id={}", other.partner_id))
        .await;
    assert_eq!(filtered["data"], json!([of_other]));
    for hours in ["0", "25"] {
        let path = format!("/admin/v1/refusals?hours={hours}");
        let response = operator.call_json(Method::GET, &path, "").await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
    let report = text_of_command(&service, &["trouble"]);
    for text in [
        &partner.partner_id,
        "Failing webhooks",
        "Low stock",
        "RESTARTS",
        "orders_to_approve",
    ] {
        assert!(report.contains(text), "{text} is not in {report}");
    }
    let report = serde_json::from_str::<Value>(&text_of_command(
        &service,
        &["trouble", "--since", "2h", "--json"],
    ))
    .unwrap();
    for name in [
        "overview",
        "refusals",
        "webhooks",
        "disabled_webhooks",
        "drifts",
        "actors",
    ] {
        assert!(report[name].is_object(), "{name}: {report}");
    }
    assert!(text_of_command(&service, &["overview"]).contains("nodes_live"));
}

#[tokio::test]
async fn failed_webhook_attempt_is_the_last_error_of_its_actor() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let sale = operator.add_stocked_product(1).await;
    let receiver = vouchsafe_test_harness::Receiver::start();
    receiver.set_behavior(vouchsafe_test_harness::Behavior::Status(500));
    let webhook = crate::deliveries::register_webhook(&mut partner, &receiver, &json!({})).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let path = "/admin/v1/actors?kind=delivery&limit=10000";
    let error = eventually("the error of the delivery actor", WAIT_TIMEOUT, async || {
        let actors = json_of(&operator.call_json(Method::GET, path, "").await);
        let mut actors = actors["data"].as_array().unwrap().clone().into_iter();
        let actor = actors.find(|actor| actor["key"] == webhook["webhook_id"])?;
        actor["last_error"]["message"].as_str().map(str::to_owned)
    })
    .await;
    assert_eq!(error, "the endpoint responded with status 500");
}

#[tokio::test]
async fn settings_are_listed_with_their_sources_and_without_secrets() {
    let mut operator = Operator::of(shared());
    let settings = operator.get("/admin/v1/settings").await;
    let setting = |name: &str| {
        let mut settings = settings["data"].as_array().unwrap().iter();
        settings.find(|setting| setting["name"] == json!(name)).unwrap()
    };
    let data_dir = setting("VOUCHSAFE_DATA_DIR");
    assert_eq!(data_dir["value"], json!(shared().data_dir()));
    assert_ne!(data_dir["source"], "default");
    let lanes = setting("VOUCHSAFE_LANES");
    assert_eq!(
        (&lanes["value"], &lanes["source"]),
        (&json!("2"), &json!("default"))
    );
    for name in ["DATABASE_URL", "VOUCHSAFE_MASTER_KEY", "VOUCHSAFE_OPERATOR_TOKEN"] {
        assert_eq!(
            (&setting(name)["is_secret"], &setting(name)["value"]),
            (&json!(true), &Value::Null)
        );
    }
    assert!(run_ok(&["settings"]).contains("VOUCHSAFE_LANES"));
}

#[tokio::test]
async fn checkpoints_of_the_audit_trail_are_listed_newest_first() {
    let mut operator = Operator::of(shared());
    operator.add_partner("1").await;
    let checkpoint = eventually("a checkpoint", WAIT_TIMEOUT, async || {
        let page = operator.get("/admin/v1/audit/checkpoints?limit=2").await;
        page["data"].as_array().unwrap().first().cloned()
    })
    .await;
    assert!(checkpoint["entries"].as_i64() >= Some(1), "{checkpoint}");
    assert_eq!(checkpoint["hash"].as_str().map(str::len), Some(64));
    assert_eq!(checkpoint["is_intact"], Value::Null);
    assert!(run_ok(&["checkpoints", "--limit", "1"]).contains("SHA-256"));
    let checked = operator
        .get("/admin/v1/audit/checkpoints?check=true&limit=1")
        .await;
    assert_eq!(checked["data"][0]["is_intact"], true);
    let path = "/admin/v1/audit/checkpoints?check=1";
    let refused = operator.call_json(Method::GET, path, "").await;
    expect_error(&refused, 422, "VALIDATION_FAILED");
    assert!(run_ok(&["checkpoints", "--check"]).contains("true"));
}
