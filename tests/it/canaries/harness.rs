//! Canary harness: sends requests that contain canaries and records every response.

mod secrets;

use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::{IDEMPOTENCY_KEY, unix_seconds};

use vouchsafe_test_harness::{
    Instance, Listener, Operator, Partner, Sale, ServiceDatabase, expect_error, expect_success, id_of,
    order_body, text_of,
};

/// Prefixes of the canaries.
pub(super) const CODE: &str = "CNRYCODE";
pub(super) const STRAY_CODE: &str = "CNRYSTRAY";
pub(super) const UNKNOWN_FIELD: &str = "CNRYFIELD";
pub(super) const UNKNOWN_PRODUCT: &str = "CNRYPRODUCT";
pub(super) const KEY_PREFIX: &str = "CNRYKEY";
pub(super) const METADATA: &str = "CNRYMETADATA";
pub(super) const VENDOR_CREDENTIAL: &str = "CNRYVENDOR";
pub(super) const ACCOUNT: &str = "CNRYACCOUNT0815";

/// Each of these tables is made to reject its rows, so that Postgres reports the row in an error.
const WRITTEN_TABLES: [&str; 7] = [
    "codes",
    "stock",
    "orders",
    "idempotency_keys",
    "events",
    "credentials",
    "audit_log",
];

pub(super) struct RecordedResponse {
    pub(super) request: String,
    pub(super) text: String,
}

pub(super) struct CanaryHarness {
    pub(super) service: Instance,
    operator: Operator,
    partner: Partner,
    product: Sale,
    pub(super) responses: Vec<RecordedResponse>,
    payout_id: String,
    webhook_id: String,
}

impl CanaryHarness {
    pub(super) async fn start() -> Self {
        let service = Instance::start_with(&[("VOUCHSAFE_LOG", "trace"), ("VOUCHSAFE_LOG_FORMAT", "json")]);
        let mut operator = Operator::of(&service);
        let sale = operator.add_stocked_product(0).await;
        let partner = operator.add_partner("1000").await;
        Self {
            service,
            operator,
            partner,
            product: sale,
            responses: Vec::new(),
            payout_id: String::new(),
            webhook_id: String::new(),
        }
    }

    fn record(&mut self, method: &Method, path: &str, response: ApiResponse) -> ApiResponse {
        let headers = format!("{:?}", response.headers);
        self.responses.push(RecordedResponse {
            request: format!("{method} {path}"),
            text: headers + &String::from_utf8_lossy(&response.body),
        });
        response
    }

    /// Sends a signed partner request with a canary as idempotency key; `path` is the full path.
    async fn call_as_partner(&mut self, method: Method, path: &str, key: &str, body: &str) -> ApiResponse {
        let mut headers = HeaderMap::new();
        let credentials = self.partner.client.credentials();
        let signed = credentials.sign(method.as_str(), path, body.as_bytes(), unix_seconds());
        signed.apply_to(&mut headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = HeaderValue::from_str(&format!("{KEY_PREFIX}-{key}")).unwrap();
        headers.insert(IDEMPOTENCY_KEY, key);
        let client = &mut self.partner.client;
        let response = client
            .send_raw(method.clone(), path, headers, body.to_owned())
            .await;
        self.record(&method, path, response.unwrap())
    }

    async fn order(&mut self, key: &str, body: &Value) -> ApiResponse {
        let body = body.to_string();
        self.call_as_partner(Method::POST, "/api/v1/orders", key, &body)
            .await
    }

    fn order_with_metadata(&self) -> Value {
        let mut order = order_body(&self.product, 1);
        order["metadata"] = json!({ "cost_centre": format!("{METADATA}-1") });
        order
    }

    async fn call_as_operator(
        &mut self,
        method: Method,
        path: &str,
        media_type: &str,
        body: &str,
    ) -> ApiResponse {
        let operator = &mut self.operator;
        let response = operator
            .call(method.clone(), path, media_type, body.to_owned())
            .await;
        self.record(&method, path, response)
    }

    async fn import(&mut self, body: &str) -> ApiResponse {
        let path = format!(
            "/admin/v1/stock?product_id={}&denomination=25",
            self.product.product_id
        );
        self.call_as_operator(Method::POST, &path, "text/csv", body).await
    }

    /// Imports, orders, replays, reads codes, voids a code and configures a vendor. Returns the order's id.
    pub(super) async fn send_valid_requests(&mut self) -> String {
        let lines: String = (0..9)
            .map(|n| format!("{CODE}-{n},{CODE}-PIN-{n},{CODE}-SERIAL-{n},https://redeem.test/{CODE}/{n},\n"))
            .collect();
        let imported = self.import(&format!("code,pin,serial,url,expiry\n{lines}")).await;
        assert_eq!(expect_success(&imported, 200)["imported"], 9);
        let order = self.order_with_metadata();
        let placed = self.order("day", &order).await;
        let order_id = id_of(&expect_success(&placed, 201));
        assert_eq!(self.order("day", &order).await.body, placed.body);
        let path = format!("/api/v1/orders/{order_id}/vouchers");
        let codes = self.call_as_partner(Method::GET, &path, "codes", "").await;
        for part in ["-", "-PIN-", "-SERIAL-", "/"] {
            assert!(text_of(&codes).contains(&format!("{CODE}{part}")), "{codes:?}");
        }
        let void = json!({
            "product_id": self.product.product_id, "reason": "stolen",
            "codes": [{ "code": format!("{CODE}-8"), "pin": format!("{CODE}-PIN-8") }],
        });
        let void = void.to_string();
        let void = self
            .call_as_operator(Method::POST, "/admin/v1/stock/void", "application/json", &void)
            .await;
        assert_eq!(expect_success(&void, 200)["voided"], 1);
        let vendor = json!({ "adapter": "http", "url": "https://vendor.test", "credentials": format!("{VENDOR_CREDENTIAL}-1") });
        let (path, vendor) = ("/admin/v1/vendors/acme-cards", vendor.to_string());
        expect_success(
            &self
                .call_as_operator(Method::PUT, path, "application/json", &vendor)
                .await,
            201,
        );
        self.request_payout().await;
        self.fulfil_manually().await;
        order_id
    }

    /// Fulfils a pending order manually, after an invalid attempt.
    async fn fulfil_manually(&mut self) {
        let manual_product = self.operator.add_product("vendor", 0).await;
        let placed = self.order("by-hand", &order_body(&manual_product, 1)).await;
        let placed = expect_success(&placed, 202);
        let path = format!("/admin/v1/orders/{}/fulfil", placed["order_id"].as_str().unwrap());
        let wrong = json!({ "vouchers": [{ "code": STRAY_CODE, "expiry": STRAY_CODE }] }).to_string();
        let right =
            json!({ "vouchers": [{ "code": format!("{CODE}-HAND"), "pin": format!("{CODE}-PIN-HAND") }] });
        let response = self
            .call_as_operator(Method::POST, &path, "application/json", &wrong)
            .await;
        expect_error(&response, 422, "VALIDATION_FAILED");
        let right = right.to_string();
        let response = self
            .call_as_operator(Method::POST, &path, "application/json", &right)
            .await;
        assert_eq!(expect_success(&response, 200)["imported"], 1);
    }

    /// Requests a payout twice.
    async fn request_payout(&mut self) {
        let destination = json!({ "type": "other", "account": format!("{ACCOUNT}-1234") });
        let order = json!({ "amount": 1, "currency": "USD", "destination": destination }).to_string();
        let path = "/api/v1/payouts";
        let first = self.call_as_partner(Method::POST, path, "payout", &order).await;
        let payout = expect_success(&first, 202);
        assert_eq!(payout["destination"]["account"], "****1234");
        assert_eq!(
            self.call_as_partner(Method::POST, path, "payout", &order)
                .await
                .body,
            first.body
        );
        payout["payout_id"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.payout_id);
    }

    /// Sends codes in wrong fields and in malformed lines and bodies.
    pub(super) async fn send_invalid_requests(&mut self) {
        for body in [
            format!(r#"{{"items":"{STRAY_CODE}"}}"#),
            format!(r#"{{"items":[],"{UNKNOWN_FIELD}":"{STRAY_CODE}"}}"#),
            format!(r#"{{"items":[{{"product_id":"{UNKNOWN_PRODUCT}","denomination":25,"quantity":1}}]}}"#),
            format!(
                r#"{{"items":[{{"product_id":"sbx-instant","denomination":"{STRAY_CODE}","quantity":1}}]}}"#
            ),
            format!("{{{STRAY_CODE}"),
            format!(r#"{{"items":[],"currency":"{STRAY_CODE}"}}"#),
        ] {
            let response = self
                .call_as_partner(
                    Method::POST,
                    "/api/v1/orders",
                    &format!("wrong-{}", body.len()),
                    &body,
                )
                .await;
            assert!(response.status.is_client_error(), "{body}: {response:?}");
        }
        let mut headers = self.partner.headers("/api/v1/orders", b"{}");
        let signature = HeaderValue::from_str(&format!("t=1,v1={STRAY_CODE}")).unwrap();
        headers.insert("x-signature", signature);
        let response = self.partner.post(headers, "{}").await;
        let response = self.record(&Method::POST, "/api/v1/orders", response);
        expect_error(&response, 401, "INVALID_SIGNATURE");
        let product = format!("/admin/v1/products/{}", self.product.product_id);
        let void = json!({ "product_id": STRAY_CODE, "codes": [{ "code": STRAY_CODE }], "reason": "r" });
        for (method, path, body) in [
            (
                Method::PUT,
                &*product,
                json!({ "denominations": STRAY_CODE, UNKNOWN_FIELD: STRAY_CODE }),
            ),
            (Method::POST, "/admin/v1/stock/void", void),
            (
                Method::PUT,
                "/admin/v1/vendors/acme-cards",
                json!({ "adapter": "http", "credentials": [VENDOR_CREDENTIAL] }),
            ),
            (
                Method::POST,
                "/admin/v1/partners",
                json!({ "name": "n", "allowlist": [STRAY_CODE] }),
            ),
        ] {
            let response = self
                .call_as_operator(method, path, "application/json", &body.to_string())
                .await;
            assert!(response.status.is_client_error(), "{body}: {response:?}");
        }
        let lines = format!("code,pin,serial,url,expiry\n{STRAY_CODE}-1,,,,{STRAY_CODE}\n{STRAY_CODE}-2,,\n");
        let rejected = expect_success(&self.import(&lines).await, 200);
        assert_eq!(
            (&rejected["imported"], &rejected["rejected_count"]),
            (&json!(0), &json!(2))
        );
        let header = format!("{STRAY_CODE},pin\n");
        assert!(self.import(&header).await.status.is_client_error());
    }

    /// Terminates the database connections and then makes one table after the other reject every row.
    pub(super) async fn inject_database_failures(&mut self) {
        let mut database = ServiceDatabase::of(&self.service).await;
        database.terminate_other_connections().await;
        let order = self.order_with_metadata();
        for attempt in 0..3 {
            self.order(&format!("cut-{attempt}"), &order).await;
        }
        for table in WRITTEN_TABLES {
            let refuse = format!("ALTER TABLE {table} ADD CONSTRAINT canary CHECK (false) NOT VALID");
            database.run(refuse).await;
            self.order(&format!("bad-{table}"), &order).await;
            self.import(&format!("code\n{CODE}-{table}\n")).await;
            self.call_as_partner(Method::POST, "/api/v1/credentials/rotate", table, "{}")
                .await;
            database
                .run(format!("ALTER TABLE {table} DROP CONSTRAINT canary"))
                .await;
        }
        let failed = self.responses.iter().filter(|response| {
            response.text.contains("SERVICE_UNAVAILABLE") || response.text.contains("INTERNAL_ERROR")
        });
        assert!(
            failed.count() >= WRITTEN_TABLES.len(),
            "each table must reject a request"
        );
    }

    /// Calls every route of both listeners, with an invalid body where one is accepted.
    pub(super) async fn call_every_route(&mut self, order_id: &str) {
        let names = [
            ("{partner_id}", self.partner.partner_id.clone()),
            ("{order_id}", order_id.to_owned()),
            ("{product_id}", self.product.product_id.clone()),
            ("{category_id}", "retail".to_owned()),
            ("{currency}", "USD".to_owned()),
            ("{language}", STRAY_CODE.to_owned()),
            ("{credential_id}", STRAY_CODE.to_owned()),
            ("{vendor_id}", "mock".to_owned()),
            ("{payout_id}", self.payout_id.clone()),
            ("{purchase_id}", STRAY_CODE.to_owned()),
            ("{webhook_id}", self.webhook_id.clone()),
            ("{delivery_id}", STRAY_CODE.to_owned()),
            ("{event_id}", STRAY_CODE.to_owned()),
            ("{transaction_id}", STRAY_CODE.to_owned()),
            ("{drift_id}", STRAY_CODE.to_owned()),
            ("{date}", STRAY_CODE.to_owned()),
            ("{name}", STRAY_CODE.to_owned()),
            ("{token_id}", STRAY_CODE.to_owned()),
            ("{session_id}", STRAY_CODE.to_owned()),
            ("{request_id}", STRAY_CODE.to_owned()),
            ("{job_id}", STRAY_CODE.to_owned()),
            ("{kind}", "wallet".to_owned()),
            ("{key}", STRAY_CODE.to_owned()),
        ];
        let filled = |template: &str| {
            let fill = |path: String, (name, value): &(&str, String)| path.replace(name, value);
            names.iter().fold(template.to_owned(), fill)
        };
        let wrong = json!({ UNKNOWN_FIELD: STRAY_CODE }).to_string();
        for listener in [Listener::Partner, Listener::Operator] {
            for (template, methods) in listener.document().served()["paths"].as_object().unwrap() {
                let path = filled(template);
                assert!(!path.contains('{'), "{path}");
                for method in methods.as_object().unwrap().keys() {
                    let method: Method = method.to_uppercase().parse().unwrap();
                    let body = match method {
                        Method::GET | Method::HEAD => "",
                        _ => &wrong,
                    };
                    match listener {
                        Listener::Partner => self.call_as_partner(method, &path, "route", body).await,
                        Listener::Operator => {
                            self.call_as_operator(method, &path, "application/json", body)
                                .await
                        }
                    };
                }
            }
        }
    }
}
