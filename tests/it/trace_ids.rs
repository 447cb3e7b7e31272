//! Can everything that was logged about a request be found by its trace id?

use serde_json::Value;
use vouchsafe_load::client::ApiResponse;

use crate::support::{Database, Instance, Operator, WAIT_TIMEOUT, expect_success, expect_error, wait_until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn trace_of(answer: &ApiResponse) -> &str {
    answer.header("x-trace-id").unwrap()
}

/// The line that has this message and this trace id.
fn wait_for_log_line(service: &Instance, trace: &str, message: &str) -> Value {
    let about = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line["trace.id"] == trace && line["message"] == message).then_some(line)
    };
    wait_until(message, WAIT_TIMEOUT, || service.log().lines().find_map(about))
}

/// Which request a line says that it is about.
fn request_of(line: &Value) -> [Option<&str>; 2] {
    ["http.method", "http.route"].map(|field| line[field].as_str())
}

#[tokio::test]
async fn a_line_about_a_request_has_its_trace_id_wherever_it_was_logged() {
    // The span is there where lines of a lower level are left out, too.
    let service = Instance::start_with(&[("VOUCHSAFE_LOG", "warn"), ("VOUCHSAFE_LOG_FORMAT", "json")]);
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(2).await;
    let mut partner = operator.add_partner("100").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    Database::of(&service).await.terminate_other_connections().await;

    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let failed = partner.get_with_header("/transactions", ("traceparent", &parent)).await;
    expect_error(&failed, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(trace_of(&failed), TRACE);
    let line = wait_for_log_line(&service, TRACE, "database statement of a request failed");
    assert_eq!(
        request_of(&line),
        [Some("GET"), Some("/api/v1/transactions")],
        "{line}"
    );

    // What a lane logs of a batch is about a request where the batch is one record.
    let placed = partner.order(&sale, 1).await;
    expect_success(&placed, 201);
    let line = wait_for_log_line(&service, trace_of(&placed), "a batch must be settled");
    assert_eq!(
        request_of(&line),
        [Some("POST"), Some("/api/v1/orders")],
        "{line}"
    );
}
