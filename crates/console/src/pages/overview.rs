//! Overview: what needs a decision now. Search.

use vouchsafe_wire::operator::live::SamplePeriod;
use vouchsafe_wire::operator::{
    change_requests, monitoring, orders, payouts, reconciliation, vendors, webhooks,
};

use super::vendors::DRIFT_COLUMNS;
use crate::page::{Column, List, Object, Page, Section, Source, choice, col, filter, labels, target};

const TIME: Column = col("Time", "at");

const fn chart(heading: &'static str, columns: &'static [Column]) -> Section {
    Section::new(
        heading,
        Source::Chart {
            target: target(monitoring::LIST_SAMPLES).query("period={period}"),
            field: "data",
            is_live: true,
            page: "/samples?period={period}",
        },
        columns,
        "",
    )
}

pub(super) static PAGES: [Page; 3] = [
    Page::object(
        "/",
        "Overview",
        Object::of(
            monitoring::GET_OVERVIEW,
            "node",
            &[
                col("Ready", "is_ready"),
                col("Replication of commits", "replication"),
                col("Lists are behind by (s)", "replica_lag_s"),
                col("Version", "version"),
                col("Live nodes", "nodes_live"),
                col("Nodes lost with stock", "nodes_lost"),
                col("Orders that wait for a vendor", "orders_at_vendors"),
                col("Orders that wait for approval", "orders_to_approve"),
                col("Open drifts", "drifts_open"),
                col("Failing webhooks", "webhooks_failing"),
            ],
            &[
                Section::new(
                    "Traffic of the last second",
                    Source::Live("sample"),
                    monitoring::LIST_SAMPLES.route.columns,
                    "",
                ),
                Section::new(
                    "Period",
                    Source::Links(&[("10 minutes", "/"), ("6 hours", "/?period=ten_seconds")]),
                    &[],
                    "",
                ),
                chart(
                    "Orders and requests per second",
                    &[
                        TIME,
                        col("Orders/s", "orders_per_s"),
                        col("Requests/s", "requests_per_s"),
                    ],
                ),
                chart(
                    "Latency of orders in milliseconds",
                    &[
                        TIME,
                        col("p50", "order_p50_ms"),
                        col("p99", "order_p99_ms"),
                        col("Commit", "commit_ms"),
                    ],
                ),
                chart(
                    "Share of requests answered with 503",
                    &[TIME, col("Share", "unavailable_share")],
                ),
                Section::new(
                    "Low stock",
                    Source::Field("low_stock"),
                    monitoring::GET_OVERVIEW.route.columns,
                    "The stock of every SKU lasts for seven days at least.",
                ),
                Section::list(
                    "Requests for a second operator",
                    target(change_requests::LIST_CHANGE_REQUESTS).query("status=WAITING&limit=5"),
                    "/requests?status=WAITING",
                    "No change waits for a second operator.",
                ),
                Section::list(
                    "Orders that wait for approval",
                    target(orders::SEARCH_ORDERS).query("pending_reason=APPROVAL&limit=5"),
                    "/orders?pending_reason=APPROVAL",
                    "No order waits for approval.",
                ),
                Section::list(
                    "Payouts to pay",
                    target(payouts::LIST_PAYOUTS).query("status=PENDING&limit=5"),
                    "/payouts?status=PENDING",
                    "No payout waits.",
                ),
                Section::list(
                    "Failing webhooks",
                    target(webhooks::LIST_WEBHOOKS).query("status=failing&limit=5"),
                    "/webhooks?status=failing",
                    "No endpoint fails.",
                ),
                Section::list(
                    "Open drifts",
                    target(reconciliation::LIST_DRIFTS).query("resolution=pending&limit=5"),
                    "/drifts?resolution=pending",
                    "No difference to the vendors' records is open.",
                )
                .columns(&DRIFT_COLUMNS),
                Section::list(
                    "Refused purchases",
                    target(vendors::LIST_PURCHASES).query("state=refused&limit=5"),
                    "/purchases?state=refused",
                    "No vendor has refused a purchase.",
                ),
                Section::list(
                    "Orders that wait for a vendor",
                    target(orders::SEARCH_ORDERS).query("pending_reason=VENDOR&limit=5"),
                    "/orders?pending_reason=VENDOR",
                    "No order waits for a vendor.",
                ),
            ],
        ),
    ),
    Page::list(
        "/samples",
        "Traffic of this node",
        List::of(monitoring::LIST_SAMPLES).filters(&[choice("period", "Interval", labels::<SamplePeriod>)]),
    ),
    Page::list(
        "/search",
        "Search",
        List::of(monitoring::SEARCH)
            .filters(&[filter("q", "ID, or reference of an order")])
            .search(),
    ),
];
