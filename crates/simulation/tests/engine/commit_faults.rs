//! Failed commits and commits with an unknown outcome: holds last until they are settled.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::flows::FlowError;
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_simulation::walk::{Node, OrderReply, Simulation};
use vouchsafe_simulation::{Fault, FaultKind, build};

use crate::fixture::{ALICE, BOB, SECOND, assert_settled, gift, order_request, setup};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(1);

/// Places an order of Alice's whose commits get these faults.
async fn order_with_faults(faults: &[Fault]) -> (Simulation, Node, OrderReply) {
    let (sim, node) = setup().await;
    sim.import(&gift(), &[1; 9]);
    faults.iter().for_each(|fault| sim.db.fail_commit("one", *fault));
    let reply = node.place_order(&order_request(ALICE, "k", "gift", 1)).await;
    (sim, node, reply)
}

/// A response that another transaction stores under a key.
fn other_response() -> StoredResponse {
    StoredResponse {
        fingerprint: build::fingerprint("another"),
        response: build::response("another"),
    }
}

/// 511 partners order concurrently while other transactions hold some of their keys. Returns how many of the
/// unblocked orders are not written.
async fn count_unwritten_with_blocked_keys(stuck: &[usize]) -> usize {
    let (sim, node) = setup().await;
    sim.import(&gift(), &[1; 600]);
    let requests: Vec<_> = (0..511)
        .map(|number| order_request(build::partner(1_000 + number), "k", "gift", 1))
        .collect();
    for request in &requests {
        sim.top_up(request.partner_id, 1_000).await;
    }
    node.place_order(&order_request(ALICE, "warm", "gift", 1))
        .await
        .expect_new();
    let mut transactions = Vec::new();
    for index in stuck {
        transactions.push(
            sim.db
                .begin_insert_key(requests[*index].key_hash(), other_response())
                .await,
        );
    }
    let calls: Vec<_> = requests.iter().map(|request| node.start_order(request)).collect();
    let mut not_written = 0;
    for (index, call) in calls.into_iter().enumerate() {
        match (call.await.unwrap(), stuck.contains(&index)) {
            (OrderReply::New(_), false) => {}
            (reply, is_stuck) => {
                assert_eq!(reply.error(), Some(&FlowError::Unavailable), "{index}");
                not_written += usize::from(!is_stuck);
            }
        }
    }
    drop(transactions);
    assert!(
        node.place_order(&requests[stuck[0]])
            .await
            .expect_new()
            .starts_with("DELIVERED")
    );
    assert_settled(&sim, &node).await;
    not_written
}

simulation_tests! {
    async fn order_with_commit_faults_is_answered() {
        let table: &[(&[Fault], Result<(), FlowError>)] = &[
            (&[], Ok(())),
            (&[Fault::Slow(SECOND)], Ok(())),
            (&[Fault::Busy], Ok(())),
            (&[Fault::Busy, Fault::Busy], Err(FlowError::Unavailable)),
            (&[Fault::Contended], Ok(())),
            (&[Fault::Contended, Fault::Contended], Err(FlowError::Unavailable)),
            (&[Fault::Poisoned], Ok(())),
            (&[Fault::Poisoned, Fault::Poisoned], Err(FlowError::Poisoned)),
            (&[Fault::ResponseLost], Ok(())),
            (&[Fault::NeverSent], Ok(())),
            (&[Fault::NeverSent; 2], Ok(())),
            (&[Fault::NeverSent; 3], Err(FlowError::Unavailable)),
            (&[Fault::Delayed], Ok(())),
            (&[Fault::Detached(Duration::ZERO)], Ok(())),
            (&[Fault::Detached(SECOND)], Ok(())),
            (&[Fault::NeverSent, Fault::ResponseLost], Ok(())),
        ];
        for (faults, expected) in table {
            let (sim, node, reply) = order_with_faults(faults).await;
            match expected {
                Ok(()) => assert!(reply.expect_new().starts_with("DELIVERED"), "{faults:?}: {}", reply.describe()),
                Err(reason) => assert_eq!(reply.error(), Some(reason), "{faults:?}"),
            }
            assert_settled(&sim, &node).await;
            let request = order_request(ALICE, "k", "gift", 1);
            let again = node.place_order(&request).await;
            assert_eq!(matches!(again, OrderReply::Replayed(_)), expected.is_ok(), "{faults:?}");
            assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 9_000), "{faults:?}");
            assert_settled(&sim, &node).await;
        }
    }

    async fn unknown_outcome_keeps_key_busy_and_holds_until_settled(sim, node, gifts: 1) {
        sim.db.fail_commit("one", Fault::ResponseLost);
        sim.db.fail_calls("one", FaultKind::RecoveryError, 25);
        let request = order_request(ALICE, "k", "gift", 1);
        let first = node.start_order(&request);
        sleep(SECOND).await;
        assert!(!node.engine.can_commit());
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::KeyInFlight));
        let other = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert_eq!(other.error(), Some(&FlowError::Unavailable), "the voucher may still be released");
        assert_eq!(first.await.unwrap().error(), Some(&FlowError::OutcomeUnknown));
        assert_eq!(node.engine.in_flight(), 1);
        assert_eq!(node.place_order(&request).await.error(), Some(&FlowError::KeyInFlight));
        sleep(30 * SECOND).await;
        assert!(node.engine.can_commit());
        assert!(node.place_order(&request).await.expect_replay().starts_with("DELIVERED"));
        let refusal = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert_eq!(refusal.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn lost_commit_without_caller_is_dropped() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1]);
        sim.db.fail_commit("one", Fault::NeverSent);
        sim.db.fail_calls("one", FaultKind::RecoveryError, 3);
        let disconnected = node.start_order(&order_request(ALICE, "k", "gift", 1));
        sleep(MOMENT).await;
        disconnected.abort();
        let bob = node.place_order(&order_request(BOB, "k", "gift", 1)).await;
        assert!(bob.expect_new().starts_with("DELIVERED"));
        assert_settled(&sim, &node).await;
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 10_000));
    }

    async fn poisoned_record_fails_alone(sim, node, gifts: 9) {
        // Records queued behind the first commit form one batch.
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let first = node.start_order(&order_request(ALICE, "first", "gift", 1));
        sleep(MOMENT).await;
        let good: Vec<_> = ["a", "b", "c"].map(|key| node.start_order(&order_request(ALICE, key, "gift", 1))).into();
        let poisoned = node.start_order(&order_request(ALICE, "p", "gift", 1).with_reference("\0"));
        let after = node.start_order(&order_request(ALICE, "d", "gift", 1));
        first.await.unwrap().expect_new();
        for call in good.into_iter().chain([after]) {
            assert!(call.await.unwrap().expect_new().starts_with("DELIVERED"));
        }
        assert_eq!(poisoned.await.unwrap().error(), Some(&FlowError::Poisoned));
        assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (5, 5_000));
    }

    async fn blocked_record_of_large_batch_fails_alone() {
        assert_eq!(count_unwritten_with_blocked_keys(&[77]).await, 0);
    }

    async fn unblocked_records_do_not_wait_for_batch_bisection() {
        // Both are in one lane, in different halves of the batch.
        let not_written = count_unwritten_with_blocked_keys(&[250, 350]).await;
        assert!(not_written <= 2 * 12, "{not_written} exceed the contended parts");
    }

    async fn batch_bisection_ends_within_client_timeout(sim, node, gifts: 60) {
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let first = node.start_order(&order_request(ALICE, "first", "gift", 1));
        sleep(MOMENT).await;
        let requests: Vec<_> = (0..9).map(|n| order_request(ALICE, &format!("stuck {n}"), "gift", 1)).collect();
        let mut others = Vec::new();
        for request in &requests {
            others.push(sim.db.begin_insert_key(request.key_hash(), other_response()).await);
        }
        let calls: Vec<_> = requests.iter().map(|request| node.start_order(request)).collect();
        first.await.unwrap().expect_new();
        let started = Instant::now();
        for call in calls {
            assert_eq!(call.await.unwrap().error(), Some(&FlowError::Unavailable));
        }
        assert_eq!(started.elapsed(), 8 * SECOND, "the whole batch and three parts");
        drop(others);
    }

    async fn backlog_of_slow_disk_is_written_in_bounded_batches(sim, node) {
        sim.top_up(ALICE, 100_000_000).await;
        sim.import(&gift(), &vec![1; 9_700]);
        sim.db.fail_commit("one", Fault::Slow(SECOND));
        let mut calls = vec![node.start_order(&order_request(ALICE, "first", "gift", 1))];
        sleep(MOMENT).await;
        calls.extend((0..9).map(|n| node.start_order(&order_request(ALICE, &format!("large {n}"), "gift", 1_000))));
        calls.extend((0..600).map(|n| node.start_order(&order_request(ALICE, &format!("small {n}"), "gift", 1))));
        for call in calls {
            assert!(call.await.unwrap().expect_new().starts_with("DELIVERED"));
        }
        assert_eq!(sim.db.free_vouchers(&gift()).len(), 99);
    }

    async fn restart_settles_commits_of_previous_incarnation() {
        for (fault, executed) in [(Fault::ResponseLost, true), (Fault::NeverSent, false), (Fault::Delayed, false)] {
            let (sim, node) = setup().await;
            sim.import(&gift(), &[1]);
            sim.db.fail_commit("one", fault);
            sim.db.fail_calls("one", FaultKind::RecoveryError, 3);
            let request = order_request(ALICE, "k", "gift", 1);
            let first = node.start_order(&request);
            sleep(MOMENT).await;
            drop(node);
            assert!(first.await.is_err_and(|error| error.is_cancelled()));
            let node = sim.start("one").await;
            let reply = node.place_order(&request).await;
            assert_eq!(matches!(reply, OrderReply::Replayed(_)), executed, "{fault:?}: {}", reply.describe());
            assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (1, 9_000), "{fault:?}");
            assert_settled(&sim, &node).await;
        }
    }
}
