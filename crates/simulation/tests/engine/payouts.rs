//! Decisions of operators on payouts of another partner.

use std::sync::Arc;

use vouchsafe_actors::flows::DecidePayoutError;
use vouchsafe_domain::payout::PayoutOutcome;

use crate::fixture::{ALICE, BOB, assert_settled};
use crate::operations::{InitialState, decide_test_payout};
use crate::simulation_tests;

simulation_tests! {
    async fn payout_of_another_partner_is_not_found() {
        let (sim, node) = InitialState::PayoutPending.create().await;
        let (engine, handle) = (Arc::clone(&node.engine), sim.clone());
        let decided = node.spawn(async move { decide_test_payout(&engine, &handle, BOB, PayoutOutcome::Failed).await });
        assert_eq!(decided.await.unwrap(), Err(DecidePayoutError::NotFound));
        assert_eq!((sim.balance(ALICE), sim.balance(BOB)), (9_300, 10_000));
        assert_settled(&sim, &node).await;
    }
}
