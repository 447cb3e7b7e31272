//! Decisions of operators on payouts.

use std::sync::Arc;

use vouchsafe_actors::flows::{
    DecidePayout, DecidePayoutError, IdempotentResponse, PayoutResponseEncoder, RequestPayout, decide_payout,
    request_payout,
};
use vouchsafe_domain::idempotency::Response;
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::payout::{Payout, PayoutDecision, PayoutDestination, PayoutOutcome, PayoutStatus};
use vouchsafe_simulation::build;
use vouchsafe_simulation::simulation::Node;

use crate::fixture::{ALICE, BOB, assert_settled, setup};
use crate::simulation_tests;

struct PlainTextResponses;

impl PayoutResponseEncoder for PlainTextResponses {
    fn accepted(&self, payout: &Payout) -> Response {
        build::response(&payout.payout_id.to_string())
    }

    fn insufficient_funds(&self, needed: Money, available: Amount) -> Response {
        build::response(&format!("{needed} of {}", available.minor()))
    }
}

/// Requests a payout of 7.00 for Alice.
async fn request_test_payout(node: &Node) -> PayoutId {
    let command = RequestPayout {
        partner_id: ALICE,
        key: build::key("payout"),
        fingerprint: build::fingerprint("payout"),
        money: build::minor(700).of(build::usd()),
        destination: PayoutDestination {
            masked: r#"{"type":"other"}"#.into(),
            sealed: b"sealed".as_slice().into(),
        },
        reference: None,
    };
    let engine = Arc::clone(&node.engine);
    let placed = node.spawn(async move { request_payout(&engine, command, &PlainTextResponses).await });
    match placed.await.unwrap().unwrap() {
        IdempotentResponse::Fresh(response) => std::str::from_utf8(&response.body).unwrap().parse().unwrap(),
        IdempotentResponse::Replayed(response) => panic!("requested once, got {response:?}"),
    }
}

async fn decide_test_payout(
    node: &Node,
    payout_id: PayoutId,
    end: PayoutOutcome,
    partner_id: PartnerId,
) -> Result<PayoutStatus, DecidePayoutError> {
    let command = DecidePayout {
        partner_id,
        payout_id,
        decision: PayoutDecision {
            outcome: end,
            reason: Some("test".to_owned()),
            reference: None,
        },
        operator: build::operator(),
    };
    let engine = Arc::clone(&node.engine);
    let decided = node.spawn(async move { decide_payout(&engine, command).await });
    decided.await.unwrap().map(|payout| payout.status)
}

simulation_tests! {
    async fn payout_not_paid_is_credited_back_once() {
        for (end, status, balance) in [
            (PayoutOutcome::Paid, PayoutStatus::Paid, 9_300),
            (PayoutOutcome::Rejected, PayoutStatus::Rejected, 10_000),
            (PayoutOutcome::Failed, PayoutStatus::Failed, 10_000),
        ] {
            let (sim, node) = setup().await;
            let payout_id = request_test_payout(&node).await;
            assert_eq!(sim.balance(ALICE), 9_300);
            assert_eq!(decide_test_payout(&node, payout_id, end, ALICE).await, Ok(status));
            assert_eq!(sim.balance(ALICE), balance);
            for other in [PayoutOutcome::Paid, PayoutOutcome::Rejected, PayoutOutcome::Failed] {
                assert_eq!(
                    decide_test_payout(&node, payout_id, other, ALICE).await,
                    Err(DecidePayoutError::AlreadyDecided(status))
                );
            }
            assert_eq!(sim.balance(ALICE), balance);
            assert!(node.has_current_balance(ALICE).await);
            assert_settled(&sim, &node).await;
        }
    }

    async fn concurrent_payout_decisions_take_effect_once() {
        let (sim, node) = setup().await;
        let payout_id = request_test_payout(&node).await;
        let (paid, failed) = tokio::join!(
            decide_test_payout(&node, payout_id, PayoutOutcome::Paid, ALICE),
            decide_test_payout(&node, payout_id, PayoutOutcome::Failed, ALICE)
        );
        let balance = match (paid, failed) {
            (Ok(PayoutStatus::Paid), Err(DecidePayoutError::AlreadyDecided(PayoutStatus::Paid))) => 9_300,
            (Err(DecidePayoutError::AlreadyDecided(PayoutStatus::Failed)), Ok(PayoutStatus::Failed)) => 10_000,
            other => panic!("{other:?}"),
        };
        assert_eq!(sim.balance(ALICE), balance);
        assert_settled(&sim, &node).await;
    }

    async fn payout_of_another_partner_is_not_found() {
        let (sim, node) = setup().await;
        let payout_id = request_test_payout(&node).await;
        assert_eq!(
            decide_test_payout(&node, payout_id, PayoutOutcome::Failed, BOB).await,
            Err(DecidePayoutError::NotFound)
        );
        assert_eq!((sim.balance(ALICE), sim.balance(BOB)), (9_300, 10_000));
        assert_settled(&sim, &node).await;
    }
}
