//! Plans of order lists: each filter is carried by an index, or bounded by a period.

use time::Duration;
use vouchsafe_domain::comma_list::CommaList;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::OrderStatus;
use vouchsafe_domain::order::filter::{OrderFilter, OrderSearch};
use vouchsafe_domain::period::Period;

use super::filled::{ListFixture, day, first_day, partner};

pub(super) async fn check_orders(lists: &ListFixture) {
    let any = OrderFilter::default;
    let in_status = |status| OrderFilter {
        status: Some(CommaList::from(status)),
        ..any()
    };
    let in_statuses = |text: &str| OrderFilter {
        status: serde_json::from_value(text.into()).ok(),
        ..any()
    };
    let with_closed = |closed| OrderFilter {
        closed: Some(closed),
        ..any()
    };
    let with_metadata = OrderFilter {
        metadata: "campaign:spring".parse().ok(),
        period: Period {
            from: day(0),
            to: day(0).map(|at| at + Duration::hours(6)),
        },
        ..any()
    };
    let with_reference = |reference: &str, filter| OrderFilter {
        reference: Some(reference.to_owned()),
        ..filter
    };
    let of_a_day = |filter| OrderFilter {
        period: first_day(),
        ..filter
    };
    let pending = || in_status(OrderStatus::Pending);
    // A count reads as many orders as it counts, although each partner has more.
    let of_all_partners = OrderSearch::default();
    let counted = lists.store.orders.count(of_all_partners, 1_001);
    let (counted, rows) = lists.count_rows_read(async { Ok(vec![counted.await?]) }).await;
    assert_eq!(counted, [1_001]);
    assert!(rows < 10_000.0, "read {rows} rows for a count");
    for (description, filter, count, all_partners) in [
        ("all", any(), 26, 26),
        ("a day", of_a_day(any()), 26, 26),
        ("delivered", in_status(OrderStatus::Delivered), 26, 26),
        ("pending", pending(), 26, 26),
        ("pending of a day", of_a_day(pending()), 26, 26),
        ("processing", in_status(OrderStatus::Processing), 0, 0),
        ("a reference", with_reference("po-1", any()), 1, 3),
        (
            "a reference and a status",
            with_reference("po-1", pending()),
            0,
            0,
        ),
        ("no such reference", with_reference("x", any()), 0, 0),
        ("pending and refunded", in_statuses("PENDING,REFUNDED"), 26, 26),
        (
            "delivered and refunded",
            in_statuses("DELIVERED,REFUNDED"),
            26,
            26,
        ),
        (
            "processing and cancelled",
            in_statuses("PROCESSING,CANCELLED"),
            0,
            0,
        ),
        ("open", with_closed(false), 26, 26),
        ("closed", with_closed(true), 26, 26),
        ("a key of metadata in six hours", with_metadata, 0, 0),
    ] {
        for before in [None, day(99).map(OrderId::lower_bound_at)] {
            let description = format!("orders: {description}, before {before:?}");
            let own = OrderSearch {
                partner_id: Some(partner(1)),
                filter: filter.clone(),
                ..OrderSearch::default()
            };
            let read = lists.store.orders.search(own, before, 26);
            lists.assert_reads_few_rows(&description, count, read).await;
            let all = OrderSearch {
                filter: filter.clone(),
                ..OrderSearch::default()
            };
            let read = lists.store.orders.search(all, before, 26);
            let description = format!("all partners' {description}");
            lists
                .assert_reads_few_rows(&description, all_partners, read)
                .await;
        }
    }
}

/// Orders placed since then come first; the page goes on with older ones that changed.
pub(super) async fn check_updated_orders(lists: &ListFixture) {
    let search = |status: Option<OrderStatus>| OrderSearch {
        partner_id: Some(partner(1)),
        filter: OrderFilter {
            updated_from: day(99),
            status: status.map(CommaList::from),
            ..OrderFilter::default()
        },
        ..OrderSearch::default()
    };
    let since = day(99).map(OrderId::lower_bound_at);
    for (description, status, before, count) in [
        ("updated", None, None, 26),
        ("updated, placed before", None, since, 26),
        ("updated and refunded", Some(OrderStatus::Refunded), None, 26),
        ("updated and processing", Some(OrderStatus::Processing), None, 0),
    ] {
        let read = lists.store.orders.search(search(status), before, 26);
        lists.assert_reads_few_rows(description, count, read).await;
    }
    let (placed, total) = (1_000, 1_100);
    let all = lists
        .store
        .orders
        .search(search(None), None, 2_000)
        .await
        .unwrap();
    let old = all.iter().filter(|order| Some(order.order_id) < since).count();
    assert!(
        (placed..total + 10).contains(&all.len()) && (90..110).contains(&old),
        "{} {old}",
        all.len()
    );
}
