//! What an order becomes: delivered at once, waiting for the vendor, waiting for approval.

use std::collections::BTreeMap;

use vouchsafe_actors::domain::approval::{ApprovalRule, OtherCurrencies};
use vouchsafe_actors::domain::catalogue::Unpriced;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::{OrderStatus, PendingReason};
use vouchsafe_actors::flows::NotPlaced;
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::world::{Ask, Heard};

use crate::in_a_world;
use crate::shop::{ALICE, all_is_settled, gift, shop, wants};

in_a_world! {
    async fn what_is_in_stock_is_delivered_at_once() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1, 2, 3]);
        let heard = node.places(&wants(ALICE, "k", "gift", 2)).await;
        assert!(heard.fresh().starts_with("DELIVERED ord_"), "{}", heard.in_words());
        assert_eq!(heard.answer().unwrap().status, 201);
        let [order] = &world.db.orders()[..] else { panic!() };
        assert!(heard.fresh().contains(&order.order_id.to_string()));
        assert_eq!((order.status, order.vouchers.len()), (OrderStatus::Delivered, 2));
        assert_eq!((world.balance(ALICE), world.db.free(&gift()).len()), (8_000, 1));
        all_is_settled(&world, &node).await;
    }

    async fn lines_of_several_products_and_one_product_twice_get_their_own_vouchers() {
        let (world, node) = shop().await;
        let gift_25 = build::sku("gift", 2_500);
        world.import(&gift(), &[1, 2, 3]);
        world.import(&gift_25, &[4]);
        let ask = Ask::new(ALICE, "k", &[("gift", "10.00", 1), ("gift", "25.00", 1), ("gift", "10.00", 2)]);
        node.places(&ask).await.fresh();
        let [order] = &world.db.orders()[..] else { panic!() };
        let skus: Vec<_> = order.vouchers.iter().map(|v| v.sku.clone()).collect();
        assert_eq!(skus, [gift(), gift_25, gift(), gift()]);
        assert_eq!(order.lines.iter().map(|line| line.delivered).collect::<Vec<_>>(), [1, 1, 2]);
        assert_eq!(world.balance(ALICE), 10_000 - 5_500);
        all_is_settled(&world, &node).await;
    }

    async fn what_the_vendor_has_is_paid_and_waited_for() {
        let (world, node) = shop().await;
        let bought = build::sku("bought", 1_000);
        world.import(&bought, &[1]);
        let heard = node.places(&wants(ALICE, "k", "bought", 2)).await;
        assert!(heard.fresh().starts_with("PENDINGVENDOR ord_"), "{}", heard.in_words());
        let [order] = &world.db.orders()[..] else { panic!() };
        assert_eq!(order.pending_reason, Some(PendingReason::Vendor));
        assert!(order.vouchers.is_empty() && world.db.free(&bought).len() == 1, "nothing is allocated");
        let pending = world.db.pending_orders(build::usd_of(ALICE));
        assert_eq!((world.balance(ALICE), pending), (8_000, Amount::from_minor(2_000)));
        all_is_settled(&world, &node).await;
        assert!(node.places(&wants(ALICE, "k2", "bought", 1)).await.fresh().starts_with("DELIVERED"));
    }

    async fn a_basket_of_which_one_thing_must_be_bought_allocates_nothing() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1]);
        let ask = Ask::new(ALICE, "k", &[("gift", "10.00", 1), ("bought", "10.00", 1)]);
        assert!(node.places(&ask).await.fresh().starts_with("PENDINGVENDOR"));
        assert_eq!(world.db.free(&gift()).len(), 1);
        all_is_settled(&world, &node).await;
        assert!(node.places(&wants(ALICE, "k2", "gift", 1)).await.fresh().starts_with("DELIVERED"));
    }

    async fn what_must_be_approved_waits_whether_it_is_in_stock_or_not() {
        let (world, node) = shop().await;
        let checked = build::sku("checked", 1_000);
        world.import(&checked, &[1]);
        for (key, quantity) in [("in stock", 1), ("short", 2)] {
            let heard = node.places(&wants(ALICE, key, "checked", quantity)).await;
            assert!(heard.fresh().starts_with("PENDINGAPPROVAL"), "{key}: {}", heard.in_words());
        }
        assert_eq!((world.balance(ALICE), world.db.free(&checked).len()), (7_000, 1));
        all_is_settled(&world, &node).await;
    }

    async fn what_was_agreed_with_the_partner_waits_for_approval() {
        let usd = |minor| BTreeMap::from([(build::usd(), build::minor(minor))]);
        let rule = |amount_over, first_orders| ApprovalRule {
            amount_over,
            first_orders,
            other_currencies: OtherCurrencies::Pass,
        };
        let other = ApprovalRule {
            other_currencies: OtherCurrencies::Approve,
            ..ApprovalRule::default()
        };
        let table = [
            ("at the threshold", rule(usd(2_000), 0), None, "gift", "DELIVERED"),
            ("above it", rule(usd(1_999), 0), None, "gift", "PENDINGAPPROVAL"),
            ("above it, and short", rule(usd(1_999), 0), None, "bought", "PENDINGAPPROVAL"),
            ("no threshold", other, None, "gift", "PENDINGAPPROVAL"),
            ("the second of two", rule(usd(9_999), 2), Some(1), "gift", "PENDINGAPPROVAL"),
            ("the third", rule(usd(9_999), 2), Some(2), "gift", "DELIVERED"),
            ("always", rule(usd(9_999), 0), None, "checked", "PENDINGAPPROVAL"),
        ];
        for (name, rule, earlier_orders, product, expected) in table {
            let (world, node) = shop().await;
            world.import(&gift(), &[1; 4]);
            let heard = node.places(&wants(ALICE, "k", product, 2).under(rule, earlier_orders)).await;
            assert!(heard.fresh().starts_with(expected), "{name}: {}", heard.in_words());
            assert_eq!(world.balance(ALICE), 8_000, "{name}");
            let sold = usize::from(expected == "DELIVERED") * 2;
            assert_eq!(world.db.free(&gift()).len(), 4 - sold, "{name}");
            all_is_settled(&world, &node).await;
        }
    }

    async fn stock_is_checked_before_an_order_waits_for_approval() {
        let (world, node) = shop().await;
        let rule = ApprovalRule {
            first_orders: 1,
            ..ApprovalRule::default()
        };
        let heard = node.places(&wants(ALICE, "k", "gift", 1).under(rule, None)).await;
        assert_eq!(heard.fresh(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
        all_is_settled(&world, &node).await;
    }

    async fn what_has_no_price_is_refused_and_nothing_is_kept() {
        let (world, node) = shop().await;
        let table = [
            ("nothing", Unpriced::ProductNotFound("nothing".to_owned())),
            ("old", Unpriced::Discontinued("old".parse().unwrap())),
        ];
        for (product, reason) in table {
            let ask = wants(ALICE, product, product, 1);
            assert_eq!(node.places(&ask).await, Heard::Nothing(NotPlaced::Unpriced(reason)));
            assert_eq!(world.db.kept(ask.key_hash()), None);
        }
        all_is_settled(&world, &node).await;
    }
}
