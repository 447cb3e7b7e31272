//! Actors that panic: the next request finds them rebuilt from the store, and nothing is sold or paid twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::domain::voucher::Expiry;
use vouchsafe_actors::flows::Unanswered;
use vouchsafe_actors::inventory::Supply;
use vouchsafe_actors::supervisor::Patience;
use vouchsafe_actors::testing::world::{Node, World};
use vouchsafe_actors::testing::{Fault, FaultKind, build};
use vouchsafe_actors::wallet::Funds;
use vouchsafe_actors::wallet::purse::Wish;

use crate::in_a_world;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, booking, gift, shop, wants};

const MOMENT: Duration = Duration::from_millis(1);

/// The panics here are meant: they are not printed.
pub(crate) fn quietly() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.payload_as_str().unwrap_or_default();
            if !text.contains("was told to panic") {
                loud(panic);
            }
        }));
    });
}

fn restarts(node: &Node) -> (u32, u32) {
    let wallets = node
        .engine
        .wallets
        .readings()
        .into_iter()
        .map(|(_, r)| r.restarts)
        .sum();
    let shelves = node
        .engine
        .inventory
        .readings()
        .into_iter()
        .map(|(_, r)| r.restarts)
        .sum();
    (wallets, shelves)
}

async fn busy_shop() -> (World, Node) {
    quietly();
    let (world, node) = shop().await;
    world.import(&gift(), &[1; 6]);
    node.places(&wants(ALICE, "warm", "gift", 1)).await.fresh();
    (world, node)
}

async fn both_panic(node: &Node) {
    node.wallet_panics(ALICE).await;
    node.shelf_panics(&gift()).await;
}

in_a_world! {
    async fn idle_actors_that_panic_are_rebuilt_by_the_next_request() {
        let (world, node) = busy_shop().await;
        for round in 1..=3 {
            both_panic(&node).await;
            let heard = node.places(&wants(ALICE, &format!("k{round}"), "gift", 1)).await;
            assert!(heard.fresh().starts_with("DELIVERED"), "{}", heard.in_words());
            assert_eq!(restarts(&node), (round, round));
        }
        all_is_settled(&world, &node).await;
        assert!(node.knows_balance(ALICE).await);
        assert_eq!((world.balance(ALICE), world.db.free(&gift()).len()), (6_000, 2));
    }

    async fn a_rebuild_waits_for_the_holds_of_the_dead() {
        for (fault, left) in [(Fault::Slow(SECOND), 8_000), (Fault::AnswerLost, 8_000), (Fault::Late, 8_000)] {
            let (world, node) = busy_shop().await;
            world.db.fail_commit("one", fault);
            world.db.fail_calls("one", FaultKind::RecoverFails, 4);
            let under_way = node.begins(&wants(ALICE, "k1", "gift", 1));
            sleep(MOMENT).await;
            both_panic(&node).await;
            let begun = Instant::now();
            let next = node.places(&wants(ALICE, "k2", "gift", 4)).await;
            assert!(next.fresh().starts_with("DELIVERED"), "{fault:?}: {}", next.in_words());
            assert!(begun.elapsed() > 50 * MOMENT, "{fault:?}: it waited");
            under_way.await.unwrap().fresh();
            all_is_settled(&world, &node).await;
            assert_eq!((world.balance(ALICE), world.db.free(&gift()).len()), (left - 4_000, 0), "{fault:?}");
            assert!(node.knows_balance(ALICE).await);
        }
    }

    async fn a_rebuilt_actor_decides_nothing_before_what_the_dead_held_is_settled() {
        let (world, node) = busy_shop().await;
        // Nothing of it is locked in the store: it is what the node itself knows to be open.
        world.db.fail_commit("one", Fault::NeverSent);
        world.db.fail_calls("one", FaultKind::RecoverFails, 8);
        let under_way = node.begins(&wants(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        both_panic(&node).await;
        let (wallet, shelf) = (Arc::clone(&node.engine), Arc::clone(&node.engine));
        let money = node.spawn(async move {
            let (least, patience) = (Wish::Take(build::minor(1)), Patience::begin());
            wallet.wallets.set_aside(ALICE, build::usd(), least, &patience).await
        });
        let voucher = node.spawn(async move {
            shelf.inventory.set_aside(&gift(), 1, Expiry::PAST, &Patience::begin()).await
        });
        sleep(SECOND / 2).await;
        assert!(!money.is_finished() && !voucher.is_finished());
        under_way.await.unwrap().fresh();
        assert!(matches!(money.await.unwrap(), Ok(Funds::Held(_))));
        assert!(matches!(voucher.await.unwrap(), Ok(Supply::Held(_))));
        all_is_settled(&world, &node).await;
    }

    async fn who_cannot_wait_for_a_rebuild_hears_that_nothing_was_decided() {
        let (world, node) = busy_shop().await;
        world.db.fail_commit("one", Fault::Slow(5 * SECOND));
        let under_way = node.begins(&wants(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        both_panic(&node).await;
        let begun = Instant::now();
        let (alice, bob) = (wants(ALICE, "k2", "gift", 1), wants(BOB, "k", "gift", 1));
        assert_eq!(node.places(&alice).await.unanswered(), Some(&Unanswered::Unavailable));
        assert_eq!(begun.elapsed(), 2 * SECOND);
        assert_eq!(node.places(&bob).await.unanswered(), Some(&Unanswered::Unavailable));
        under_way.await.unwrap().fresh();
        node.places(&alice).await.fresh();
        node.places(&bob).await.fresh();
        all_is_settled(&world, &node).await;
    }

    async fn what_the_dead_held_for_a_commit_that_fails_is_there_again() {
        let (world, node) = busy_shop().await;
        world.db.fail_commit("one", Fault::NeverSent);
        world.db.fail_calls("one", FaultKind::RecoverFails, 4);
        world.db.fail_commit("one", Fault::Busy);
        let under_way = node.begins(&wants(ALICE, "k1", "gift", 5));
        sleep(MOMENT).await;
        both_panic(&node).await;
        let next = node.places(&wants(ALICE, "k2", "gift", 5)).await;
        assert!(next.fresh().starts_with("DELIVERED"), "{}", next.in_words());
        assert_eq!(under_way.await.unwrap().unanswered(), Some(&Unanswered::Unavailable));
        all_is_settled(&world, &node).await;
        assert_eq!(world.balance(ALICE), 4_000);
    }

    async fn an_actor_may_panic_while_it_reads_and_while_others_wait_for_it() {
        quietly();
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 3]);
        world.db.fail_calls("one", FaultKind::ReadFails, 4);
        world.db.fail_calls("one", FaultKind::ClaimLost, 1);
        let waiting = node.begins(&wants(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        both_panic(&node).await;
        both_panic(&node).await;
        assert!(waiting.await.unwrap().fresh().starts_with("DELIVERED"));
        node.books(booking(ALICE, "b", 100)).await.unwrap();
        all_is_settled(&world, &node).await;
        assert_eq!((world.balance(ALICE), world.db.free(&gift()).len()), (9_100, 2));
    }
}
