//! Trace ids in log lines.

use serde_json::Value;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Instance, Operator, ServiceDatabase, WAIT_TIMEOUT, expect_error, expect_success, wait_until,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn trace_of(response: &ApiResponse) -> &str {
    response.header("x-trace-id").unwrap()
}

/// Waits for the log line with this message and trace id.
fn wait_for_log_line(service: &Instance, trace: &str, message: &str) -> Value {
    let parse_line = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line["trace.id"] == trace && line["message"] == message).then_some(line)
    };
    wait_until(message, WAIT_TIMEOUT, || {
        service.log().lines().find_map(parse_line)
    })
}

/// Returns method and route of a log line.
fn request_of(line: &Value) -> [Option<&str>; 2] {
    ["http.method", "http.route"].map(|field| line[field].as_str())
}

#[tokio::test]
async fn log_lines_of_request_carry_trace_id() {
    // The span exists although lower log levels are disabled.
    let service = Instance::start_with(&[("VOUCHSAFE_LOG", "warn"), ("VOUCHSAFE_LOG_FORMAT", "json")]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    // Opens the connection that the next read finds broken.
    expect_success(&partner.get("/transactions").await, 200);
    ServiceDatabase::of(&service)
        .await
        .terminate_other_connections()
        .await;

    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let failed = partner
        .get_with_header("/transactions", ("traceparent", &parent))
        .await;
    expect_error(&failed, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(trace_of(&failed), TRACE);
    let line = wait_for_log_line(&service, TRACE, "database statement of a request failed");
    assert_eq!(
        request_of(&line),
        [Some("GET"), Some("/api/v1/transactions")],
        "{line}"
    );

    // A lane's log line carries a request's trace id if the batch has one record.
    let placed = partner.order(&sale, 1).await;
    expect_success(&placed, 201);
    let line = wait_for_log_line(
        &service,
        trace_of(&placed),
        "batch outcome unknown; recovering the lane",
    );
    assert_eq!(
        request_of(&line),
        [Some("POST"), Some("/api/v1/orders")],
        "{line}"
    );
}

#[tokio::test]
async fn order_keeps_trace_and_durations_which_its_log_line_has_with_the_commit() {
    let service = Instance::start_with(&[("VOUCHSAFE_LOG", "info"), ("VOUCHSAFE_LOG_FORMAT", "json")]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("100").await;
    let placed = partner.order(&sale, 1).await;
    let order = expect_success(&placed, 201);
    let order_id = order["order_id"].as_str().unwrap();

    let trace = operator.get(&format!("/admin/v1/orders/{order_id}")).await["trace"].take();
    assert_eq!(trace["trace_id"], trace_of(&placed));
    let trace_id = trace_of(&placed);
    let other = trace_id.chars().rev().collect::<String>();
    for (text, count) in [
        (trace_id.to_owned(), 1),
        (trace_id.to_uppercase(), 1),
        (format!("00-{trace_id}-00f067aa0ba902b7-01"), 1),
        (other, 0),
    ] {
        let found = operator.get(&format!("/admin/v1/search?q={text}")).await;
        let ids = found["data"].as_array().unwrap().iter().map(|found| &found["id"]);
        assert_eq!(ids.collect::<Vec<_>>(), vec![order_id; count], "{text}");
    }
    // The first order of its lane is in the log.
    let line = wait_for_log_line(&service, trace_of(&placed), "order committed");
    assert_eq!(line["order.id"], order_id);
    for step in ["admission_us", "holds_us", "queue_us"] {
        assert!(trace[step].is_u64(), "{trace}");
        assert_eq!(line[format!("order.{step}")], trace[step], "{step}");
    }
    // A signature is checked and Postgres commits: neither takes less than a microsecond.
    assert!(trace["admission_us"].as_u64() > Some(0), "{trace}");
    assert!(line["order.commit_us"].as_u64() > Some(0), "{line}");

    let read = expect_success(&partner.get(&format!("/orders/{order_id}")).await, 200);
    assert_eq!(read.get("trace"), None, "partners do not see it");
}
