//! Conformance cases: caps of partners that the commit verifies.

use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_domain::cap::{CapCheck, CapCounter};
use vouchsafe_domain::ids::{CredentialId, PartnerId};

use super::fixture::{
    Fixture, INITIAL_BALANCE, PRICE, STALE_BALANCE, STALE_CAP, assert_committed, wallet_state,
};
use super::subject::Subject;
use crate::build::{self, NOW};

/// Window of the order rates. The IDs of the orders are from another time: the clock of the store decides.
const DAY_S: u32 = 86_400;

impl<S: Subject> Fixture<'_, S> {
    async fn cap_usage(&self, partner_id: PartnerId, counter: &CapCounter) -> i64 {
        self.cap_usage_up_to(partner_id, counter, None).await
    }

    async fn cap_usage_up_to(&self, partner_id: PartnerId, counter: &CapCounter, cap: Option<i64>) -> i64 {
        let check = CapCheck {
            counter: counter.clone(),
            added: 1,
            cap,
        };
        self.store.cap_usage(partner_id, vec![check]).await.unwrap()[0]
    }

    pub(super) async fn count_pending_orders(&self) -> i64 {
        self.cap_usage(self.partner, &CapCounter::PendingOrders).await
    }
}

/// The spend of the day of the tests, in USD.
fn spend(added: i64, cap: i64) -> CapCheck {
    CapCheck {
        counter: CapCounter::Spend(NOW.date(), build::usd(), None),
        added,
        cap: Some(cap),
    }
}

fn within(caps: Vec<CapCheck>, record: Record) -> Record {
    Record { caps, ..record }
}

/// The commit verifies every cap with what was committed before, and counts what a record adds to the caps of
/// its day.
pub async fn record_beyond_a_cap_is_stale<S: Subject>(mut fixture: Fixture<'_, S>) {
    let day = NOW.date();
    let credential_id = CredentialId::generate();
    for (name, counter) in [
        ("pending orders", CapCounter::PendingOrders),
        ("pending amount", CapCounter::PendingAmount(build::usd())),
        ("recent orders", CapCounter::RecentOrders(DAY_S)),
        ("recent amount", CapCounter::RecentAmount(DAY_S, build::usd())),
        ("cancellations", CapCounter::Cancellations(day)),
        ("spend", CapCounter::Spend(day, build::usd(), None)),
        (
            "spend of a credential",
            CapCounter::Spend(day, build::usd(), Some(credential_id)),
        ),
    ] {
        let is_amount = counter.columns().currency.is_some();
        let added = if is_amount { 100 } else { 1 };
        let used = fixture.cap_usage(fixture.partner, &counter).await;
        let order = |of: &str, room: i64| {
            let check = CapCheck {
                counter: counter.clone(),
                added,
                cap: Some(used + room),
            };
            Record {
                caps: vec![check],
                ..build::pending_order(fixture.partner, &format!("{name} {of}"), 100)
            }
        };
        let (fits, beyond) = (order("fits", added), order("beyond", added));
        fixture.must_commit(&fits).await;
        fixture.assert_rejected(&beyond, STALE_CAP).await;
        let after = fixture.cap_usage(fixture.partner, &counter).await;
        assert_eq!(after, used + added, "{name}");
        let of_other_partner = fixture.cap_usage(build::partner(2), &counter).await;
        assert_eq!(of_other_partner, 0, "{name}");
    }
}

/// Records of one batch do not exceed a cap together. One that is stale for its cap leaves the others
/// unchanged.
pub async fn caps_apply_within_batch<S: Subject>(mut fixture: Fixture<'_, S>) {
    let capped = |name: &str| {
        let check = CapCheck {
            counter: CapCounter::Spend(NOW.date(), build::usd(), None),
            added: 100,
            cap: Some(250),
        };
        Record {
            caps: vec![check],
            ..build::pending_order(fixture.partner, name, 100)
        }
    };
    let batch = [
        capped("a"),
        capped("b"),
        capped("c"),
        build::pending_order(fixture.partner, "uncapped", 100),
    ];
    let verdicts = fixture.commit(&batch).await;
    let committed: Vec<_> = verdicts
        .iter()
        .map(|verdict| matches!(verdict, Verdict::Committed(_)))
        .collect();
    assert_eq!(committed, [true, true, false, true], "{verdicts:?}");
    assert_eq!(verdicts[2], STALE_CAP);
    fixture.assert_absent(&batch[2]).await;
    let wallet = wallet_state(4, INITIAL_BALANCE - 300);
    assert_eq!(fixture.wallet_state().await, Some(wallet));
}

/// A record that is stale for its balance, or for the second of its caps, counts neither for caps nor for the
/// balance of those after it.
pub async fn stale_record_does_not_count_within_batch<S: Subject>(mut fixture: Fixture<'_, S>) {
    let order = |name: &str, amount: i64, caps: Vec<CapCheck>| {
        within(caps, build::pending_order(fixture.partner, name, amount))
    };
    let cancellation = CapCheck {
        counter: CapCounter::Cancellations(NOW.date()),
        added: 1,
        cap: Some(0),
    };
    let batch = [
        order("uncovered", INITIAL_BALANCE + 1, vec![spend(100, 100)]),
        order("second cap", INITIAL_BALANCE, vec![spend(100, 100), cancellation]),
        order("fits", INITIAL_BALANCE, vec![spend(100, 100)]),
    ];
    let verdicts = fixture.commit(&batch).await;
    let fits = Verdict::Committed(Some(wallet_state(2, 0)));
    assert_eq!(verdicts, [STALE_BALANCE, STALE_CAP, fits]);
    let counter = spend(0, 0).counter;
    assert_eq!(fixture.cap_usage(fixture.partner, &counter).await, 100);
}

/// A delivered order beyond a cap gives its vouchers back: the next order has them.
pub async fn vouchers_of_order_beyond_a_cap_are_free<S: Subject>(mut fixture: Fixture<'_, S>) {
    let gifts = fixture.add_stock(2).await;
    let beyond = within(vec![spend(2, 1)], fixture.delivered_order("beyond", &gifts));
    fixture.assert_rejected(&beyond, STALE_CAP).await;
    assert_eq!(fixture.subject.allocations().await, []);
    let fits = within(vec![spend(1, 1)], fixture.delivered_order("fits", &gifts));
    assert_committed(&fixture.commit(&[fits]).await);
    assert_eq!(fixture.balance().await, INITIAL_BALANCE - 2 * PRICE);
}

/// Pending orders are counted up to one more than the cap, however many there are.
pub async fn pending_orders_are_counted_up_to_the_cap<S: Subject>(mut fixture: Fixture<'_, S>) {
    for name in ["a", "b", "c"] {
        fixture.must_commit(&fixture.pending_order(name, 1)).await;
    }
    let counter = CapCounter::PendingOrders;
    for (cap, expected) in [(Some(0), 1), (Some(1), 2), (Some(9), 3), (None, 3)] {
        let used = fixture.cap_usage_up_to(fixture.partner, &counter, cap).await;
        assert_eq!(used, expected, "{cap:?}");
    }
}

/// An order rate counts every order of its window: also those of commits without caps, before, between and
/// after those with it.
pub async fn order_rate_counts_orders_of_commits_without_caps<S: Subject>(mut fixture: Fixture<'_, S>) {
    let counters = [
        CapCounter::RecentOrders(DAY_S),
        CapCounter::RecentAmount(DAY_S, build::usd()),
    ];
    let checks = |cap: i64| {
        let checks = counters.iter().map(|counter| CapCheck {
            counter: counter.clone(),
            added: if counter.columns().currency.is_some() {
                10
            } else {
                1
            },
            cap: Some(cap),
        });
        checks.collect::<Vec<_>>()
    };
    let mut placed = 0;
    for name in ["a", "b", "c"] {
        fixture
            .must_commit(&build::pending_order(fixture.partner, name, 10))
            .await;
        let rated = build::pending_order(fixture.partner, &format!("rated {name}"), 10);
        fixture.must_commit(&within(checks(1_000), rated)).await;
        fixture
            .must_commit(&build::pending_order(
                fixture.partner,
                &format!("after {name}"),
                10,
            ))
            .await;
        placed += 3;
        for (counter, each) in counters.iter().zip([1, 10]) {
            let used = fixture.cap_usage(fixture.partner, counter).await;
            assert_eq!(used, placed * each, "{counter:?}");
        }
        let beyond = build::pending_order(fixture.partner, &format!("beyond {name}"), 10);
        fixture
            .assert_rejected(&within(checks(placed * 10), beyond), STALE_CAP)
            .await;
    }
}
