//! Invalid reconciliation requests and vendor records, and the disabled preview.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use hyper::Method;
use serde_json::{Value, json};

use super::harness::get_preview;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, shared, unique,
};

const HEADER: &str = "reference,product_id,denomination,currency,sold_at";

async fn upload(operator: &mut Operator, path: &str, file: &str) -> Value {
    let path = format!("/admin/v1/reconciliation/{path}");
    let response = operator
        .call(Method::POST, &path, "text/csv", file.to_owned())
        .await;
    expect_error(&response, 422, "VALIDATION_FAILED")
}

#[tokio::test]
async fn reconciliation_route_without_preview_is_not_found() {
    let mut operator = Operator::of(shared());
    let mut partner: Partner = operator.add_partner("0").await;
    for date in ["2026-11-20", "not-a-date", "9999-12-31"] {
        let response = partner.get(&format!("/reconciliation/{date}")).await;
        expect_error(&response, 404, "ROUTE_NOT_FOUND");
    }
}

#[tokio::test]
async fn preview_of_invalid_or_unreconciled_date_is_rejected() {
    let service = Instance::start_with(&[("VOUCHSAFE_RECONCILIATION_PREVIEW", "on")]);
    let partner = Operator::of(&service).add_partner("0").await;
    for date in ["2026-11-31", "20261120", "2026-11-20T00:00:00Z", "x"] {
        let response = get_preview(&service, &partner, date).await;
        expect_error(&response, 422, "VALIDATION_FAILED");
    }
    let response = get_preview(&service, &partner, "2001-01-01").await;
    expect_error(&response, 404, "RECONCILIATION_NOT_FOUND");
}

#[tokio::test]
async fn invalid_reconciliation_request_is_rejected_by_field() {
    let mut operator = Operator::of(shared());
    let vendor = unique("vendor");
    let put = json!({ "adapter": "manual" });
    operator
        .send_json(Method::PUT, &format!("/admin/v1/vendors/{vendor}"), &put)
        .await;
    let good = format!("{HEADER}\nA-1,game-us,25,USD,2026-11-20T10:00:00Z\n");
    let at = |date: &str| format!("{date}/records?vendor={vendor}");
    for (path, file, expected) in [
        (at("2026-11-20"), "code\nSECRET-CODE\n".to_owned(), "line 1"),
        (
            at("2026-11-20"),
            format!("{HEADER}\nSECRET CODE,game-us,25,USD,2026-11-20T10:00:00Z"),
            "line 2",
        ),
        (
            at("2026-11-20"),
            format!("{good}A-1,game-us,25,USD,2026-11-20T11:00:00Z"),
            "record 2",
        ),
        (at("9999-12-31"), good.clone(), "date"),
        (at("yesterday"), good.clone(), "date"),
        (
            "2026-11-20/records?vendor=nobody".to_owned(),
            good.clone(),
            "vendor",
        ),
        ("2026-11-20/records".to_owned(), good.clone(), "vendor"),
    ] {
        let error = upload(&mut operator, &path, &file).await;
        assert_eq!(error["details"][0]["field"], expected, "{path} {file}");
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
    let path = format!("/admin/v1/reconciliation/{}", at("2026-11-20"));
    let response = operator.call_json(Method::POST, &path, good).await;
    expect_error(&response, 415, "UNSUPPORTED_MEDIA_TYPE");
    let run = |body: Value| {
        (
            Method::POST,
            "/admin/v1/reconciliation/2026-11-20/run".to_owned(),
            body,
        )
    };
    let resolve =
        |drift_id: &str, body: Value| (Method::POST, format!("/admin/v1/drifts/{drift_id}/resolve"), body);
    let drift_id = "drf_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
    let resolution = json!({ "resolution": "resolved", "reason": "paid back" });
    for ((method, path, body), status, code) in [
        (run(json!({ "vendor": vendor })), 422, "VALIDATION_FAILED"),
        (run(json!({ "vendors": [] })), 422, "VALIDATION_FAILED"),
        (resolve(drift_id, resolution.clone()), 404, "DRIFT_NOT_FOUND"),
        (resolve("ord_1", resolution), 404, "DRIFT_NOT_FOUND"),
        (
            resolve(drift_id, json!({ "resolution": "pending", "reason": "x" })),
            422,
            "VALIDATION_FAILED",
        ),
        (
            resolve(drift_id, json!({ "resolution": "resolved", "reason": "" })),
            422,
            "VALIDATION_FAILED",
        ),
        (
            resolve(drift_id, json!({ "resolution": "resolved" })),
            422,
            "VALIDATION_FAILED",
        ),
        (
            (
                Method::GET,
                "/admin/v1/reconciliation/2001-01-01".to_owned(),
                Value::Null,
            ),
            404,
            "RECONCILIATION_NOT_FOUND",
        ),
        (
            (
                Method::GET,
                "/admin/v1/reconciliation/today".to_owned(),
                Value::Null,
            ),
            422,
            "VALIDATION_FAILED",
        ),
        (
            (Method::GET, "/admin/v1/drifts?kind=WRONG".to_owned(), Value::Null),
            422,
            "VALIDATION_FAILED",
        ),
        (
            (Method::GET, "/admin/v1/drifts?date=x".to_owned(), Value::Null),
            422,
            "VALIDATION_FAILED",
        ),
    ] {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let response = operator.call_json(method, &path, body).await;
        expect_error(&response, status, code);
    }
}

#[tokio::test]
async fn code_in_place_of_reference_is_rejected_unstored() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let code = unique("SECRET");
    operator.import_csv(&sale, format!("code\n{code}\n")).await;
    let vendor = unique("vendor");
    operator
        .send_json(
            Method::PUT,
            &format!("/admin/v1/vendors/{vendor}"),
            &json!({ "adapter": "manual" }),
        )
        .await;
    let line = |reference: &str| format!("\n{reference},{},25,USD,2026-11-20T10:00:00Z", sale.product_id);
    let file = format!("{HEADER}{}{}", line("A-1"), line(&code));
    let path = format!("2026-11-20/records?vendor={vendor}");
    let error = upload(&mut operator, &path, &file).await;
    assert_eq!(error["details"][0]["field"], "record 2");
    assert!(!error.to_string().contains(&code), "{error}");
    let count = "SELECT count(*) FROM vendor_records WHERE reference LIKE '%' || $1";
    let mut database = ServiceDatabase::of(shared()).await;
    assert_eq!(database.count(count, &code).await, 0);
}

/// Starts a vendor that responds to every request with this body.
fn start_fixed_response_vendor(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut lines = BufReader::new(connection.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap_or(0) > 0 {}
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close",
                body.len()
            );
            drop(write!(connection, "{head}\r\n\r\n{body}"));
        }
    });
    url
}

#[tokio::test]
async fn invalid_vendor_records_are_rejected_entirely_and_reported() {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let record = |reference: &str, sold_at: &str| {
        json!({
            "reference": reference, "purchase_id": "0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f", "product_id": "game-us",
            "denomination": 25.00, "currency": "USD", "sold_at": sold_at,
        })
    };
    let noon = "2026-11-01T12:00:00Z";
    for (name, data, expected) in [
        (
            "no-books",
            json!("SECRET-CODE"),
            "data does not follow the vendor protocol",
        ),
        (
            "other-day",
            json!([record("A-1", noon), record("A-2", "2026-11-02T00:00:00Z")]),
            "record 1 belongs to another day",
        ),
        (
            "twice",
            json!([record("A-1", noon), record("SECRET", noon), record("A-1", noon)]),
            "record 3 repeats the reference",
        ),
    ] {
        let url = start_fixed_response_vendor(json!({ "data": data, "next_cursor": null }).to_string());
        let vendor = json!({ "adapter": "http", "url": url, "credentials": "any" });
        operator
            .send_json(Method::PUT, &format!("/admin/v1/vendors/{name}"), &vendor)
            .await;
        let run = json!({ "vendor": name });
        operator
            .send_json(Method::POST, "/admin/v1/reconciliation/2026-11-01/run", &run)
            .await;
        let found = eventually("the attempt to fail", WAIT_TIMEOUT, async || {
            let day = operator.get("/admin/v1/reconciliation/2026-11-01").await;
            let vendors = day["vendors"].as_array().unwrap().iter();
            let mut failed =
                vendors.filter(|vendor| vendor["vendor"] == name && vendor["failed_attempts"] == 1);
            failed.next().cloned()
        })
        .await;
        assert!(
            found["last_error"].as_str().unwrap().contains(expected),
            "{found}"
        );
        assert!(
            found["generated_at"].is_null() && found["next_attempt_at"].is_string(),
            "{found}"
        );
        assert!(!found.to_string().contains("SECRET"), "{found}");
    }
    assert_eq!(operator.get("/admin/v1/drifts").await["data"], json!([]));
    let metrics = operator.call_without_token(Method::GET, "/metrics", &[]).await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(
        metrics.contains("vouchsafe_vendor_reconciliations_failed_total{vendor=\"twice\"} 1"),
        "{metrics}"
    );
    let log = service.log();
    assert!(
        log.contains("vendor records rejected") && !log.contains("SECRET"),
        "{log}"
    );
    service.assert_verified();
}
