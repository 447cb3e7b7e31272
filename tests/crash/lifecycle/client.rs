//! Lifecycle client: sends random requests as a partner for its own orders and as an operator for all orders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::json;
use vouchsafe_api_client::partner::{IDEMPOTENCY_KEY, PartnerClient};
use vouchsafe_api_client::{ApiResponse, RequestFailure};

use super::request_log::{LifecycleRequest, RequestLog};
use crate::fixtures::{HOT, LIFECYCLE_PRODUCTS, TestProduct, order_body};
use crate::load_session::LoadSession;
use crate::operator::Operator;
use crate::resolution::is_temporary;
use crate::rng::Rng;
use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT};

/// Longer than a flow waits for its commit (10 s).
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Lets requests of vendors and other clients interleave. Milliseconds.
const MAX_THINK_TIME_MS: u64 = 20;

pub(super) struct LifecycleClient {
    log: Arc<RequestLog>,
    proc: u32,
    partners: Vec<PartnerClient>,
    operator: Operator,
    rng: Rng,
    key_count: u64,
}

impl LifecycleClient {
    pub(super) fn new(book: &Arc<RequestLog>, proc: u32, program: &Instance, mut rng: Rng) -> Self {
        let partners = book.buyers.iter();
        let partners = partners.map(|buyer| buyer.client(&program.base_url()).with_timeout(RESPONSE_TIMEOUT));
        Self {
            proc,
            partners: partners.collect(),
            operator: Operator::of(program),
            key_count: rng.between(0, u64::from(u32::MAX)),
            rng,
            log: Arc::clone(book),
        }
    }

    pub(super) async fn run(mut self, session: Arc<LoadSession>) {
        while !session.is_stopped() {
            let Some(request) = self.next_request() else {
                continue;
            };
            let outcome = self.send_recorded(&request).await;
            let think_time = Duration::from_millis(self.rng.between(0, MAX_THINK_TIME_MS));
            let is_available = outcome.is_ok_and(|response| !response.status.is_server_error());
            tokio::time::sleep(if is_available { think_time } else { RETRY_DELAY }).await;
        }
    }

    /// Repeats a request while the response is temporary.
    pub(super) async fn send_until_definite(&mut self, request: &LifecycleRequest) -> ApiResponse {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            match self.send_recorded(request).await {
                Ok(response) if !is_temporary(&response) => return response,
                outcome => assert!(
                    Instant::now() < deadline,
                    "no definite response to {request:?}: {outcome:?}"
                ),
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn send_recorded(&mut self, request: &LifecycleRequest) -> Result<ApiResponse, RequestFailure> {
        let outcome = self.send(request).await;
        self.log.record_outcome(request, &outcome);
        outcome
    }

    async fn send(&mut self, request: &LifecycleRequest) -> Result<ApiResponse, RequestFailure> {
        let reason = json!({ "reason": "crash test" });
        match request {
            LifecycleRequest::Order { buyer, key, body } => {
                self.partners[*buyer].order(key, body.clone()).await
            }
            LifecycleRequest::Payout { buyer, key, body } => {
                let headers = HeaderMap::from_iter([(IDEMPOTENCY_KEY, HeaderValue::from_str(key).unwrap())]);
                let partner = &mut self.partners[*buyer];
                partner
                    .send_signed(Method::POST, "/payouts", body.clone(), headers)
                    .await
            }
            LifecycleRequest::Cancel(order_id) => {
                let path = format!("/orders/{order_id}/cancel");
                let partner = self.owner(order_id);
                partner
                    .send_signed(Method::POST, &path, Bytes::new(), HeaderMap::new())
                    .await
            }
            LifecycleRequest::GetCodes(order_id) => self.owner(order_id).get_codes(order_id).await,
            LifecycleRequest::GetOrder(order_id) => {
                self.owner(order_id).get(&format!("/orders/{order_id}")).await
            }
            LifecycleRequest::DecideOrder { order_id, verb } => {
                let path = format!("/admin/v1/orders/{order_id}/{verb}");
                self.operator.post_once(&path, &reason).await
            }
            LifecycleRequest::CancelByOperator(order_id) => {
                let path = format!("/admin/v1/orders/{order_id}/cancel");
                self.operator.post_once(&path, &reason).await
            }
            LifecycleRequest::EndPayout { payout_id, verb } => {
                let path = format!("/admin/v1/payouts/{payout_id}/{verb}");
                self.operator.post_once(&path, &reason).await
            }
        }
    }

    fn owner(&mut self, order_id: &str) -> &mut PartnerClient {
        let buyer = self.log.buyer_of(order_id);
        &mut self.partners[buyer]
    }

    fn next_request(&mut self) -> Option<LifecycleRequest> {
        let rng = &mut self.rng;
        match rng.between(0, 99) {
            0..=39 => Some(self.new_keyed_request(true)),
            40..=44 => Some(self.new_keyed_request(false)),
            45..=49 => self.log.random_sent(rng),
            50..=64 => self.log.random_order(rng).map(LifecycleRequest::Cancel),
            65..=74 => self.log.random_order(rng).map(LifecycleRequest::GetCodes),
            75..=89 => {
                let verb = if rng.percent(70) { "approve" } else { "reject" };
                let order_id = self.log.random_awaiting_approval(rng)?;
                Some(LifecycleRequest::DecideOrder { order_id, verb })
            }
            90..=92 => self.log.random_order(rng).map(LifecycleRequest::CancelByOperator),
            _ => {
                let verb = *rng.pick(&["pay", "reject", "fail"])?;
                let payout_id = self.log.random_payout(rng)?;
                Some(LifecycleRequest::EndPayout { payout_id, verb })
            }
        }
    }

    /// Returns an order or payout under a new key and shares it, so that other clients can repeat it.
    fn new_keyed_request(&mut self, order: bool) -> LifecycleRequest {
        self.key_count += 1;
        let key = format!("life-{}-{}", self.proc, self.key_count);
        let buyer = usize::try_from(self.rng.between(0, self.partners.len() as u64 - 1)).unwrap();
        let request = if order {
            let body = self.random_order_body();
            LifecycleRequest::Order { buyer, key, body }
        } else {
            let amount = self.rng.between(1, 50);
            let destination = json!({ "type": "bank_account", "iban": "DE89370400440532013000" });
            let body = json!({ "amount": amount, "currency": "USD", "destination": destination });
            let body = Bytes::from(body.to_string());
            LifecycleRequest::Payout { buyer, key, body }
        };
        self.log.remember(&request);
        request
    }

    fn random_order_body(&mut self) -> Bytes {
        let quantity = self.rng.between(1, 2);
        let product: &TestProduct = self.rng.pick(&LIFECYCLE_PRODUCTS).unwrap();
        match self.rng.between(0, 99) {
            0..=39 => order_body(&[(HOT, quantity)]),
            40..=49 => order_body(&[(*product, quantity), (HOT, 1)]),
            _ => order_body(&[(*product, quantity)]),
        }
    }
}
