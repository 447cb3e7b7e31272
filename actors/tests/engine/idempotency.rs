//! One key, one execution, one answer: at once, later, in other hands, after a restart, after its day.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::domain::catalogue::Catalogue;
use vouchsafe_actors::flows::{NotPlaced, Unanswered};
use vouchsafe_actors::testing::world::{Heard, Node, World, catalogue, discontinued};
use vouchsafe_actors::testing::{Fault, FaultKind};

use crate::in_a_world;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, booking, gift, shop, wants};

const HOUR: Duration = Duration::from_secs(60 * 60);
const MOMENT: Duration = Duration::from_millis(1);

in_a_world! {
    async fn a_replay_has_the_very_bytes_and_executes_nothing() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.places(&ask).await;
        let kept = world.db.kept(ask.key_hash()).unwrap();
        for _ in 0..3 {
            assert_eq!(node.places(&ask).await, Heard::Replayed(kept.known.answer.clone()));
        }
        assert_eq!(first, Heard::Fresh(kept.known.answer));
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (1, 9_000));
        all_is_settled(&world, &node).await;
    }

    async fn what_was_answered_lately_is_replayed_though_the_store_is_out_of_reach() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        let (order, refusal) = (wants(ALICE, "k", "gift", 1), wants(ALICE, "too much", "gift", 9_999));
        let first = [node.places(&order).await, node.places(&refusal).await];
        world.db.fail_calls("one", FaultKind::ReadFails, 9);
        (0..9).for_each(|_| world.db.fail_commit("one", Fault::Busy));
        for (ask, heard) in [&order, &refusal].into_iter().zip(&first) {
            assert_eq!(node.places(ask).await.replayed(), heard.fresh());
        }
        world.db.heal();
        all_is_settled(&world, &node).await;
    }

    async fn another_request_under_a_used_key_is_refused_and_executes_nothing() {
        let (world, mut node) = shop().await;
        world.import(&gift(), &[1; 9]);
        node.places(&wants(ALICE, "k", "gift", 1)).await.fresh();
        for _ in ["from memory", "from the store"] {
            let other = node.places(&wants(ALICE, "k", "gift", 2)).await;
            assert_eq!(other.unanswered(), Some(&Unanswered::KeyReused));
            node = world.start("one").await;
        }
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (1, 9_000));
        assert!(node.places(&wants(BOB, "k", "gift", 2)).await.fresh().starts_with("DELIVERED"), "his own key");
        all_is_settled(&world, &node).await;
    }

    async fn of_many_at_once_one_executes_and_the_others_hear_its_answer() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let ask = wants(ALICE, "k", "gift", 1);
        let calls: Vec<_> = (0..20).map(|_| node.begins(&ask)).collect();
        let other = node.begins(&wants(ALICE, "k", "gift", 3));
        let mut heard = Vec::new();
        for call in calls {
            heard.push(call.await.unwrap());
        }
        let answer = world.db.kept(ask.key_hash()).unwrap().known.answer;
        assert_eq!(heard[0], Heard::Fresh(answer.clone()));
        assert!(heard[1..].iter().all(|heard| *heard == Heard::Replayed(answer.clone())));
        assert_eq!(other.await.unwrap().unanswered(), Some(&Unanswered::KeyReused));
        assert_eq!(world.db.orders().len(), 1);
        all_is_settled(&world, &node).await;
    }

    async fn a_waiter_whose_first_kept_nothing_runs_itself() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        a_busy_store(&world);
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.begins(&ask);
        let second = node.begins(&ask);
        assert_eq!(first.await.unwrap().unanswered(), Some(&Unanswered::Unavailable));
        assert!(second.await.unwrap().fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn a_waiter_whose_first_had_no_price_has_its_own() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        world.set_catalogue(Catalogue::default());
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.begins(&ask);
        world.set_catalogue(catalogue());
        let second = node.begins(&ask);
        assert!(matches!(first.await.unwrap(), Heard::Nothing(NotPlaced::Unpriced(_))));
        assert!(second.await.unwrap().fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn a_waiter_waits_two_seconds() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        world.db.fail_commit("one", Fault::Slow(3 * SECOND));
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.begins(&ask);
        sleep(MOMENT).await;
        let begun = Instant::now();
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::KeyBusy));
        assert_eq!(begun.elapsed(), 2 * SECOND);
        assert!(first.await.unwrap().fresh().starts_with("DELIVERED"));
        assert!(node.places(&ask).await.replayed().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn after_a_restart_a_replay_is_not_decided_on_todays_world() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.places(&ask).await.fresh().to_owned();
        type Change = fn(&World);
        let nothing: Change = |_| {};
        let discontinue: Change = |world| {
            let product = world.catalogue().get(&gift().product_id).unwrap().as_ref().clone();
            world.set_catalogue(world.catalogue().with(discontinued(product)));
        };
        let restock: Change = |world| {
            world.set_catalogue(catalogue());
            world.import(&gift(), &[1, 2, 3]);
        };
        for (today, change) in [("sold out", nothing), ("discontinued", discontinue), ("restocked", restock)] {
            change(&world);
            let node = world.start("one").await;
            assert_eq!(node.places(&ask).await.replayed(), first, "{today}");
            all_is_settled(&world, &node).await;
        }
        let last = world.start("one").await;
        last.books(booking(ALICE, "all of it", -9_000)).await.unwrap();
        assert_eq!(last.places(&ask).await.replayed(), first, "the wallet is empty");
        assert_eq!((world.db.orders().len(), world.db.free(&gift()).len()), (1, 3));
        all_is_settled(&world, &last).await;
        drop(node);
    }

    async fn after_a_restart_a_replay_is_found_though_the_actors_cannot_decide() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1, 1]);
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.places(&ask).await.fresh().to_owned();
        node.books(booking(ALICE, "b", 500)).await.unwrap();
        drop(node);
        let node = world.start("one").await;
        // A stuck commit of somebody else in the same wallet keeps the actor from being rebuilt.
        world.db.fail_commit("one", Fault::Slow(5 * SECOND));
        let other = node.begins(&wants(ALICE, "other", "gift", 1));
        sleep(MOMENT).await;
        node.wallet_panics(ALICE).await;
        assert_eq!(node.places(&ask).await.replayed(), first);
        assert!(node.books(booking(ALICE, "b", 500)).await.unwrap().replayed);
        assert!(other.await.unwrap().fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn a_key_lives_for_a_day_from_its_commit() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        let ask = wants(ALICE, "k", "gift", 1);
        let first = node.places(&ask).await.fresh().to_owned();
        sleep(24 * HOUR - SECOND).await;
        assert_eq!(node.places(&ask).await.replayed(), first);
        sleep(SECOND).await;
        assert_ne!(node.places(&ask).await.fresh(), first);
        assert_eq!(world.db.orders().len(), 2);
        all_is_settled(&world, &node).await;
    }

    async fn a_replay_from_the_store_does_not_make_a_key_live_longer() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        let ask = wants(ALICE, "k", "gift", 1);
        let refused = wants(ALICE, "too much", "gift", 9_999);
        let (first, refusal) = (node.places(&ask).await, node.places(&refused).await);
        drop(node);
        let node = world.start("one").await;
        sleep(23 * HOUR).await;
        assert_eq!(node.places(&ask).await.replayed(), first.fresh());
        assert_eq!(node.places(&refused).await.replayed(), refusal.fresh());
        sleep(HOUR).await;
        node.places(&ask).await.fresh();
        node.places(&refused).await.fresh();
        all_is_settled(&world, &node).await;
    }

    async fn of_two_nodes_that_refused_alike_nobody_says_which_was_first() {
        let (world, one) = shop().await;
        let two = world.start("two").await;
        let ask = wants(ALICE, "k", "gift", 11);
        // The refusal of one waits behind a slow commit while that of two is written; then one hears nothing of its own,
        // and finds under the key what it wrote, or would have written: a refusal has nothing in it that tells them apart.
        world.db.fail_commit("one", Fault::Slow(SECOND));
        world.db.fail_commit("one", Fault::AnswerLost);
        let before = one.begins_to_book(booking(ALICE, "b", 500));
        sleep(MOMENT).await;
        let first = one.begins(&ask);
        sleep(MOMENT).await;
        let second = two.places(&ask).await;
        let first = first.await.unwrap();
        assert_eq!((first.fresh(), second.fresh()), ("INSUFFICIENT_FUNDS 110.00 of 10000", first.fresh()));
        before.await.unwrap().unwrap();
        assert!(world.db.kept(ask.key_hash()).is_some());
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (0, 10_500));
        all_is_settled(&world, &one).await;
        all_is_settled(&world, &two).await;
    }

    async fn the_same_key_at_two_nodes_executes_once() {
        let (world, one) = shop().await;
        let two = world.start("two").await;
        let ask = wants(ALICE, "k", "gift", 1);
        world.import(&gift(), &[1]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let first = one.begins(&ask);
        sleep(MOMENT).await;
        world.import(&gift(), &[1]);
        let second = two.places(&ask).await;
        assert_eq!(second.replayed(), first.await.unwrap().fresh());
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (1, 9_000));
        all_is_settled(&world, &one).await;
        all_is_settled(&world, &two).await;
    }

    async fn a_key_that_cannot_be_looked_up_is_not_refused() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        let ask = wants(ALICE, "k", "gift", 1);
        node.places(&ask).await.fresh();
        drop(node);
        world.set_catalogue(Catalogue::default());
        let node: Node = world.start("one").await;
        world.db.fail_calls("one", FaultKind::ReadFails, 1);
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::Unavailable));
        assert!(node.places(&ask).await.replayed().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }
}

/// The next record cannot be written, twice.
fn a_busy_store(world: &World) {
    world.db.fail_commit("one", Fault::Busy);
    world.db.fail_commit("one", Fault::Busy);
}
