//! Commits that fail, and commits of which nobody knows what became: what is held stays held until it is settled.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::domain::answer::KnownAnswer;
use vouchsafe_actors::flows::Unanswered;
use vouchsafe_actors::testing::world::{Heard, Node, World};
use vouchsafe_actors::testing::{Fault, FaultKind, build};

use crate::in_a_world;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, gift, shop, wants};

const MOMENT: Duration = Duration::from_millis(1);

/// One order of Alice's whose commits meet these faults.
async fn meets(faults: &[Fault]) -> (World, Node, Heard) {
    let (world, node) = shop().await;
    world.import(&gift(), &[1; 9]);
    faults
        .iter()
        .for_each(|fault| world.db.fail_commit("one", *fault));
    let heard = node.places(&wants(ALICE, "k", "gift", 1)).await;
    (world, node, heard)
}

/// What somebody else is about to keep under a key.
fn another_answer() -> KnownAnswer {
    KnownAnswer {
        fingerprint: build::fingerprint("another"),
        answer: build::answer("another"),
    }
}

/// 511 partners order at once, and somebody stands in the way of some of them. Returns how many of the others hear that
/// nothing was written.
async fn not_written_beside_stuck(stuck: &[usize]) -> usize {
    let (world, node) = shop().await;
    world.import(&gift(), &[1; 600]);
    let asks: Vec<_> = (0..511)
        .map(|number| wants(build::partner(1_000 + number), "k", "gift", 1))
        .collect();
    for ask in &asks {
        world.give(ask.partner_id, 1_000).await;
    }
    node.places(&wants(ALICE, "warm", "gift", 1)).await.fresh();
    let mut somebody = Vec::new();
    for place in stuck {
        somebody.push(world.db.open_key(asks[*place].key_hash(), another_answer()).await);
    }
    let calls: Vec<_> = asks.iter().map(|ask| node.begins(ask)).collect();
    let mut not_written = 0;
    for (place, call) in calls.into_iter().enumerate() {
        match (call.await.unwrap(), stuck.contains(&place)) {
            (Heard::Fresh(_), false) => {}
            (heard, is_stuck) => {
                assert_eq!(heard.unanswered(), Some(&Unanswered::Unavailable), "{place}");
                not_written += usize::from(!is_stuck);
            }
        }
    }
    drop(somebody);
    assert!(
        node.places(&asks[stuck[0]])
            .await
            .fresh()
            .starts_with("DELIVERED")
    );
    all_is_settled(&world, &node).await;
    not_written
}

in_a_world! {
    async fn whatever_befalls_its_commit_an_order_is_answered_in_the_end() {
        let table: &[(&[Fault], Result<(), Unanswered>)] = &[
            (&[], Ok(())),
            (&[Fault::Slow(SECOND)], Ok(())),
            (&[Fault::Busy], Ok(())),
            (&[Fault::Busy, Fault::Busy], Err(Unanswered::Unavailable)),
            (&[Fault::Contended], Ok(())),
            (&[Fault::Contended, Fault::Contended], Err(Unanswered::Unavailable)),
            (&[Fault::Poisoned], Ok(())),
            (&[Fault::Poisoned, Fault::Poisoned], Err(Unanswered::Poisoned)),
            (&[Fault::AnswerLost], Ok(())),
            (&[Fault::NeverSent], Ok(())),
            (&[Fault::NeverSent; 2], Ok(())),
            (&[Fault::NeverSent; 3], Err(Unanswered::Unavailable)),
            (&[Fault::Late], Ok(())),
            (&[Fault::Adrift(Duration::ZERO)], Ok(())),
            (&[Fault::Adrift(SECOND)], Ok(())),
            (&[Fault::NeverSent, Fault::AnswerLost], Ok(())),
        ];
        for (faults, expected) in table {
            let (world, node, heard) = meets(faults).await;
            match expected {
                Ok(()) => assert!(heard.fresh().starts_with("DELIVERED"), "{faults:?}: {}", heard.in_words()),
                Err(reason) => assert_eq!(heard.unanswered(), Some(reason), "{faults:?}"),
            }
            all_is_settled(&world, &node).await;
            let ask = wants(ALICE, "k", "gift", 1);
            let again = node.places(&ask).await;
            assert_eq!(matches!(again, Heard::Replayed(_)), expected.is_ok(), "{faults:?}");
            assert_eq!((world.db.orders().len(), world.balance(ALICE)), (1, 9_000), "{faults:?}");
            all_is_settled(&world, &node).await;
        }
    }

    async fn until_it_is_settled_the_key_is_busy_and_what_is_held_stays_held() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        world.db.fail_commit("one", Fault::AnswerLost);
        world.db.fail_calls("one", FaultKind::RecoverFails, 25);
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.begins(&ask);
        sleep(SECOND).await;
        assert!(!node.engine.flows());
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::KeyBusy));
        let other = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert_eq!(other.unanswered(), Some(&Unanswered::Unavailable), "it may be there still");
        assert_eq!(first.await.unwrap().unanswered(), Some(&Unanswered::OutcomeUnknown));
        assert_eq!(node.engine.under_way(), 1);
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::KeyBusy));
        sleep(30 * SECOND).await;
        assert!(node.engine.flows());
        assert!(node.places(&ask).await.replayed().starts_with("DELIVERED"));
        let refusal = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert_eq!(refusal.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn what_was_lost_and_nobody_waits_for_is_forgotten() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        world.db.fail_commit("one", Fault::NeverSent);
        world.db.fail_calls("one", FaultKind::RecoverFails, 3);
        let gone = node.begins(&wants(ALICE, "k", "gift", 1));
        sleep(MOMENT).await;
        gone.abort();
        let bob = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert!(bob.fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (1, 10_000));
    }

    async fn one_poisoned_record_fails_alone() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        // What gathers behind the first commit is one batch.
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let first = node.begins(&wants(ALICE, "first", "gift", 1));
        sleep(MOMENT).await;
        let good: Vec<_> = ["a", "b", "c"].map(|key| node.begins(&wants(ALICE, key, "gift", 1))).into();
        let poisoned = node.begins(&wants(ALICE, "p", "gift", 1).reference("\0"));
        let after = node.begins(&wants(ALICE, "d", "gift", 1));
        first.await.unwrap().fresh();
        for call in good.into_iter().chain([after]) {
            assert!(call.await.unwrap().fresh().starts_with("DELIVERED"));
        }
        assert_eq!(poisoned.await.unwrap().unanswered(), Some(&Unanswered::Poisoned));
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (5, 5_000));
        all_is_settled(&world, &node).await;
    }

    async fn of_many_orders_only_the_one_that_stands_in_somebodys_way_is_not_written() {
        assert_eq!(not_written_beside_stuck(&[77]).await, 0);
    }

    async fn what_stands_in_nobodys_way_does_not_wait_until_others_are_told_apart() {
        // Both in one lane, and in two parts of it.
        let not_written = not_written_beside_stuck(&[250, 350]).await;
        assert!(not_written <= 2 * 12, "{not_written}: more than the parts that collide");
    }

    async fn telling_apart_what_collides_ends_while_its_clients_wait() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 60]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let first = node.begins(&wants(ALICE, "first", "gift", 1));
        sleep(MOMENT).await;
        let asks: Vec<_> = (0..9).map(|n| wants(ALICE, &format!("stuck {n}"), "gift", 1)).collect();
        let mut others = Vec::new();
        for ask in &asks {
            others.push(world.db.open_key(ask.key_hash(), another_answer()).await);
        }
        let calls: Vec<_> = asks.iter().map(|ask| node.begins(ask)).collect();
        first.await.unwrap().fresh();
        let begun = Instant::now();
        for call in calls {
            assert_eq!(call.await.unwrap().unanswered(), Some(&Unanswered::Unavailable));
        }
        assert_eq!(begun.elapsed(), 8 * SECOND, "the whole, and three of its parts");
        drop(others);
        all_is_settled(&world, &node).await;
    }

    async fn what_gathers_while_the_disk_is_slow_is_written_in_bounded_batches() {
        let (world, node) = shop().await;
        world.give(ALICE, 100_000_000).await;
        world.import(&gift(), &vec![1; 9_700]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let mut calls = vec![node.begins(&wants(ALICE, "first", "gift", 1))];
        sleep(MOMENT).await;
        calls.extend((0..9).map(|n| node.begins(&wants(ALICE, &format!("large {n}"), "gift", 1_000))));
        calls.extend((0..600).map(|n| node.begins(&wants(ALICE, &format!("small {n}"), "gift", 1))));
        for call in calls {
            assert!(call.await.unwrap().fresh().starts_with("DELIVERED"));
        }
        assert_eq!(world.db.free(&gift()).len(), 99);
        all_is_settled(&world, &node).await;
    }

    async fn a_restart_settles_what_its_predecessor_left() {
        for (fault, executed) in [(Fault::AnswerLost, true), (Fault::NeverSent, false), (Fault::Late, false)] {
            let (world, node) = shop().await;
            world.import(&gift(), &[1]);
            world.db.fail_commit("one", fault);
            world.db.fail_calls("one", FaultKind::RecoverFails, 3);
            let ask = wants(ALICE, "k", "gift", 1);
            let first = node.begins(&ask);
            sleep(MOMENT).await;
            drop(node);
            assert!(first.await.is_err_and(|error| error.is_cancelled()));
            let node = world.start("one").await;
            let heard = node.places(&ask).await;
            assert_eq!(matches!(heard, Heard::Replayed(_)), executed, "{fault:?}: {}", heard.in_words());
            assert_eq!((world.db.orders().len(), world.balance(ALICE)), (1, 9_000), "{fault:?}");
            all_is_settled(&world, &node).await;
        }
    }
}
