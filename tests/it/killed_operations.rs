//! What becomes of a step that was under way when the service was killed? It was taken or it was not, and asked for again it
//! ends where it should.
//!
//! Somebody stands on the tables until the step's statement waits for them; then comes kill -9. What was sent is let through
//! afterwards, and so written though nobody hears of it; or its session is ended, and it is not.

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use vouchsafe_load::client::{ApiResponse, RequestFailure};

use crate::support::{Database, Instance, Operator, Partner, WAIT_TIMEOUT, Sale, expect_success, eventually, order_body};

/// What stands before every step that writes.
const LOCK_TABLES: &str = "BEGIN; LOCK TABLE orders, idempotency_keys IN SHARE MODE";

/// Sessions of the service that wait for that, in the middle of a step.
const COUNT_BLOCKED: &str = "SELECT count(*)
                         FROM pg_stat_activity
                        WHERE wait_event_type = $1
                          AND query ~ '(commit_batch|retrieve_codes)'";

const TERMINATE_BLOCKED: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// What becomes of the statement that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementOutcome {
    Written,
    NotWritten,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Partner,
    Operator,
}

/// A step: what it is about, who takes it and how, what is answered first, and when it was taken already; and its end.
struct Operation {
    target: Target,
    caller: Caller,
    verb: &'static str,
    first_status: u16,
    repeated_status: u16,
    final_status: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    DeliveredOrder,
    OrderAwaitingApproval,
    Payout,
}

const fn operation(about: Target, by: Caller, verb: &'static str, [first, again]: [u16; 2], end: &'static str) -> Operation {
    Operation {
        target: about,
        caller: by,
        verb,
        first_status: first,
        repeated_status: again,
        final_status: end,
    }
}

const OPERATIONS: [Operation; 8] = [
    operation(Target::DeliveredOrder, Caller::Partner, "cancel", [200, 200], "REFUNDED"),
    operation(Target::DeliveredOrder, Caller::Partner, "vouchers", [200, 200], "DELIVERED"),
    operation(Target::DeliveredOrder, Caller::Operator, "cancel", [200, 200], "REFUNDED"),
    operation(Target::OrderAwaitingApproval, Caller::Operator, "approve", [200, 409], "DELIVERED"),
    operation(Target::OrderAwaitingApproval, Caller::Operator, "reject", [200, 409], "REFUNDED"),
    operation(Target::Payout, Caller::Operator, "pay", [200, 409], "PAID"),
    operation(Target::Payout, Caller::Operator, "reject", [200, 409], "REJECTED"),
    operation(Target::Payout, Caller::Operator, "fail", [200, 409], "FAILED"),
];

impl Operation {
    /// Takes it, and says what came back, if anything did.
    async fn send(
        &self,
        operator: &mut Operator,
        partner: &mut Partner,
        id: &str,
    ) -> Result<ApiResponse, RequestFailure> {
        let things = if self.target == Target::Payout {
            "payouts"
        } else {
            "orders"
        };
        let path = format!("/{things}/{id}/{}", self.verb);
        match (self.caller, self.verb) {
            (Caller::Partner, "vouchers") => partner.client.get_codes(id).await,
            (Caller::Partner, _) => {
                let call = partner.client.send_signed(Method::POST, &path, "", HeaderMap::new());
                call.await
            }
            (Caller::Operator, _) => {
                let body = json!({ "reason": "so it is" }).to_string();
                operator.try_post(&format!("/admin/v1{path}"), body).await
            }
        }
    }

    fn path(&self, id: &str) -> String {
        let things = if self.target == Target::Payout {
            "payouts"
        } else {
            "orders"
        };
        format!("/{things}/{id}")
    }
}

/// A payout under a key.
async fn request_payout(partner: &mut Partner, key: &str) -> Result<ApiResponse, RequestFailure> {
    let body = json!({
        "amount": 7, "currency": "USD", "destination": { "type": "bank_account", "iban": "DE89370400440532013000" },
    });
    let headers = HeaderMap::from_iter([(
        vouchsafe_load::partner::IDEMPOTENCY_KEY,
        HeaderValue::from_str(key).unwrap(),
    )]);
    let call = partner
        .client
        .send_signed(Method::POST, "/payouts", body.to_string(), headers);
    call.await
}

async fn create_target(about: Target, key: &str, partner: &mut Partner, sales: &[Sale; 2]) -> String {
    let [plain, checked] = sales;
    let (thing, name) = match about {
        Target::DeliveredOrder => (
            expect_success(&partner.order_with_key(key, plain, 2).await, 201),
            "order_id",
        ),
        Target::OrderAwaitingApproval => (
            expect_success(&partner.order_with_key(key, checked, 2).await, 202),
            "order_id",
        ),
        Target::Payout => (expect_success(&request_payout(partner, key).await.unwrap(), 202), "payout_id"),
    };
    thing[name].as_str().unwrap().to_owned()
}

/// A service, with somebody who stands in its way until it is dead, and then says what becomes of what it sent.
struct KillScenario {
    service: Instance,
    partner: Partner,
    outcome: StatementOutcome,
}

impl KillScenario {
    async fn start(fate: StatementOutcome) -> (Self, [Sale; 2]) {
        let service = Instance::start();
        let mut operator = Operator::of(&service);
        let plain = operator.add_stocked_product(20).await;
        let checked = operator.add_product_with(json!({ "approval": "always" }), "25", 20).await;
        let partner = operator.add_partner("10000").await;
        let scene = Self {
            service,
            partner,
            outcome: fate,
        };
        (scene, [plain, checked])
    }

    /// Kills the service while `call` waits for the tables, and starts it again.
    async fn kill_during(&mut self, call: impl Future<Output = Result<ApiResponse, RequestFailure>>) {
        let mut somebody = Database::of(&self.service).await;
        let mut beside = Database::of(&self.service).await;
        somebody.run(LOCK_TABLES.to_owned()).await;
        let waits = eventually("the statement waits", WAIT_TIMEOUT, async || {
            (beside.count(COUNT_BLOCKED, "Lock").await > 0).then_some(())
        });
        tokio::select! {
            came = call => panic!("it was answered before it was written: {came:?}"),
            () = waits => {}
        }
        self.service.kill();
        if self.outcome == StatementOutcome::NotWritten {
            beside.run(TERMINATE_BLOCKED.to_owned()).await;
        }
        somebody.run("COMMIT".to_owned()).await;
        self.service.restart();
        self.partner = self.partner.connect_to(&self.service.base_url());
    }

    fn operator(&self) -> Operator {
        Operator::of(&self.service)
    }
}

/// Takes each step, is killed in the middle of it, and takes it again. Says how often it had been taken.
async fn kill_during_each_operation(fate: StatementOutcome) -> usize {
    let (mut scene, sales) = KillScenario::start(fate).await;
    let mut taken = 0;
    for (number, step) in OPERATIONS.iter().enumerate() {
        let id = create_target(step.target, &format!("step-{number}"), &mut scene.partner, &sales).await;
        let (mut operator, mut partner) = (scene.operator(), scene.partner.reconnect());
        scene
            .kill_during(step.send(&mut operator, &mut partner, &id))
            .await;
        let mut operator = scene.operator();
        let before = scene.partner.read(&step.path(&id)).await;
        // Of a reading the order does not tell.
        let was_taken = before["status"] == step.final_status && step.verb != "vouchers";
        taken += usize::from(was_taken);
        let what = format!("{:?} {:?} {}, {fate:?}", step.target, step.caller, step.verb);
        for expected in [if was_taken { step.repeated_status } else { step.first_status }, step.repeated_status] {
            let answer = step.send(&mut operator, &mut scene.partner, &id).await.unwrap();
            assert_eq!(answer.status, expected, "{what}");
            assert_eq!(
                scene.partner.read(&step.path(&id)).await["status"],
                step.final_status,
                "{what}"
            );
        }
    }
    scene.service.assert_verified();
    taken
}

/// The same for what has a key: answered once, and to the byte.
async fn kill_during_keyed_requests(fate: StatementOutcome) {
    let (mut scene, [sale, _]) = KillScenario::start(fate).await;
    let order = order_body(&sale, 1).to_string();
    let mut partner = scene.partner.reconnect();
    scene
        .kill_during(partner.client.order("order", order.clone()))
        .await;
    let mut partner = scene.partner.reconnect();
    scene.kill_during(request_payout(&mut partner, "payout")).await;
    let mut answers: Vec<(bool, Value)> = Vec::new();
    for _ in 0..2 {
        let ordered = scene.partner.send_text("order", &order).await;
        let paid_out = request_payout(&mut scene.partner, "payout").await.unwrap();
        for (answer, status) in [(ordered, 201), (paid_out, 202)] {
            let replayed = answer.header("idempotent-replayed") == Some("true");
            answers.push((replayed, expect_success(&answer, status)));
        }
    }
    let [first, paid, again, paid_again] = &answers[..] else {
        unreachable!("two of each")
    };
    assert_eq!((&first.1, &paid.1), (&again.1, &paid_again.1));
    assert!(again.0 && paid_again.0, "the second time it is a replay");
    let written = fate == StatementOutcome::Written;
    assert_eq!((first.0, paid.0), (written, written));
    let orders = scene.partner.list_all("/orders").await.len();
    let payouts = scene.partner.list_all("/payouts").await.len();
    assert_eq!((orders, payouts), (1, 1));
    scene.service.assert_verified();
}

#[tokio::test]
async fn a_step_that_was_written_when_the_service_was_killed_stands() {
    let taken = kill_during_each_operation(StatementOutcome::Written).await;
    assert_eq!(
        taken,
        OPERATIONS.len() - 1,
        "all but the reading, of which the order does not tell"
    );
}

#[tokio::test]
async fn a_step_that_was_not_written_when_the_service_was_killed_is_taken_when_it_is_asked_for_again() {
    assert_eq!(kill_during_each_operation(StatementOutcome::NotWritten).await, 0);
}

#[tokio::test]
async fn an_order_and_a_payout_that_were_written_when_the_service_was_killed_are_replayed() {
    kill_during_keyed_requests(StatementOutcome::Written).await;
}

#[tokio::test]
async fn an_order_and_a_payout_that_were_not_written_when_the_service_was_killed_are_executed_once() {
    kill_during_keyed_requests(StatementOutcome::NotWritten).await;
}
