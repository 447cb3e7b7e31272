//! What becomes of a step that was under way when the service was killed? It was taken or it was not, and asked for again it
//! ends where it should.
//!
//! Somebody stands on the tables until the step's statement waits for them; then comes kill -9. What was sent is let through
//! afterwards, and so written though nobody hears of it; or its session is ended, and it is not.

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use vouchsafe_load::client::{Answer, Failure};

use crate::support::{Database, Instance, Operator, Partner, SOON, Sale, accepted, eventually, order_of};

/// What stands before every step that writes.
const STAND_IN_THE_WAY: &str = "BEGIN; LOCK TABLE orders, idempotency_keys IN SHARE MODE";

/// Sessions of the service that wait for that, in the middle of a step.
const WAITING: &str = "SELECT count(*)
                         FROM pg_stat_activity
                        WHERE wait_event_type = $1
                          AND query ~ '(commit_batch|retrieve_codes)'";

const END_THE_WAITING: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// What becomes of the statement that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    NotWritten,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Partner,
    Operator,
}

/// A step: what it is about, who takes it and how, what is answered first, and when it was taken already; and its end.
struct Step {
    about: About,
    by: By,
    verb: &'static str,
    first: u16,
    again: u16,
    end: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Delivered,
    Waiting,
    Payout,
}

const fn step(about: About, by: By, verb: &'static str, [first, again]: [u16; 2], end: &'static str) -> Step {
    Step {
        about,
        by,
        verb,
        first,
        again,
        end,
    }
}

const STEPS: [Step; 8] = [
    step(About::Delivered, By::Partner, "cancel", [200, 200], "REFUNDED"),
    step(About::Delivered, By::Partner, "vouchers", [200, 200], "DELIVERED"),
    step(About::Delivered, By::Operator, "cancel", [200, 200], "REFUNDED"),
    step(About::Waiting, By::Operator, "approve", [200, 409], "DELIVERED"),
    step(About::Waiting, By::Operator, "reject", [200, 409], "REFUNDED"),
    step(About::Payout, By::Operator, "pay", [200, 409], "PAID"),
    step(About::Payout, By::Operator, "reject", [200, 409], "REJECTED"),
    step(About::Payout, By::Operator, "fail", [200, 409], "FAILED"),
];

impl Step {
    /// Takes it, and says what came back, if anything did.
    async fn take(
        &self,
        operator: &mut Operator,
        partner: &mut Partner,
        id: &str,
    ) -> Result<Answer, Failure> {
        let things = if self.about == About::Payout {
            "payouts"
        } else {
            "orders"
        };
        let path = format!("/{things}/{id}/{}", self.verb);
        match (self.by, self.verb) {
            (By::Partner, "vouchers") => partner.client.codes(id).await,
            (By::Partner, _) => {
                let call = partner.client.signed(Method::POST, &path, "", HeaderMap::new());
                call.await
            }
            (By::Operator, _) => {
                let body = json!({ "reason": "so it is" }).to_string();
                operator.try_post(&format!("/admin/v1{path}"), body).await
            }
        }
    }

    fn path(&self, id: &str) -> String {
        let things = if self.about == About::Payout {
            "payouts"
        } else {
            "orders"
        };
        format!("/{things}/{id}")
    }
}

/// A payout under a key.
async fn pay_out(partner: &mut Partner, key: &str) -> Result<Answer, Failure> {
    let body = json!({
        "amount": 7, "currency": "USD", "destination": { "type": "bank_account", "iban": "DE89370400440532013000" },
    });
    let headers = HeaderMap::from_iter([(
        vouchsafe_load::partner::IDEMPOTENCY_KEY,
        HeaderValue::from_str(key).unwrap(),
    )]);
    let call = partner
        .client
        .signed(Method::POST, "/payouts", body.to_string(), headers);
    call.await
}

async fn made(about: About, key: &str, partner: &mut Partner, sales: &[Sale; 2]) -> String {
    let [plain, checked] = sales;
    let (thing, name) = match about {
        About::Delivered => (
            accepted(&partner.order_under(key, plain, 2).await, 201),
            "order_id",
        ),
        About::Waiting => (
            accepted(&partner.order_under(key, checked, 2).await, 202),
            "order_id",
        ),
        About::Payout => (accepted(&pay_out(partner, key).await.unwrap(), 202), "payout_id"),
    };
    thing[name].as_str().unwrap().to_owned()
}

/// A service, with somebody who stands in its way until it is dead, and then says what becomes of what it sent.
struct Scene {
    service: Instance,
    partner: Partner,
    fate: Fate,
}

impl Scene {
    async fn begin(fate: Fate) -> (Self, [Sale; 2]) {
        let service = Instance::start();
        let mut operator = Operator::of(&service);
        let plain = operator.sale(20).await;
        let checked = operator.offer(json!({ "approval": "always" }), "25", 20).await;
        let partner = operator.partner("10000").await;
        let scene = Self {
            service,
            partner,
            fate,
        };
        (scene, [plain, checked])
    }

    /// Kills the service while `call` waits for the tables, and starts it again.
    async fn kill_during(&mut self, call: impl Future<Output = Result<Answer, Failure>>) {
        let mut somebody = Database::of(&self.service).await;
        let mut beside = Database::of(&self.service).await;
        somebody.run(STAND_IN_THE_WAY.to_owned()).await;
        let waits = eventually("the statement waits", SOON, async || {
            (beside.count(WAITING, "Lock").await > 0).then_some(())
        });
        tokio::select! {
            came = call => panic!("it was answered before it was written: {came:?}"),
            () = waits => {}
        }
        self.service.kill();
        if self.fate == Fate::NotWritten {
            beside.run(END_THE_WAITING.to_owned()).await;
        }
        somebody.run("COMMIT".to_owned()).await;
        self.service.restart();
        self.partner = self.partner.at(&self.service.base_url());
    }

    fn operator(&self) -> Operator {
        Operator::of(&self.service)
    }
}

/// Takes each step, is killed in the middle of it, and takes it again. Says how often it had been taken.
async fn each_step_is_killed(fate: Fate) -> usize {
    let (mut scene, sales) = Scene::begin(fate).await;
    let mut taken = 0;
    for (number, step) in STEPS.iter().enumerate() {
        let id = made(step.about, &format!("step-{number}"), &mut scene.partner, &sales).await;
        let (mut operator, mut partner) = (scene.operator(), scene.partner.again());
        scene
            .kill_during(step.take(&mut operator, &mut partner, &id))
            .await;
        let mut operator = scene.operator();
        let before = scene.partner.read(&step.path(&id)).await;
        // Of a reading the order does not tell.
        let was_taken = before["status"] == step.end && step.verb != "vouchers";
        taken += usize::from(was_taken);
        let what = format!("{:?} {:?} {}, {fate:?}", step.about, step.by, step.verb);
        for expected in [if was_taken { step.again } else { step.first }, step.again] {
            let answer = step.take(&mut operator, &mut scene.partner, &id).await.unwrap();
            assert_eq!(answer.status, expected, "{what}");
            assert_eq!(
                scene.partner.read(&step.path(&id)).await["status"],
                step.end,
                "{what}"
            );
        }
    }
    scene.service.assert_verified();
    taken
}

/// The same for what has a key: answered once, and to the byte.
async fn each_key_is_killed(fate: Fate) {
    let (mut scene, [sale, _]) = Scene::begin(fate).await;
    let order = order_of(&sale, 1).to_string();
    let mut partner = scene.partner.again();
    scene
        .kill_during(partner.client.order("order", order.clone()))
        .await;
    let mut partner = scene.partner.again();
    scene.kill_during(pay_out(&mut partner, "payout")).await;
    let mut answers: Vec<(bool, Value)> = Vec::new();
    for _ in 0..2 {
        let ordered = scene.partner.send_text("order", &order).await;
        let paid_out = pay_out(&mut scene.partner, "payout").await.unwrap();
        for (answer, status) in [(ordered, 201), (paid_out, 202)] {
            let replayed = answer.header("idempotent-replayed") == Some("true");
            answers.push((replayed, accepted(&answer, status)));
        }
    }
    let [first, paid, again, paid_again] = &answers[..] else {
        unreachable!("two of each")
    };
    assert_eq!((&first.1, &paid.1), (&again.1, &paid_again.1));
    assert!(again.0 && paid_again.0, "the second time it is a replay");
    let written = fate == Fate::Written;
    assert_eq!((first.0, paid.0), (written, written));
    let orders = scene.partner.walk("/orders").await.len();
    let payouts = scene.partner.walk("/payouts").await.len();
    assert_eq!((orders, payouts), (1, 1));
    scene.service.assert_verified();
}

#[tokio::test]
async fn a_step_that_was_written_when_the_service_was_killed_stands() {
    let taken = each_step_is_killed(Fate::Written).await;
    assert_eq!(
        taken,
        STEPS.len() - 1,
        "all but the reading, of which the order does not tell"
    );
}

#[tokio::test]
async fn a_step_that_was_not_written_when_the_service_was_killed_is_taken_when_it_is_asked_for_again() {
    assert_eq!(each_step_is_killed(Fate::NotWritten).await, 0);
}

#[tokio::test]
async fn an_order_and_a_payout_that_were_written_when_the_service_was_killed_are_replayed() {
    each_key_is_killed(Fate::Written).await;
}

#[tokio::test]
async fn an_order_and_a_payout_that_were_not_written_when_the_service_was_killed_are_executed_once() {
    each_key_is_killed(Fate::NotWritten).await;
}
