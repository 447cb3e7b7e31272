//! Vendor administration: configuration and sealed credentials.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use crate::change_requests::FourEyes;
use crate::commands::{run_error, run_json, run_ok};
use vouchsafe_test_harness::{
    Instance, Operator, ServiceDatabase, VendorSimulator, WAIT_TIMEOUT, eventually, expect_error,
    expect_success, shared, unique,
};

const CREDENTIAL: &str = "CNRYVENDOR-credential";

async fn put_vendor(operator: &mut Operator, vendor_id: &str, body: &Value) -> ApiResponse {
    let path = format!("/admin/v1/vendors/{vendor_id}");
    operator.call_json(Method::PUT, &path, body.to_string()).await
}

async fn find_vendor(operator: &mut Operator, vendor_id: &str) -> Value {
    let mut path = "/admin/v1/vendors?limit=100".to_owned();
    loop {
        let page = operator.get(&path).await;
        let found = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .find(|vendor| vendor["vendor_id"] == vendor_id);
        if let Some(found) = found {
            return found.clone();
        }
        let cursor = page["next_cursor"]
            .as_str()
            .unwrap_or_else(|| panic!("{vendor_id} is not listed"));
        path = format!("/admin/v1/vendors?limit=100&cursor={cursor}");
    }
}

/// Returns the expected vendor without `updated_at`.
fn vendor_body(vendor_id: &str, adapter: &str, url: Value, has_credentials: bool, concurrency: u16) -> Value {
    json!({
        "vendor_id": vendor_id, "adapter": adapter, "url": url, "has_credentials": has_credentials,
        "concurrency": concurrency,
    })
}

fn without_time(mut vendor: Value) -> Value {
    let at = vendor.as_object_mut().unwrap().remove("updated_at").unwrap();
    assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    // Only reads have a circuit; there is none before the first call.
    let circuit = vendor.as_object_mut().unwrap().remove("circuit");
    assert!(circuit.is_none_or(|circuit| circuit.is_null()));
    vendor
}

#[tokio::test]
async fn circuit_of_failing_vendor_is_open_on_the_node_that_called_it() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let id = unique("vendor");
    // Nothing listens on the port of the discard protocol.
    let http = json!({ "adapter": "http", "url": "http://127.0.0.1:9", "credentials": CREDENTIAL });
    expect_success(&put_vendor(&mut operator, &id, &http).await, 201);
    assert_eq!(find_vendor(&mut operator, &id).await["circuit"], Value::Null);
    let sale = operator
        .add_product_with(json!({ "route": "vendor", "vendor": id }), "25", 0)
        .await;
    let mut partner = operator.add_partner("1000").await;
    for _ in 0..5 {
        partner.order(&sale, 1).await;
    }
    let circuit = eventually("the circuit to open", WAIT_TIMEOUT, async || {
        let vendor = operator.get(&format!("/admin/v1/vendors/{id}")).await;
        Some(vendor["circuit"].clone()).filter(|circuit| circuit["state"] == "open")
    });
    let circuit = circuit.await;
    let node = std::fs::read_to_string(service.data_dir().join("node")).unwrap();
    assert_eq!(circuit["node"].as_str().unwrap(), node.trim());
    assert!(
        circuit["consecutive_failures"].as_u64().unwrap() >= 5,
        "{circuit}"
    );
    assert!(
        circuit["next_probe_at"].as_str() > circuit["since"].as_str(),
        "{circuit}"
    );
    assert_eq!(service.stop(), Some(0));
}

#[tokio::test]
async fn sandbox_has_mock_vendor() {
    let mut operator = Operator::of(shared());
    let mock = without_time(find_vendor(&mut operator, "mock").await);
    assert_eq!(mock, vendor_body("mock", "mock", Value::Null, false, 4));
    assert_eq!(without_time(operator.get("/admin/v1/vendors/mock").await), mock);
    for vendor_id in ["no-such-vendor", "Mock"] {
        let path = format!("/admin/v1/vendors/{vendor_id}");
        expect_error(
            &operator.call_json(Method::GET, &path, "").await,
            404,
            "VENDOR_NOT_FOUND",
        );
    }
}

#[tokio::test]
async fn vendor_response_omits_credential() {
    let mut operator = Operator::of(shared());
    let id = unique("vendor");
    let url = "https://vendor.example/api";
    let http =
        json!({ "adapter": "http", "url": format!("{url}/"), "credentials": CREDENTIAL, "concurrency": 8 });
    let expected = vendor_body(&id, "http", json!(url), true, 8);
    assert_eq!(
        without_time(expect_success(&put_vendor(&mut operator, &id, &http).await, 201)),
        expected
    );
    assert_eq!(without_time(find_vendor(&mut operator, &id).await), expected);
    // Without a new credential the old one is retained as long as the URL is unchanged.
    let without_credential = json!({ "adapter": "http", "url": url });
    let expected = vendor_body(&id, "http", json!(url), true, 4);
    assert_eq!(
        without_time(expect_success(
            &put_vendor(&mut operator, &id, &without_credential).await,
            200
        )),
        expected
    );
    let other_url = json!({ "adapter": "http", "url": "https://other.example" });
    let response = put_vendor(&mut operator, &id, &other_url).await;
    let error = expect_error(&response, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "credentials");
    assert_eq!(
        without_time(find_vendor(&mut operator, &id).await),
        expected,
        "the rejected change must have no effect"
    );
    let expected_manual = vendor_body(&id, "manual", Value::Null, false, 4);
    let manual = json!({ "adapter": "manual" });
    assert_eq!(
        without_time(expect_success(
            &put_vendor(&mut operator, &id, &manual).await,
            200
        )),
        expected_manual
    );
    // A dropped credential is not restored.
    let response = put_vendor(&mut operator, &id, &without_credential).await;
    expect_error(&response, 422, "VALIDATION_FAILED");
}

#[tokio::test]
async fn vendor_credential_change_is_audited_without_value() {
    let mut operator = Operator::of(shared());
    let id = unique("vendor");
    let http = json!({ "adapter": "http", "url": "https://vendor.example", "credentials": CREDENTIAL });
    expect_success(&put_vendor(&mut operator, &id, &http).await, 201);
    let without_credential = json!({ "adapter": "http", "url": "https://vendor.example", "concurrency": 64 });
    expect_success(&put_vendor(&mut operator, &id, &without_credential).await, 200);
    let trail = operator
        .get(&format!("/admin/v1/audit?action=vendor.put&subject={id}"))
        .await;
    let [second, first] = &trail["data"].as_array().unwrap()[..] else {
        panic!("{trail}");
    };
    assert_eq!(
        (&first["before"], &first["after"]["credentials_changed"]),
        (&Value::Null, &json!(true))
    );
    assert_eq!(second["after"]["credentials_changed"], json!(false));
    assert_eq!(
        (&second["before"]["concurrency"], &second["after"]["concurrency"]),
        (&json!(4), &json!(64))
    );
    assert!(!trail.to_string().contains("CNRY"), "{trail}");
}

/// Who can write to the database gets neither the credential of a vendor nor its orders.
#[tokio::test]
async fn vendor_whose_url_was_changed_in_the_database_is_not_called() {
    let (service, honest, attacker) = (
        Instance::start(),
        VendorSimulator::start(&[]),
        VendorSimulator::start(&[]),
    );
    let mut operator = Operator::of(&service);
    let http = json!({ "adapter": "http", "url": honest.url, "credentials": "simulator" });
    expect_success(&put_vendor(&mut operator, "acme", &http).await, 201);
    let mut database = ServiceDatabase::of(&service).await;
    let redirect = format!(
        "UPDATE vendors SET url = '{}' WHERE vendor_id = 'acme'",
        attacker.url
    );
    database.run(redirect).await;
    let route = json!({ "route": "vendor", "vendor": "acme" });
    let sale = operator.add_product_with(route, "25", 0).await;
    let mut partner = operator.add_partner("1000").await;
    partner.order(&sale, 1).await;
    eventually("the refusal", WAIT_TIMEOUT, async || {
        let orders = operator.get("/admin/v1/orders").await;
        assert_ne!(
            orders["data"][0]["status"], "DELIVERED",
            "the attacker has the credential"
        );
        service
            .log()
            .contains("cannot decrypt the vendor's credential")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn vendor_credential_is_encrypted_at_rest() {
    let mut operator = Operator::of(shared());
    let id = unique("vendor");
    let http = json!({ "adapter": "http", "url": "https://vendor.example", "credentials": CREDENTIAL });
    expect_success(&put_vendor(&mut operator, &id, &http).await, 201);
    let mut database = ServiceDatabase::of(shared()).await;
    let sealed = "SELECT count(*)
                    FROM vendors
                   WHERE vendor_id = $1
                     AND length(ciphertext) > 16
                     AND position('CNRY'::bytea IN ciphertext) = 0";
    let rows = database.count(sealed, &id).await;
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn invalid_vendor_is_rejected_by_field() {
    let mut operator = Operator::of(shared());
    let id = unique("vendor");
    let https = "https://vendor.example";
    for (body, field) in [
        (json!({ "adapter": "carrier-pigeon" }), "adapter"),
        (json!({ "adapter": "mock", "url": https }), "url"),
        (
            json!({ "adapter": "manual", "credentials": CREDENTIAL }),
            "credentials",
        ),
        (json!({ "adapter": "http", "credentials": CREDENTIAL }), "url"),
        (json!({ "adapter": "http", "url": https }), "credentials"),
        (
            json!({ "adapter": "http", "url": "http://vendor.example", "credentials": CREDENTIAL }),
            "url",
        ),
        (
            json!({ "adapter": "http", "url": "https://u:p@vendor.example", "credentials": CREDENTIAL }),
            "url",
        ),
        (
            json!({ "adapter": "http", "url": https, "credentials": "" }),
            "credentials",
        ),
        (
            json!({ "adapter": "http", "url": https, "credentials": "CNRYVENDOR two" }),
            "credentials",
        ),
        (
            json!({ "adapter": "http", "url": https, "credentials": "x".repeat(4_097) }),
            "credentials",
        ),
        (
            json!({ "adapter": "http", "url": https, "credentials": [CREDENTIAL] }),
            "credentials",
        ),
        (json!({ "adapter": "mock", "concurrency": 0 }), "concurrency"),
        (json!({ "adapter": "mock", "concurrency": 65 }), "concurrency"),
        (json!({ "adapter": "mock", "concurrency": -1 }), "concurrency"),
        (json!({ "adapter": "mock", "colour": "red" }), "colour"),
    ] {
        let response = put_vendor(&mut operator, &id, &body).await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{body}: {error}");
        assert!(!error.to_string().contains("CNRY"), "{error}");
    }
    let response = put_vendor(&mut operator, "No-Slug", &json!({ "adapter": "mock" })).await;
    let error = expect_error(&response, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "vendor_id");
}

#[test]
fn vendor_commands_put_and_list() {
    let (id, directory) = (unique("vendor"), tempfile::tempdir().unwrap());
    let file = directory.path().join("credential.txt");
    std::fs::write(&file, format!("{CREDENTIAL}\n")).unwrap();
    let credential_file = format!("@{}", file.display());
    let put = [
        "vendor",
        "put",
        &id,
        "--adapter",
        "http",
        "--url",
        "https://vendor.example",
        "--credentials",
        &credential_file,
    ];
    let created = run_json(&put);
    assert_eq!(
        (&created["has_credentials"], &created["concurrency"]),
        (&json!(true), &json!(4))
    );
    let list = run_json(&["vendor", "list"]);
    let mut listed = list["data"].as_array().unwrap().iter();
    let listed = listed.find(|vendor| vendor["vendor_id"] == id.as_str());
    assert_eq!(listed.unwrap()["url"], "https://vendor.example", "{list}");
    let list = list.to_string() + &run_ok(&["vendor", "list"]);
    assert!(
        !list.contains("CNRY") && !created.to_string().contains("CNRY"),
        "{list}"
    );
    let refused = run_error(&[
        "vendor",
        "put",
        &id,
        "--adapter",
        "http",
        "--url",
        "https://other.example",
    ]);
    assert!(
        refused.contains("credentials") && refused.contains("VALIDATION_FAILED"),
        "{refused}"
    );
}

#[tokio::test]
async fn url_of_a_vendor_needs_a_second_operator_and_a_public_address() {
    let mut eyes = FourEyes::start();
    let path = "/admin/v1/vendors/acme";
    let terms =
        |url: &str, concurrency: u16| json!({ "adapter": "http", "url": url, "concurrency": concurrency });
    let with_credentials = |url: &str| {
        let mut body = terms(url, 4);
        body["credentials"] = CREDENTIAL.into();
        body
    };
    let request = eyes
        .request(Method::PUT, path, &with_credentials("http://127.0.0.1:9"))
        .await;
    let shown = eyes.admin.get(&request).await;
    assert_eq!(
        shown["details"],
        json!({ "adapter": "http", "url": "http://127.0.0.1:9", "concurrency": 4, "credentials_changed": true })
    );
    let unknown = eyes.admin.call_json(Method::GET, path, "").await;
    expect_error(&unknown, 404, "VENDOR_NOT_FOUND");
    expect_success(&eyes.confirm(&request).await, 201);
    for body in [
        with_credentials("http://127.0.0.1:9"),
        with_credentials("http://127.0.0.1:10"),
    ] {
        eyes.request(Method::PUT, path, &body).await;
    }
    let put = eyes
        .admin
        .send_json(Method::PUT, path, &terms("http://127.0.0.1:9", 8))
        .await;
    assert_eq!(
        (&put["concurrency"], &put["url"]),
        (&json!(8), &json!("http://127.0.0.1:9"))
    );

    // Without a server.
    let manual = json!({ "adapter": "manual" });
    eyes.admin.send_json(Method::PUT, path, &manual).await;

    let service = Instance::start_with(&[("VOUCHSAFE_VENDOR_NETWORK", "public")]);
    let mut operator = Operator::of(&service);
    for url in [
        "http://127.0.0.1:22",
        "https://127.0.0.1",
        "https://10.0.0.1/api",
        "https://169.254.169.254",
        "https://localhost:8443",
    ] {
        let body = with_credentials(url).to_string();
        let refused = operator.call_json(Method::PUT, path, body).await;
        expect_error(&refused, 422, "VALIDATION_FAILED");
    }
}
