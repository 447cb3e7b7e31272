//! An id of another partner is as unknown as one that does not exist: on each route, in each filter and as a
//! cursor. Routes and parameters come from the OpenAPI document.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::{
    Behavior, Listener, Operator, Partner, Receiver, WAIT_TIMEOUT, eventually, expect_success, id_of,
    json_of, shared, text_of, unique,
};

use crate::payouts::{payout_body, request_payout};

const API_PREFIX: &str = "/api/v1";

/// Path parameter that names no object of a partner.
const DATE: &str = "date";

/// An object of the victim.
struct OwnId {
    /// Name of its path and query parameters.
    parameter: &'static str,
    id: String,
    unknown: String,
}

impl OwnId {
    /// The last digit of the unknown id differs.
    fn of(parameter: &'static str, id: &Value) -> Self {
        let id = id.as_str().unwrap().to_owned();
        let last = if id.ends_with('0') { "1" } else { "0" };
        let unknown = id[..id.len() - 1].to_owned() + last;
        Self {
            parameter,
            id,
            unknown,
        }
    }
}

/// A partner with objects of each kind; its product is in no other partner's catalogue.
struct Victim {
    partner: Partner,
    ids: Vec<OwnId>,
    _receiver: Receiver,
}

impl Victim {
    async fn create(operator: &mut Operator) -> Self {
        let receiver = Receiver::start();
        receiver.set_behavior(Behavior::Status(500));
        let mut partner = operator.add_partner("1000").await;
        let sale = operator.add_stocked_product(3).await;
        let webhook_id = register_webhook(&mut partner, &receiver).await;
        let order = expect_success(&partner.order(&sale, 2).await, 201);
        expect_success(&partner.order(&sale, 1).await, 201);
        let mut payout = Value::Null;
        for _ in 0..2 {
            let response = request_payout(&mut partner, &unique("key"), &payout_body("1")).await;
            payout = expect_success(&response, 202);
        }
        let event = receiver.wait_for_events(1)[0].event_id();
        let delivery = failed_delivery(&mut partner, &webhook_id).await;
        let transactions = partner.read("/transactions").await;
        let transaction = transactions["data"][0]["transaction_id"].clone();
        let ids = vec![
            OwnId::of("delivery_id", &delivery),
            OwnId::of("event_id", &json!(event)),
            OwnId::of("order_id", &json!(id_of(&order))),
            OwnId::of("payout_id", &payout["payout_id"]),
            OwnId::of("webhook_id", &webhook_id),
            OwnId::of("transaction_id", &transaction),
            OwnId::of("product_id", &json!(sale.product_id)),
        ];
        Self {
            partner,
            ids,
            _receiver: receiver,
        }
    }

    fn find(&self, parameter: &str) -> &OwnId {
        let found = self.ids.iter().find(|own| own.parameter == parameter);
        found.unwrap_or_else(|| panic!("the test creates no object for the parameter {parameter}"))
    }
}

/// The delivery of an event whose first attempt failed.
async fn failed_delivery(partner: &mut Partner, webhook_id: &Value) -> Value {
    let path = format!("/webhooks/{}/deliveries", webhook_id.as_str().unwrap());
    eventually("a failed attempt with its delivery", WAIT_TIMEOUT, async || {
        let attempts = partner.read(&path).await;
        let attempts = attempts["data"].as_array().unwrap().iter();
        let mut deliveries = attempts.map(|attempt| attempt["delivery_id"].clone());
        deliveries.find(Value::is_string)
    })
    .await
}

async fn register_webhook(partner: &mut Partner, receiver: &Receiver) -> Value {
    let webhook = json!({ "url": receiver.url(), "events": ["order.created"] }).to_string();
    let webhook = partner.send_signed(Method::POST, "/webhooks", &webhook).await;
    expect_success(&webhook, 201)["webhook_id"].clone()
}

/// An operation of the document, with its path below the prefix.
struct Operation {
    method: Method,
    path: String,
    /// The example of its body; empty without a body.
    body: String,
    query_parameters: Vec<String>,
}

impl Operation {
    /// Name of the path parameter, if it is an id.
    fn id_parameter(&self) -> Option<&str> {
        let (_, rest) = self.path.split_once('{')?;
        let (name, _) = rest.split_once('}')?;
        (name != DATE).then_some(name)
    }

    fn path_with(&self, id: &str) -> String {
        let parameter = format!("{{{}}}", self.id_parameter().unwrap());
        self.path.replace(&parameter, id)
    }
}

/// All operations below the prefix, `DELETE` last: the victim's objects must exist until then.
fn operations() -> Vec<Operation> {
    let document = Listener::Partner.document().served();
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix(API_PREFIX) else {
            continue;
        };
        for (method, operation) in methods.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            let example = content.get("example").cloned();
            let first = || Some(content["examples"].as_object()?.values().next()?["value"].clone());
            let body = example.or_else(first).map(|body| body.to_string());
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let in_query = parameters.filter(|parameter| parameter["in"] == "query");
            all.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.to_owned(),
                body: body.unwrap_or_default(),
                query_parameters: in_query
                    .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                    .collect(),
            });
        }
    }
    all.sort_by_key(|operation| operation.method == Method::DELETE);
    all
}

async fn send(partner: &mut Partner, operation: &Operation, id: &str) -> ApiResponse {
    let mut headers = HeaderMap::new();
    let key = HeaderValue::from_str(&unique("key")).unwrap();
    headers.insert("idempotency-key", key);
    let method = operation.method.clone();
    let path = operation.path_with(id);
    let sent = partner
        .client
        .send_signed(method, &path, operation.body.clone(), headers);
    sent.await.unwrap()
}

/// Status and body, without the id that was asked for and without the trace id.
fn comparable(response: &ApiResponse, id: &str) -> (u16, Value) {
    let mut body: Value = serde_json::from_str(&text_of(response).replace(id, "ID")).unwrap_or_default();
    if let Some(error) = body["error"].as_object_mut() {
        error.remove("trace_id");
    }
    (response.status.as_u16(), body)
}

#[tokio::test]
async fn object_of_another_partner_is_unknown_on_every_route() {
    let mut operator = Operator::of(shared());
    let mut victim = Victim::create(&mut operator).await;
    let mut attacker = operator.add_partner("1000").await;
    operator
        .patch_partner(&attacker, &json!({ "catalogue": { "products": [] } }))
        .await;
    let operations: Vec<Operation> = operations()
        .into_iter()
        .filter(|operation| operation.id_parameter().is_some())
        .collect();
    assert!(operations.len() > 15, "{} operations", operations.len());
    for operation in &operations {
        let own = victim.find(operation.id_parameter().unwrap());
        let name = format!("{} {}", operation.method, operation.path);
        let foreign = send(&mut attacker, operation, &own.id).await;
        let unknown = send(&mut attacker, operation, &own.unknown).await;
        assert_eq!(foreign.status, 404, "{name}: {}", text_of(&foreign));
        assert_eq!(
            comparable(&foreign, &own.id),
            comparable(&unknown, &own.unknown),
            "{name}"
        );
    }
    // The same requests of the partner itself find the object: the first part has asked for the right thing.
    for operation in &operations {
        let id = victim.find(operation.id_parameter().unwrap()).id.clone();
        let own = send(&mut victim.partner, operation, &id).await;
        let foreign = send(&mut attacker, operation, &id).await;
        assert_ne!(
            comparable(&own, &id),
            comparable(&foreign, &id),
            "{} {}",
            operation.method,
            operation.path
        );
    }
}

#[tokio::test]
async fn filter_by_an_id_of_another_partner_finds_what_an_unknown_id_finds() {
    let mut operator = Operator::of(shared());
    let victim = Victim::create(&mut operator).await;
    let mut attacker = operator.add_partner("1000").await;
    let receiver = Receiver::start();
    let webhook_id = register_webhook(&mut attacker, &receiver).await;
    let mut filters = 0;
    for operation in operations() {
        for parameter in &operation.query_parameters {
            // Categories are the same for all partners.
            if !parameter.ends_with("_id") || parameter == "category_id" {
                continue;
            }
            filters += 1;
            let own = victim.find(parameter);
            let path = operation
                .path
                .replace("{webhook_id}", webhook_id.as_str().unwrap());
            assert!(!path.contains('{'), "{path}");
            let foreign = attacker.get(&format!("{path}?{parameter}={}", own.id)).await;
            let unknown = attacker.get(&format!("{path}?{parameter}={}", own.unknown)).await;
            assert_eq!(
                comparable(&foreign, &own.id),
                comparable(&unknown, &own.unknown),
                "{path} {parameter}"
            );
        }
    }
    assert!(filters > 1, "{filters} filters");
    let replay = format!("/webhooks/{}/replay", webhook_id.as_str().unwrap());
    let event = victim.find("event_id");
    let mut replay_event = async |id: &str| {
        let body = json!({ "event_id": id }).to_string();
        let response = attacker.send_signed(Method::POST, &replay, &body).await;
        comparable(&response, id)
    };
    let foreign = replay_event(&event.id).await;
    assert_eq!(foreign.1["error"]["code"], "EVENT_NOT_FOUND");
    assert_eq!(foreign, replay_event(&event.unknown).await);
}

#[tokio::test]
async fn cursor_of_another_partner_shows_none_of_its_rows() {
    let mut operator = Operator::of(shared());
    let mut victim = Victim::create(&mut operator).await;
    let mut attacker = operator.add_partner("1000").await;
    let (mut cursors, mut lists) = (Vec::new(), Vec::new());
    for operation in operations() {
        let is_list = operation.query_parameters.iter().any(|name| name == "cursor");
        if is_list && operation.id_parameter().is_none() {
            let page = victim.partner.read(&format!("{}?limit=1", operation.path)).await;
            cursors.extend(page["next_cursor"].as_str().map(ToOwned::to_owned));
            lists.push(operation.path);
        }
    }
    assert!(cursors.len() >= 4, "{cursors:?}");
    let own_rows: Vec<String> = own_rows(&mut victim.partner, &lists).await;
    for list in &lists {
        for cursor in &cursors {
            let response = attacker.get(&format!("{list}?cursor={cursor}")).await;
            if response.status == 200 {
                let text = json_of(&response).to_string();
                let found = own_rows.iter().find(|id| text.contains(id.as_str()));
                assert_eq!(found, None, "{list} with {cursor}");
            } else {
                assert!(
                    response.status.is_client_error(),
                    "{list}: {}",
                    text_of(&response)
                );
            }
        }
    }
}

/// The ids of all rows of the partner's lists. Products and categories belong to nobody.
async fn own_rows(partner: &mut Partner, lists: &[String]) -> Vec<String> {
    let mut ids = Vec::new();
    let is_own = |list: &&String| !["/products", "/categories"].contains(&list.as_str());
    for list in lists.iter().filter(is_own) {
        for row in partner.list_all(list).await {
            let fields = row.as_object().unwrap().iter();
            let own = fields.filter(|(name, _)| name.ends_with("_id"));
            ids.extend(own.filter_map(|(_, id)| id.as_str().map(ToOwned::to_owned)));
        }
    }
    assert!(ids.len() > 6, "{ids:?}");
    ids
}
