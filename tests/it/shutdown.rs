//! Startup banner, health, metrics and shutdown.

use std::cell::Cell;
use std::process::Command;

use futures_util::future::join_all;
use vouchsafe_api_client::{ApiResponse, RequestFailure};

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, WAIT_TIMEOUT, eventually, expect_error, expect_success, order_body,
    processes_of, shared, text_of, unique, wait_until,
};

/// Connections that send orders during the shutdown.
const CONNECTIONS: usize = 16;

struct SentOrder {
    key: String,
    outcome: Result<ApiResponse, RequestFailure>,
}

/// Sends orders without pause until the service is unreachable.
async fn order_until_shutdown(mut partner: Partner, sale: &Sale, placed: &Cell<usize>) -> Vec<SentOrder> {
    let mut sent = Vec::new();
    loop {
        let key = unique("key");
        let outcome = partner.client.order(&key, order_body(sale, 1).to_string()).await;
        let is_unreachable = matches!(outcome, Err(RequestFailure::NotSent(_)));
        if outcome.as_ref().is_ok_and(|response| response.status == 201) {
            placed.set(placed.get() + 1);
        }
        sent.push(SentOrder { key, outcome });
        if is_unreachable {
            return sent;
        }
    }
}

#[tokio::test]
async fn shutdown_under_load_completes_open_requests() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(5_000).await;
    let partner = operator.add_partner("100000").await;
    let placed = Cell::new(0);
    let ordering = (0..CONNECTIONS).map(|_| order_until_shutdown(partner.reconnect(), &sale, &placed));
    let stopping = async {
        eventually("orders to be in flight", WAIT_TIMEOUT, async || {
            (placed.get() > 50).then_some(())
        })
        .await;
        service.terminate();
    };
    let (sent, ()) = tokio::join!(join_all(ordering), stopping);
    assert_eq!(service.wait_for_exit(), Some(0), "{}", service.log());
    wait_until("its Postgres to exit", WAIT_TIMEOUT, || {
        processes_of(service.data_dir()).is_empty().then_some(())
    });
    let sent: Vec<SentOrder> = sent.into_iter().flatten().collect();
    let count = |of: fn(&SentOrder) -> bool| sent.iter().filter(|sent| of(sent)).count();
    let rejected = count(|sent| sent.outcome.as_ref().is_ok_and(|response| response.status == 503));
    let unknown = count(|sent| matches!(sent.outcome, Err(RequestFailure::Unknown(_))));
    println!(
        "{} placed, {rejected} rejected, {unknown} without a response",
        placed.get()
    );
    service.assert_verified();
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    for SentOrder { key, outcome } in &sent {
        match outcome {
            Ok(response) if response.status == 201 => {
                let repeated = partner.order_with_key(key, &sale, 1).await;
                assert_eq!(
                    (repeated.status, text_of(&repeated)),
                    (response.status, text_of(response))
                );
                assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
            }
            Ok(response) => drop(expect_error(response, 503, "SERVICE_UNAVAILABLE")),
            Err(_) => {}
        }
    }
    let spent = 25 * placed.get();
    assert_eq!(partner.balance("USD").await, format!("{}.00", 100_000 - spent));
    // The shutdown may reset a connection that was never accepted, but every executed order has got its
    // response.
    for key in sent
        .iter()
        .filter(|sent| sent.outcome.is_err())
        .map(|sent| &sent.key)
    {
        let response = partner.order_with_key(key, &sale, 1).await;
        expect_success(&response, 201);
        assert_eq!(
            response.header("idempotent-replayed"),
            None,
            "the order was executed without a response"
        );
    }
}

#[tokio::test]
async fn verify_during_orders_finds_no_violation() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1_000).await;
    let partner = operator.add_partner("100000").await;
    let verified = Cell::new(false);
    let ordering = (0..4).map(|_| {
        let (mut partner, sale, verified) = (partner.reconnect(), &sale, &verified);
        async move {
            while !verified.get() && [201, 409].contains(&partner.order(sale, 1).await.status.as_u16()) {}
        }
    });
    let verifying = async {
        let result = tokio::task::spawn_blocking(|| shared().assert_verified()).await;
        verified.set(true);
        result.unwrap();
    };
    tokio::join!(join_all(ordering), verifying);
}

#[tokio::test]
async fn health_endpoints_respond_on_both_listeners() {
    let service = shared();
    let partner = Operator::of(service).add_partner("0").await;
    for address in [service.base_url().replace("/api/v1", ""), service.admin_url()] {
        let mut anonymous = partner.connect_to(&address);
        for path in ["/healthz", "/readyz"] {
            expect_success(
                &anonymous
                    .client
                    .send_raw(hyper::Method::GET, path, hyper::HeaderMap::new(), "")
                    .await
                    .unwrap(),
                200,
            );
        }
    }
}

#[tokio::test]
async fn metrics_cover_journal_actors_and_requests() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let response = operator
        .call_without_token(hyper::Method::GET, "/metrics", &[])
        .await;
    let metrics = text_of(&response);
    assert_eq!(
        response.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(metrics.ends_with('\n') && !metrics.contains("# EOF"));
    let accept = [(
        "accept",
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
    )];
    let open_metrics = operator
        .call_without_token(hyper::Method::GET, "/metrics", &accept)
        .await;
    assert!(text_of(&open_metrics).ends_with("# EOF\n"), "{open_metrics:?}");
    for (name, at_least) in [
        (r#"vouchsafe_actors{kind="wallet"}"#, 1.0),
        (r#"vouchsafe_actors{kind="inventory"}"#, 1.0),
        (r#"vouchsafe_actor_messages_handled_total{kind="inventory"}"#, 1.0),
        (r#"vouchsafe_actor_mailbox_messages{kind="wallet"}"#, 0.0),
        (r#"vouchsafe_actor_restarts_total{kind="wallet"}"#, 0.0),
        ("vouchsafe_journal_commit_duration_seconds_count", 1.0),
        ("vouchsafe_journal_batch_records_sum", 1.0),
        (
            r#"vouchsafe_http_requests_total{listener="partner",method="POST",status="201"}"#,
            1.0,
        ),
        (
            r#"vouchsafe_http_request_duration_seconds_count{listener="partner",route="/api/v1/orders",status_class="2xx"}"#,
            1.0,
        ),
        (r#"vouchsafe_order_events_total{event="order.delivered"}"#, 1.0),
        ("process_resident_memory_bytes", 1_000_000.0),
        ("process_open_fds", 1.0),
        ("process_start_time_seconds", 1_700_000_000.0),
        ("process_cpu_seconds_total", 0.001),
    ] {
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value: f64 = line
            .unwrap_or_else(|| panic!("no {name} in\n{metrics}"))
            .parse()
            .unwrap();
        assert!(value >= at_least, "{name} {value}");
    }
    assert!(
        metrics.contains("vouchsafe_journal_verdicts_total{verdict=\"committed\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn commands_in_startup_banner_work() {
    let service = shared();
    for (heading, expected) in [
        ("Place an order:", "DELIVERED"),
        ("Sign in to the console: ", "/sign-in/link?token=vsl_"),
    ] {
        // The service is ready with the first line of the banner; the other lines follow. The command is
        // complete once a line follows it.
        let command = wait_until("the whole banner", WAIT_TIMEOUT, || {
            let banner = service.stdout();
            let lines = banner.lines().skip_while(|line| !line.starts_with(heading));
            let mut rest = lines.skip(1);
            let command = rest.next().map(|line| line.trim().to_owned());
            rest.next().and(command)
        });
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{command}\n{stdout}{stderr}");
        assert!(stdout.contains(expected), "{command}\n{stdout}{stderr}");
    }
}
