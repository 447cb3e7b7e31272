//! What operators book: once under a reference, for ever.

use std::time::Duration;

use vouchsafe_actors::flows::{NotBooked, Unanswered};
use vouchsafe_actors::testing::{Fault, FaultKind, build};
use vouchsafe_actors::wallet::purse::MAX_BALANCE;

use crate::in_a_world;
use crate::shop::{ALICE, SECOND, all_is_settled, booking, gift, shop, wants};

in_a_world! {
    async fn money_that_was_booked_can_be_spent_at_once() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 20]);
        assert!(node.places(&wants(ALICE, "k1", "gift", 11)).await.fresh().starts_with("INSUFFICIENT"));
        let booked = node.books(booking(ALICE, "b", 1_000)).await.unwrap();
        assert!(!booked.replayed);
        assert!(node.places(&wants(ALICE, "k2", "gift", 11)).await.fresh().starts_with("DELIVERED"));
        assert!(node.knows_balance(ALICE).await);
        all_is_settled(&world, &node).await;
    }

    async fn a_first_booking_opens_the_wallet() {
        let (world, node) = shop().await;
        let newcomer = build::partner(9);
        node.books(booking(newcomer, "b", 1_000)).await.unwrap();
        assert_eq!(world.balance(newcomer), 1_000);
        all_is_settled(&world, &node).await;
    }

    async fn a_reference_books_once_for_ever() {
        let (world, node) = shop().await;
        let first = node.books(booking(ALICE, "b", 1_000)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(400 * 24 * 60 * 60)).await;
        let again = node.books(booking(ALICE, "b", 1_000)).await.unwrap();
        assert!(again.replayed && again.transaction_id == first.transaction_id);
        drop(node);
        let node = world.start("one").await;
        let again = node.books(booking(ALICE, "b", 1_000)).await.unwrap();
        assert!(again.replayed && again.transaction_id == first.transaction_id);
        let other = node.books(booking(ALICE, "b", 2_000)).await;
        assert_eq!(other, Err(NotBooked::Unanswered(Unanswered::KeyReused)));
        assert_eq!(world.balance(ALICE), 11_000);
        all_is_settled(&world, &node).await;
    }

    async fn no_more_is_taken_than_there_is() {
        let (world, node) = shop().await;
        let refused = node.books(booking(ALICE, "b", -10_001)).await;
        assert_eq!(refused, Err(NotBooked::Short(build::minor(10_000))));
        node.books(booking(ALICE, "b", -10_000)).await.unwrap();
        assert_eq!(world.balance(ALICE), 0);
        let again = node.books(booking(ALICE, "b", -10_000)).await.unwrap();
        assert!(again.replayed, "what was booked is found, though the wallet is empty");
        all_is_settled(&world, &node).await;
    }

    async fn what_is_under_way_is_not_taken() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 9]);
        world.db.fail_commit("one", Fault::Slow(SECOND));
        let order = node.begins(&wants(ALICE, "k", "gift", 9));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let refused = node.books(booking(ALICE, "b", -2_000)).await;
        assert_eq!(refused, Err(NotBooked::Short(build::minor(1_000))));
        order.await.unwrap().fresh();
        all_is_settled(&world, &node).await;
    }

    async fn an_amount_that_cannot_be_negated_is_refused() {
        let (world, node) = shop().await;
        assert_eq!(node.books(booking(ALICE, "b", i64::MIN)).await, Err(NotBooked::TooLarge));
        all_is_settled(&world, &node).await;
    }

    async fn a_wallet_is_filled_to_its_limit_and_what_is_beyond_it_is_refused() {
        let (world, node) = shop().await;
        let room = MAX_BALANCE.minor() - 10_000;
        assert_eq!(node.books(booking(ALICE, "b", room + 1)).await, Err(NotBooked::TooLarge));
        assert_eq!(node.books(booking(ALICE, "huge", i64::MAX)).await, Err(NotBooked::TooLarge));
        node.books(booking(ALICE, "c", room)).await.unwrap();
        assert_eq!(node.books(booking(ALICE, "d", 1)).await, Err(NotBooked::TooLarge));
        assert!(node.books(booking(ALICE, "c", room)).await.unwrap().replayed, "it was booked before");
        let other = world.start("two").await;
        other.books(booking(ALICE, "elsewhere", -1)).await.unwrap();
        node.books(booking(ALICE, "d", 1)).await.unwrap();
        assert_eq!(world.balance(ALICE), MAX_BALANCE.minor());
        all_is_settled(&world, &node).await;
    }

    async fn a_booking_whose_wallet_cannot_be_read_is_not_refused_for_good() {
        let (world, node) = shop().await;
        world.db.fail_calls("one", FaultKind::ReadFails, 10_000);
        let refused = node.books(booking(ALICE, "b", -1)).await;
        assert_eq!(refused, Err(NotBooked::Unanswered(Unanswered::Unavailable)));
        world.db.heal();
        node.books(booking(ALICE, "b", -1)).await.unwrap();
        all_is_settled(&world, &node).await;
    }

    async fn a_taking_that_others_forestalled_is_decided_again() {
        let (world, node) = shop().await;
        node.books(booking(ALICE, "warm", 1)).await.unwrap();
        let other = world.start("two").await;
        other.books(booking(ALICE, "elsewhere", -9_000)).await.unwrap();
        assert_eq!(node.books(booking(ALICE, "b", -5_000)).await, Err(NotBooked::Short(build::minor(1_001))));
        all_is_settled(&world, &node).await;
    }
}
