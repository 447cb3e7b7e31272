//! Outcomes of new orders: delivered, waiting for the vendor, waiting for approval, rejected.

use std::collections::BTreeMap;

use vouchsafe_actors::flows::PlaceOrderError;
use vouchsafe_domain::approval::{ApprovalRule, OtherCurrencies};
use vouchsafe_domain::catalogue::{PricingError, PricingFailure};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::{OrderStatus, PendingReason};
use vouchsafe_simulation::build;
use vouchsafe_simulation::walk::{OrderReply, OrderRequest};

use crate::fixture::{ALICE, assert_settled, gift, order_request, setup};
use crate::simulation_tests;

simulation_tests! {
    async fn order_in_stock_is_delivered(sim, node) {
        sim.import(&gift(), &[1, 2, 3]);
        let reply = node.place_order(&order_request(ALICE, "k", "gift", 2)).await;
        assert!(reply.expect_new().starts_with("DELIVERED ord_"), "{}", reply.describe());
        assert_eq!(reply.response().unwrap().status, 201);
        let [order] = &sim.db.orders()[..] else { panic!() };
        assert!(reply.expect_new().contains(&order.order_id.to_string()));
        assert_eq!((order.status, order.vouchers.len()), (OrderStatus::Delivered, 2));
        assert_eq!((sim.balance(ALICE), sim.db.free_vouchers(&gift()).len()), (8_000, 1));
    }

    async fn order_with_several_lines_gets_vouchers_per_line(sim, node) {
        let gift_25 = build::sku("gift", 2_500);
        sim.import(&gift(), &[1, 2, 3]);
        sim.import(&gift_25, &[4]);
        let request = OrderRequest::new(ALICE, "k", &[("gift", "10.00", 1), ("gift", "25.00", 1), ("gift", "10.00", 2)]);
        node.place_order(&request).await.expect_new();
        let [order] = &sim.db.orders()[..] else { panic!() };
        let skus: Vec<_> = order.vouchers.iter().map(|v| v.sku.clone()).collect();
        assert_eq!(skus, [gift(), gift_25, gift(), gift()]);
        assert_eq!(order.lines.iter().map(|line| line.delivered).collect::<Vec<_>>(), [1, 1, 2]);
        assert_eq!(sim.balance(ALICE), 10_000 - 5_500);
    }

    async fn order_short_of_stock_is_debited_and_waits_for_vendor() {
        let (sim, node) = setup().await;
        let bought = build::sku("bought", 1_000);
        sim.import(&bought, &[1]);
        let reply = node.place_order(&order_request(ALICE, "k", "bought", 2)).await;
        assert!(reply.expect_new().starts_with("PENDINGVENDOR ord_"), "{}", reply.describe());
        let [order] = &sim.db.orders()[..] else { panic!() };
        assert_eq!(order.pending_reason, Some(PendingReason::Vendor));
        assert!(order.vouchers.is_empty() && sim.db.free_vouchers(&bought).len() == 1, "nothing is allocated");
        let pending = sim.db.wallet(build::usd_wallet(ALICE)).unwrap().pending_orders;
        assert_eq!((sim.balance(ALICE), pending), (8_000, Amount::from_minor(2_000)));
        assert_settled(&sim, &node).await;
        assert!(node.place_order(&order_request(ALICE, "k2", "bought", 1)).await.expect_new().starts_with("DELIVERED"));
    }

    async fn order_with_one_line_to_buy_allocates_nothing() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1]);
        let request = OrderRequest::new(ALICE, "k", &[("gift", "10.00", 1), ("bought", "10.00", 1)]);
        assert!(node.place_order(&request).await.expect_new().starts_with("PENDINGVENDOR"));
        assert_eq!(sim.db.free_vouchers(&gift()).len(), 1);
        assert_settled(&sim, &node).await;
        assert!(node.place_order(&order_request(ALICE, "k2", "gift", 1)).await.expect_new().starts_with("DELIVERED"));
    }

    async fn product_needing_approval_waits_regardless_of_stock(sim, node) {
        let checked = build::sku("checked", 1_000);
        sim.import(&checked, &[1]);
        for (key, quantity) in [("in stock", 1), ("short", 2)] {
            let reply = node.place_order(&order_request(ALICE, key, "checked", quantity)).await;
            assert!(reply.expect_new().starts_with("PENDINGAPPROVAL"), "{key}: {}", reply.describe());
        }
        assert_eq!((sim.balance(ALICE), sim.db.free_vouchers(&checked).len()), (7_000, 1));
    }

    async fn partner_approval_rule_decides_which_orders_wait() {
        let usd = |minor| BTreeMap::from([(build::usd(), build::minor(minor))]);
        let rule = |amount_over, first_orders| ApprovalRule {
            amount_over,
            first_orders,
            other_currencies: OtherCurrencies::NoApproval,
        };
        let other = ApprovalRule {
            other_currencies: OtherCurrencies::RequireApproval,
            ..ApprovalRule::default()
        };
        let table = [
            ("at the threshold", rule(usd(2_000), 0), 0, "gift", "DELIVERED"),
            ("above it", rule(usd(1_999), 0), 0, "gift", "PENDINGAPPROVAL"),
            ("above it, and short", rule(usd(1_999), 0), 0, "bought", "PENDINGAPPROVAL"),
            ("no threshold", other, 0, "gift", "PENDINGAPPROVAL"),
            ("second of two", rule(usd(9_999), 2), 1, "gift", "PENDINGAPPROVAL"),
            ("the third", rule(usd(9_999), 2), 2, "gift", "DELIVERED"),
            ("always", rule(usd(9_999), 0), 0, "checked", "PENDINGAPPROVAL"),
        ];
        for (name, rule, earlier_orders, product, expected) in table {
            let (sim, node) = setup().await;
            sim.import(&gift(), &[1; 6]);
            for number in 0..earlier_orders {
                node.place_order(&order_request(ALICE, &format!("earlier {number}"), "gift", 1)).await.expect_new();
            }
            let reply = node.place_order(&order_request(ALICE, "k", product, 2).with_approval_rule(rule)).await;
            assert!(reply.expect_new().starts_with(expected), "{name}: {}", reply.describe());
            assert_eq!(sim.balance(ALICE), 8_000 - 1_000 * i64::from(earlier_orders), "{name}");
            let sold = earlier_orders + u32::from(expected == "DELIVERED") * 2;
            assert_eq!(sim.db.free_vouchers(&gift()).len(), 6 - sold as usize, "{name}");
            assert_settled(&sim, &node).await;
        }
    }

    async fn order_out_of_stock_is_rejected_before_approval(sim, node) {
        let rule = ApprovalRule {
            first_orders: 1,
            ..ApprovalRule::default()
        };
        let reply = node.place_order(&order_request(ALICE, "k", "gift", 1).with_approval_rule(rule)).await;
        assert_eq!(reply.expect_new(), "INSUFFICIENT_INVENTORY gift/1000 1 of 0");
    }

    async fn unpriced_order_is_rejected_and_not_stored(sim, node) {
        let table = [
            ("nothing", PricingError::ProductNotFound("nothing".to_owned())),
            ("old", PricingError::Discontinued("old".parse().unwrap())),
        ];
        for (product, reason) in table {
            let request = order_request(ALICE, product, product, 1);
            let failure = PricingFailure { lines: vec![(0, reason.clone())], first: reason };
            assert_eq!(node.place_order(&request).await, OrderReply::Rejected(PlaceOrderError::Pricing(failure)));
            assert_eq!(sim.db.stored_key(request.key_hash()), None);
        }
    }
}
