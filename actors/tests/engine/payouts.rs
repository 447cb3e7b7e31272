//! What operators say of a payout: it stands once, and the money is where they say.

use std::sync::Arc;

use vouchsafe_actors::domain::answer::Answer;
use vouchsafe_actors::domain::ids::{PartnerId, PayoutId};
use vouchsafe_actors::domain::money::{Amount, Money};
use vouchsafe_actors::domain::payout::{Destination, Payout, PayoutDecision, PayoutEnd, PayoutStatus};
use vouchsafe_actors::flows::{
    DecidePayout, PayoutNotDecided, PayoutWording, Placed, RequestPayout, decide_payout, request_payout,
};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::world::Node;

use crate::in_a_world;
use crate::shop::{ALICE, BOB, all_is_settled, shop};

/// The id of what was accepted, or what is missing.
struct Plain;

impl PayoutWording for Plain {
    fn accepted(&self, payout: &Payout) -> Answer {
        build::answer(&payout.payout_id.to_string())
    }

    fn short(&self, needed: Money, available: Amount) -> Answer {
        build::answer(&format!("{needed} of {}", available.minor()))
    }
}

/// Alice sends 7.00 out.
async fn requested(node: &Node) -> PayoutId {
    let command = RequestPayout {
        partner_id: ALICE,
        key: build::key("payout"),
        fingerprint: build::fingerprint("payout"),
        money: build::minor(700).of(build::usd()),
        destination: Destination {
            shown: r#"{"type":"other"}"#.into(),
            sealed: b"sealed".as_slice().into(),
        },
        reference: None,
    };
    let engine = Arc::clone(&node.engine);
    let placed = node.spawn(async move { request_payout(&engine, command, &Plain).await });
    match placed.await.unwrap().unwrap() {
        Placed::Fresh(answer) => std::str::from_utf8(&answer.body).unwrap().parse().unwrap(),
        Placed::Replayed(answer) => panic!("asked once, and {answer:?}"),
    }
}

async fn decided(
    node: &Node,
    payout_id: PayoutId,
    end: PayoutEnd,
    partner_id: PartnerId,
) -> Result<PayoutStatus, PayoutNotDecided> {
    let command = DecidePayout {
        partner_id,
        payout_id,
        decision: PayoutDecision {
            end,
            reason: Some("so it was".to_owned()),
            reference: None,
        },
        by: build::somebody(),
    };
    let engine = Arc::clone(&node.engine);
    let decided = node.spawn(async move { decide_payout(&engine, command).await });
    decided.await.unwrap().map(|payout| payout.status)
}

in_a_world! {
    async fn what_is_not_paid_comes_back_once() {
        for (end, status, balance) in [
            (PayoutEnd::Paid, PayoutStatus::Paid, 9_300),
            (PayoutEnd::Rejected, PayoutStatus::Rejected, 10_000),
            (PayoutEnd::Failed, PayoutStatus::Failed, 10_000),
        ] {
            let (world, node) = shop().await;
            let payout_id = requested(&node).await;
            assert_eq!(world.balance(ALICE), 9_300);
            assert_eq!(decided(&node, payout_id, end, ALICE).await, Ok(status));
            assert_eq!(world.balance(ALICE), balance);
            for other in [PayoutEnd::Paid, PayoutEnd::Rejected, PayoutEnd::Failed] {
                assert_eq!(
                    decided(&node, payout_id, other, ALICE).await,
                    Err(PayoutNotDecided::Over(status))
                );
            }
            assert_eq!(world.balance(ALICE), balance);
            assert!(node.knows_balance(ALICE).await);
            all_is_settled(&world, &node).await;
        }
    }

    async fn of_two_words_at_once_one_stands() {
        let (world, node) = shop().await;
        let payout_id = requested(&node).await;
        let (paid, failed) = tokio::join!(
            decided(&node, payout_id, PayoutEnd::Paid, ALICE),
            decided(&node, payout_id, PayoutEnd::Failed, ALICE)
        );
        let balance = match (paid, failed) {
            (Ok(PayoutStatus::Paid), Err(PayoutNotDecided::Over(PayoutStatus::Paid))) => 9_300,
            (Err(PayoutNotDecided::Over(PayoutStatus::Failed)), Ok(PayoutStatus::Failed)) => 10_000,
            other => panic!("{other:?}"),
        };
        assert_eq!(world.balance(ALICE), balance);
        all_is_settled(&world, &node).await;
    }

    async fn anothers_payout_is_not_found() {
        let (world, node) = shop().await;
        let payout_id = requested(&node).await;
        assert_eq!(
            decided(&node, payout_id, PayoutEnd::Failed, BOB).await,
            Err(PayoutNotDecided::NotFound)
        );
        assert_eq!((world.balance(ALICE), world.balance(BOB)), (9_300, 10_000));
        all_is_settled(&world, &node).await;
    }
}
