//! Two nodes over one database, and one node over and over again.

use std::time::Duration;

use tokio::time::sleep;
use vouchsafe_actors::flows::Unanswered;
use vouchsafe_actors::testing::Fault;

use crate::in_a_world;
use crate::shop::{ALICE, BOB, SECOND, all_is_settled, booking, gift, shop, wants};

const MOMENT: Duration = Duration::from_millis(1);

in_a_world! {
    async fn a_restart_has_all_stock_at_once() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 3]);
        node.places(&wants(ALICE, "k1", "gift", 1)).await.fresh();
        drop(node);
        let node = world.start("one").await;
        assert!(node.places(&wants(ALICE, "k2", "gift", 2)).await.fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &node).await;
    }

    async fn what_another_node_owns_is_not_sold_out() {
        let (world, one) = shop().await;
        world.import(&gift(), &[1; 3]);
        one.places(&wants(ALICE, "k", "gift", 1)).await.fresh();
        let two = world.start("two").await;
        let ask = wants(BOB, "k", "gift", 1);
        assert_eq!(two.places(&ask).await.unanswered(), Some(&Unanswered::Unavailable));
        world.import(&gift(), &[2]);
        let more = wants(BOB, "more", "gift", 2);
        assert_eq!(two.places(&more).await.unanswered(), Some(&Unanswered::Unavailable), "one is here, two there");
        assert!(two.places(&ask).await.fresh().starts_with("DELIVERED"));
        all_is_settled(&world, &one).await;
        all_is_settled(&world, &two).await;
    }

    async fn what_another_node_owns_is_not_sold_out_whatever_was_claimed_and_sold_since_it_was_seen() {
        let (world, other) = shop().await;
        world.import(&gift(), &[1; 6]);
        other.places(&wants(BOB, "k", "gift", 1)).await.fresh();
        let node = world.start("two").await;
        world.import(&gift(), &[1; 8]);
        world.db.fail_commit("two", Fault::Slow(SECOND));
        let all_there_is = node.begins(&wants(ALICE, "k", "gift", 8));
        sleep(MOMENT).await;
        let short = node.begins(&wants(BOB, "short", "gift", 5));
        sleep(MOMENT).await;
        node.imports(&gift(), &[1]);
        all_there_is.await.unwrap().fresh();
        let heard = short.await.unwrap();
        assert_eq!(heard.unanswered(), Some(&Unanswered::Unavailable), "{}", heard.in_words());
        all_is_settled(&world, &node).await;
    }

    async fn what_another_node_got_while_an_order_waited_is_not_sold_out() {
        let (world, one) = shop().await;
        world.import(&gift(), &[1; 8]);
        let two = world.start("two").await;
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let all_there_is = one.begins(&wants(ALICE, "k", "gift", 8));
        sleep(MOMENT).await;
        let short = one.begins(&wants(BOB, "short", "gift", 5));
        sleep(MOMENT).await;
        world.import(&gift(), &[1; 5]);
        two.places(&wants(BOB, "k", "gift", 1)).await.fresh();
        all_there_is.await.unwrap().fresh();
        let heard = short.await.unwrap();
        assert_eq!(heard.unanswered(), Some(&Unanswered::Unavailable), "{}", heard.in_words());
        all_is_settled(&world, &one).await;
    }

    async fn what_another_node_owns_is_bought_where_it_can_be() {
        let (world, one) = shop().await;
        world.import(&vouchsafe_actors::testing::build::sku("bought", 1_000), &[1; 3]);
        one.places(&wants(ALICE, "k", "bought", 1)).await.fresh();
        let two = world.start("two").await;
        assert!(two.places(&wants(BOB, "k", "bought", 1)).await.fresh().starts_with("PENDINGVENDOR"));
        all_is_settled(&world, &two).await;
    }

    async fn a_node_that_was_paused_past_its_lease_sells_nothing_of_what_it_had() {
        let (world, one) = shop().await;
        world.import(&gift(), &[1; 4]);
        one.places(&wants(ALICE, "k", "gift", 1)).await.fresh();
        world.db.lapse_lease("one");
        let two = world.start("two").await;
        assert!(two.places(&wants(BOB, "k1", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        let ask = wants(ALICE, "k2", "gift", 1);
        assert_eq!(one.places(&ask).await.unanswered(), Some(&Unanswered::Unavailable));
        assert!(two.places(&ask).await.fresh().starts_with("DELIVERED"));
        assert!(two.places(&wants(BOB, "k2", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        let refusal = one.places(&wants(ALICE, "k3", "gift", 1)).await;
        assert_eq!(refusal.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &one).await;
        all_is_settled(&world, &two).await;
    }

    async fn a_start_that_was_superseded_writes_nothing_more_and_says_so() {
        let (world, old) = shop().await;
        world.import(&gift(), &[1; 4]);
        old.places(&wants(ALICE, "k1", "gift", 1)).await.fresh();
        let new = world.start("one").await;
        let heard = old.places(&wants(ALICE, "k2", "gift", 1)).await;
        assert_eq!(heard.unanswered(), Some(&Unanswered::OutcomeUnknown));
        tokio::time::timeout(SECOND, old.engine.superseded()).await.unwrap();
        assert!(new.places(&wants(ALICE, "k2", "gift", 1)).await.fresh().starts_with("DELIVERED"));
        assert_eq!((world.db.orders().len(), world.balance(ALICE)), (2, 8_000));
        all_is_settled(&world, &new).await;
    }

    async fn a_drained_engine_has_settled_everything_and_admits_nothing() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 4]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let last = node.begins(&wants(ALICE, "k1", "gift", 1));
        sleep(MOMENT).await;
        let (drained, late) = tokio::join!(node.engine.drain(), async {
            sleep(MOMENT).await;
            node.places(&wants(ALICE, "k2", "gift", 1)).await
        });
        let () = drained;
        assert_eq!(late.unanswered(), Some(&Unanswered::Overloaded));
        assert_eq!(world.db.orders().len(), 1);
        last.await.unwrap().fresh();
        assert_eq!(node.places(&wants(ALICE, "k3", "gift", 1)).await.unanswered(), Some(&Unanswered::Overloaded));
    }

    async fn a_wallet_that_knows_more_than_the_store_believes_the_store() {
        for (booked, quantity, expected) in [
            (5_000, 11, "INSUFFICIENT_FUNDS 110.00 of 10000"),
            (-9_500, 2, "DELIVERED"),
        ] {
            let (world, node) = shop().await;
            world.import(&gift(), &[1; 20]);
            let lagging = world.db.backup();
            node.books(booking(ALICE, "b", booked)).await.unwrap();
            world.db.fall_back(&lagging);
            let heard = node.places(&wants(ALICE, "k", "gift", quantity)).await;
            assert!(heard.fresh().starts_with(expected), "{}", heard.in_words());
            all_is_settled(&world, &node).await;
            assert!(node.knows_balance(ALICE).await);
        }
    }
}
