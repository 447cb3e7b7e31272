//! Operations in flight during a kill: each was either written or not, and a repeated request reaches the
//! same end.
//!
//! The test locks the tables until the operation's statement is blocked, then kills the service. Afterwards
//! the statement proceeds and is written without a response, or its session is terminated and nothing is
//! written.

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use vouchsafe_api_client::{ApiResponse, RequestFailure};

use vouchsafe_test_harness::{
    Instance, Operator, Partner, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_success, order_body,
};

/// Blocks every operation that writes.
const LOCK_TABLES: &str = "BEGIN; LOCK TABLE orders, idempotency_keys IN SHARE MODE";

/// Sessions of the service blocked in the middle of an operation.
const COUNT_BLOCKED: &str = "SELECT count(*)
                         FROM pg_stat_activity
                        WHERE wait_event_type = $1
                          AND query ~ '(commit_batch|retrieve_codes)'";

pub(crate) const TERMINATE_BLOCKED: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// Outcome of the blocked statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementOutcome {
    Written,
    NotWritten,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Partner,
    Operator,
}

/// An operation with its status on a repeated request and the final status of its target.
struct Operation {
    target: Target,
    caller: Caller,
    verb: &'static str,
    repeated_status: u16,
    final_status: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    DeliveredOrder,
    OrderToApprove,
    Payout,
}

use Target::{DeliveredOrder, OrderToApprove, Payout};

const fn operation(
    target: Target,
    caller: Caller,
    verb: &'static str,
    repeated_status: u16,
    final_status: &'static str,
) -> Operation {
    Operation {
        target,
        caller,
        verb,
        repeated_status,
        final_status,
    }
}

const OPERATIONS: [Operation; 8] = [
    operation(DeliveredOrder, Caller::Partner, "cancel", 200, "REFUNDED"),
    operation(DeliveredOrder, Caller::Partner, "vouchers", 200, "DELIVERED"),
    operation(DeliveredOrder, Caller::Operator, "cancel", 200, "REFUNDED"),
    operation(OrderToApprove, Caller::Operator, "approve", 409, "DELIVERED"),
    operation(OrderToApprove, Caller::Operator, "reject", 409, "REFUNDED"),
    operation(Payout, Caller::Operator, "pay", 409, "PAID"),
    operation(Payout, Caller::Operator, "reject", 409, "REJECTED"),
    operation(Payout, Caller::Operator, "fail", 409, "FAILED"),
];

impl Operation {
    async fn send(
        &self,
        operator: &mut Operator,
        partner: &mut Partner,
        id: &str,
    ) -> Result<ApiResponse, RequestFailure> {
        let path = format!("{}/{}", self.path(id), self.verb);
        match (self.caller, self.verb) {
            (Caller::Partner, "vouchers") => partner.client.get_codes(id).await,
            (Caller::Partner, _) => {
                let call = partner
                    .client
                    .send_signed(Method::POST, &path, "", HeaderMap::new());
                call.await
            }
            (Caller::Operator, _) => {
                let body = json!({ "reason": "test" }).to_string();
                operator.try_post(&format!("/admin/v1{path}"), body).await
            }
        }
    }

    fn path(&self, id: &str) -> String {
        let collection = if self.target == Payout {
            "payouts"
        } else {
            "orders"
        };
        format!("/{collection}/{id}")
    }
}

async fn request_payout(partner: &mut Partner, key: &str) -> Result<ApiResponse, RequestFailure> {
    let body = json!({
        "amount": 7, "currency": "USD", "destination": { "type": "bank_account", "iban": "DE89370400440532013000" },
    });
    let headers = HeaderMap::from_iter([(
        vouchsafe_api_client::partner::IDEMPOTENCY_KEY,
        HeaderValue::from_str(key).unwrap(),
    )]);
    let call = partner
        .client
        .send_signed(Method::POST, "/payouts", body.to_string(), headers);
    call.await
}

async fn create_target(target: Target, key: &str, partner: &mut Partner, sales: &[Sale; 2]) -> String {
    let [in_stock, under_approval] = sales;
    let (created, name) = match target {
        DeliveredOrder => (
            expect_success(&partner.order_with_key(key, in_stock, 2).await, 201),
            "order_id",
        ),
        OrderToApprove => (
            expect_success(&partner.order_with_key(key, under_approval, 2).await, 202),
            "order_id",
        ),
        Payout => (
            expect_success(&request_payout(partner, key).await.unwrap(), 202),
            "payout_id",
        ),
    };
    created[name].as_str().unwrap().to_owned()
}

/// A service whose statement is blocked during the kill.
struct KillScenario {
    service: Instance,
    partner: Partner,
    outcome: StatementOutcome,
}

impl KillScenario {
    async fn start(outcome: StatementOutcome) -> (Self, [Sale; 2]) {
        let service = Instance::start();
        let mut operator = Operator::of(&service);
        let in_stock = operator.add_stocked_product(20).await;
        let under_approval = operator
            .add_product_with(json!({ "approval": "always" }), "25", 20)
            .await;
        let partner = operator.add_partner("10000").await;
        let scenario = Self {
            service,
            partner,
            outcome,
        };
        (scenario, [in_stock, under_approval])
    }

    /// Kills the service while `call` is blocked on the tables, then restarts it.
    async fn kill_during(&mut self, call: impl Future<Output = Result<ApiResponse, RequestFailure>>) {
        let mut locker = ServiceDatabase::of(&self.service).await;
        let mut observer = ServiceDatabase::of(&self.service).await;
        locker.run(LOCK_TABLES.to_owned()).await;
        let blocked = eventually("the statement to be blocked", WAIT_TIMEOUT, async || {
            (observer.count(COUNT_BLOCKED, "Lock").await > 0).then_some(())
        });
        tokio::select! {
            result = call => panic!("response before the commit: {result:?}"),
            () = blocked => {}
        }
        self.service.kill();
        if self.outcome == StatementOutcome::NotWritten {
            observer.run(TERMINATE_BLOCKED.to_owned()).await;
        }
        locker.run("COMMIT".to_owned()).await;
        self.service.restart();
        self.partner = self.partner.connect_to(&self.service.base_url());
    }

    fn operator(&self) -> Operator {
        Operator::of(&self.service)
    }
}

/// Kills the service in the middle of each operation and repeats it. Returns how many had been applied.
async fn kill_during_each_operation(outcome: StatementOutcome) -> usize {
    let (mut scenario, sales) = KillScenario::start(outcome).await;
    let mut applied = 0;
    for (number, operation) in OPERATIONS.iter().enumerate() {
        let id = create_target(
            operation.target,
            &format!("step-{number}"),
            &mut scenario.partner,
            &sales,
        )
        .await;
        let (mut operator, mut partner) = (scenario.operator(), scenario.partner.reconnect());
        scenario
            .kill_during(operation.send(&mut operator, &mut partner, &id))
            .await;
        let mut operator = scenario.operator();
        let before = scenario.partner.read(&operation.path(&id)).await;
        // The order does not show a code read.
        let was_applied = before["status"] == operation.final_status && operation.verb != "vouchers";
        applied += usize::from(was_applied);
        let description = format!(
            "{:?} {:?} {}, {outcome:?}",
            operation.target, operation.caller, operation.verb
        );
        for expected in [
            if was_applied {
                operation.repeated_status
            } else {
                200
            },
            operation.repeated_status,
        ] {
            let response = operation
                .send(&mut operator, &mut scenario.partner, &id)
                .await
                .unwrap();
            assert_eq!(response.status, expected, "{description}");
            assert_eq!(
                scenario.partner.read(&operation.path(&id)).await["status"],
                operation.final_status,
                "{description}"
            );
        }
    }
    scenario.service.assert_verified();
    applied
}

/// The same for keyed requests: executed once, replayed byte by byte.
async fn kill_during_keyed_requests(outcome: StatementOutcome) {
    let (mut scenario, [sale, _]) = KillScenario::start(outcome).await;
    let order = order_body(&sale, 1).to_string();
    let mut partner = scenario.partner.reconnect();
    scenario
        .kill_during(partner.client.order("order", order.clone()))
        .await;
    let mut partner = scenario.partner.reconnect();
    scenario.kill_during(request_payout(&mut partner, "payout")).await;
    let mut responses: Vec<(bool, Value)> = Vec::new();
    for _ in 0..2 {
        let ordered = scenario.partner.send_text("order", &order).await;
        let paid_out = request_payout(&mut scenario.partner, "payout").await.unwrap();
        for (response, status) in [(ordered, 201), (paid_out, 202)] {
            let replayed = response.header("idempotent-replayed") == Some("true");
            responses.push((replayed, expect_success(&response, status)));
        }
    }
    let [ordered, paid, ordered_again, paid_again] = &responses[..] else {
        unreachable!("two responses each")
    };
    assert_eq!((&ordered.1, &paid.1), (&ordered_again.1, &paid_again.1));
    assert!(
        ordered_again.0 && paid_again.0,
        "the second response must be a replay"
    );
    let written = outcome == StatementOutcome::Written;
    assert_eq!((ordered.0, paid.0), (written, written));
    let orders = scenario.partner.list_all("/orders").await.len();
    let payouts = scenario.partner.list_all("/payouts").await.len();
    assert_eq!((orders, payouts), (1, 1));
    scenario.service.assert_verified();
}

#[tokio::test]
async fn written_operation_after_kill_is_retained() {
    let applied = kill_during_each_operation(StatementOutcome::Written).await;
    assert_eq!(
        applied,
        OPERATIONS.len() - 1,
        "all but the code read, which the order does not show"
    );
}

#[tokio::test]
async fn unwritten_operation_after_kill_succeeds_on_retry() {
    assert_eq!(kill_during_each_operation(StatementOutcome::NotWritten).await, 0);
}

#[tokio::test]
async fn written_keyed_requests_after_kill_are_replayed() {
    kill_during_keyed_requests(StatementOutcome::Written).await;
}

#[tokio::test]
async fn unwritten_keyed_requests_after_kill_execute_once() {
    kill_during_keyed_requests(StatementOutcome::NotWritten).await;
}
