//! When an order is refused: only for what the store says, only when nothing under way could still change it.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::flows::Unanswered;
use vouchsafe_actors::testing::{Fault, FaultKind, build};

use crate::in_a_world;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, booking, gift, shop, wants};

const MOMENT: Duration = Duration::from_millis(1);

in_a_world! {
    async fn too_little_money_is_refused_for_good() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 20]);
        let ask = wants(ALICE, "k", "gift", 11);
        assert_eq!(node.places(&ask).await.fresh(), "INSUFFICIENT_FUNDS 110.00 of 10000");
        world.give(ALICE, 100_000).await;
        assert_eq!(node.places(&ask).await.replayed(), "INSUFFICIENT_FUNDS 110.00 of 10000");
        assert!(node.places(&wants(ALICE, "k2", "gift", 11)).await.fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn a_wallet_that_is_not_there_holds_nothing() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        let stranger = build::partner(9);
        let heard = node.places(&wants(stranger, "k", "gift", 1)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_FUNDS 10.00 of 0");
        world.give(stranger, 1_000).await;
        assert!(node.places(&wants(stranger, "k2", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn too_little_stock_is_refused_for_good_and_names_the_product() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1, 2]);
        let ask = wants(ALICE, "k", "gift", 3);
        let refusal = "INSUFFICIENT_INVENTORY gift/1000 3 of 2";
        assert_eq!(node.places(&ask).await.fresh(), refusal);
        node.imports(&gift(), &[1, 2]);
        assert_eq!(node.places(&ask).await.replayed(), refusal);
        assert!(node.places(&wants(ALICE, "k2", "gift", 3)).await.fresh().starts_with("DELIVERED"));
        assert_eq!(world.balance(ALICE), 7_000);
        all_is_settled(&world, &node).await;
    }

    async fn from_stock_alone_is_refused_where_the_vendor_has_some() {
        let (world, node) = shop().await;
        let ask = wants(ALICE, "k", "bought", 1).cache_only();
        assert_eq!(node.places(&ask).await.fresh(), "INSUFFICIENT_INVENTORY bought/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn an_import_that_nobody_told_of_is_found_before_anything_is_refused() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        node.places(&wants(ALICE, "k1", "gift", 1)).await.fresh();
        world.import(&gift(), &[1]);
        assert!(node.places(&wants(ALICE, "k2", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn the_last_voucher_is_not_sold_out_before_its_commit_succeeds() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let (begun, alice) = (Instant::now(), node.begins(&wants(ALICE, "k", "gift", 1)));
        sleep(MOMENT).await;
        let bob = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert_eq!(bob.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        assert_eq!(begun.elapsed(), SECOND);
        assert!(alice.await.unwrap().fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn the_last_voucher_is_anothers_when_its_commit_fails() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        a_slow_commit_that_fails(&world);
        let alice = node.begins(&wants(ALICE, "k", "gift", 1));
        sleep(MOMENT).await;
        let bob = node.places(&wants(BOB, "k", "gift", 1)).await;
        assert!(bob.fresh().starts_with("DELIVERED"), "{}", bob.in_words());
        assert_eq!(alice.await.unwrap().unanswered(), Some(&Unanswered::Unavailable));
        all_is_settled(&world, &node).await;
    }

    async fn money_is_not_short_before_its_commit_succeeds() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 20]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let first = node.begins(&wants(ALICE, "k1", "gift", 9));
        sleep(MOMENT).await;
        let second = node.places(&wants(ALICE, "k2", "gift", 2)).await;
        assert_eq!(second.fresh(), "INSUFFICIENT_FUNDS 20.00 of 1000");
        assert!(first.await.unwrap().fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn money_comes_back_when_its_commit_fails() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 20]);
        a_slow_commit_that_fails(&world);
        let first = node.begins(&wants(ALICE, "k1", "gift", 9));
        sleep(MOMENT).await;
        let second = node.places(&wants(ALICE, "k2", "gift", 2)).await;
        assert!(second.fresh().starts_with("DELIVERED"), "{}", second.in_words());
        assert_eq!(first.await.unwrap().unanswered(), Some(&Unanswered::Unavailable));
        assert_eq!(world.balance(ALICE), 8_000);
        all_is_settled(&world, &node).await;
    }

    async fn who_waits_too_long_is_told_nothing_that_is_kept() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        world.db.fail_commit("one", Fault::Slow(5 * SECOND));
        let alice = node.begins(&wants(ALICE, "k", "gift", 1));
        sleep(MOMENT).await;
        let (begun, ask) = (Instant::now(), wants(BOB, "k", "gift", 1));
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::Unavailable));
        assert_eq!((begun.elapsed(), world.db.kept(ask.key_hash())), (2 * SECOND, None));
        assert!(alice.await.unwrap().fresh().starts_with("DELIVERED"));
        assert_eq!(node.places(&ask).await.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn a_shortage_is_not_told_while_the_store_cannot_be_asked() {
        let (world, node) = shop().await;
        world.db.fail_calls("one", FaultKind::ReadFails, 3);
        let heard = node.places(&wants(ALICE, "k", "gift", 1)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        world.db.fail_calls("one", FaultKind::ReadFails, 1_000);
        let ask = wants(ALICE, "k2", "gift", 1);
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::Unavailable));
        world.db.heal();
        assert_eq!(node.places(&ask).await.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn an_actor_that_nobody_waits_for_leaves_the_store_alone_while_it_cannot_be_reached() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        let before = node.places(&wants(BOB, "before", "gift", 1)).await;
        assert!(before.fresh().starts_with("DELIVERED"));
        world.db.fail_calls("one", FaultKind::ReadFails, 1_000_000);
        for ask in [wants(ALICE, "new to all", "gift", 1), wants(BOB, "short", "gift", 99)] {
            assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::Unavailable));
        }
        assert!(node.begins(&wants(BOB, "a new shelf", "bought", 1)).await.unwrap().unanswered().is_some());
        sleep(SECOND).await;
        let reads = || world.db.fault_counts()[&FaultKind::ReadFails];
        let until_then = reads();
        sleep(600 * SECOND).await;
        assert_eq!(reads() - until_then, 0);
        world.db.heal();
        assert!(node.places(&wants(ALICE, "new to all", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        assert!(node.places(&wants(BOB, "a new shelf", "bought", 1)).await.fresh().starts_with("PENDINGVENDOR"));
        all_is_settled(&world, &node).await;
    }

    async fn more_than_may_be_admitted_is_turned_away() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 3]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let crowd = node.crowd(1);
        let first = node.begins(&wants(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        let ask = wants(BOB, "k2", "gift", 1);
        assert_eq!(node.places(&ask).await.unanswered(), Some(&Unanswered::Overloaded));
        assert!(first.await.unwrap().fresh().starts_with("DELIVERED"));
        assert!(node.places(&ask).await.fresh().starts_with("DELIVERED"), "its place is free again");
        drop(crowd);
        all_is_settled(&world, &node).await;
    }

    async fn a_balance_that_others_spent_is_read_again_before_it_is_decided_again() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 30]);
        node.places(&wants(ALICE, "k0", "gift", 1)).await.fresh();
        let other = world.start("two").await;
        other.books(booking(ALICE, "elsewhere", -8_500)).await.unwrap();
        // The read that follows the refused commit takes several attempts: no decision is made meanwhile.
        world.db.fail_calls("one", FaultKind::ReadFails, 5);
        let begun = Instant::now();
        let heard = node.places(&wants(ALICE, "k1", "gift", 2)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_FUNDS 20.00 of 500");
        assert_eq!(begun.elapsed(), SECOND / 2);
        other.books(booking(ALICE, "more", 1_500)).await.unwrap();
        let heard = node.places(&wants(ALICE, "k2", "gift", 2)).await;
        assert!(heard.fresh().starts_with("DELIVERED"), "{}", heard.in_words());
        all_is_settled(&world, &node).await;
    }
}

/// The next commit breaks, is found not written a while later, and cannot be written then.
fn a_slow_commit_that_fails(world: &vouchsafe_actors::testing::world::World) {
    world.db.fail_commit("one", Fault::NeverSent);
    world.db.fail_calls("one", FaultKind::RecoverFails, 5);
    world.db.fail_commit("one", Fault::Busy);
}
