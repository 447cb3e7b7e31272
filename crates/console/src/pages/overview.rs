//! Overview: what needs a decision now. Search.

use vouchsafe_wire::operator::live::SamplePeriod;
use vouchsafe_wire::operator::{
    change_requests, monitoring, orders, payouts, reconciliation, vendors, webhooks,
};

use super::orders::ORDER_COLUMNS;
use super::payouts::PAYOUT_COLUMNS;
use super::requests::REQUEST_COLUMNS;
use super::vendors::{DRIFT_COLUMNS, PURCHASE_COLUMNS};
use super::webhooks::WEBHOOK_COLUMNS;
use crate::page::{
    ApiTarget, Column, List, Object, Page, Section, Source, View, choice, col, filter, labels, target,
};

const fn queue(
    heading: &'static str,
    target: ApiTarget,
    page: &'static str,
    columns: &'static [Column],
    none: &'static str,
) -> Section {
    Section {
        heading,
        source: Source::Api {
            target,
            field: "data",
            page,
        },
        columns,
        row_actions: &[],
        none,
    }
}

const TIME: Column = col("Time", "at");

const SAMPLE_COLUMNS: [Column; 8] = [
    TIME,
    col("Orders/s", "orders_per_s"),
    col("Requests/s", "requests_per_s"),
    col("Order p50 (ms)", "order_p50_ms"),
    col("Order p99 (ms)", "order_p99_ms"),
    col("Answered with 503", "unavailable_share"),
    col("Commit (ms)", "commit_ms"),
    col("Records in flight", "records_in_flight"),
];

const fn chart(heading: &'static str, columns: &'static [Column]) -> Section {
    Section {
        heading,
        source: Source::Chart {
            target: target(monitoring::LIST_SAMPLES).query("period={period}"),
            field: "data",
            is_live: true,
            page: "/samples?period={period}",
        },
        columns,
        row_actions: &[],
        none: "",
    }
}

pub(super) static PAGES: [Page; 3] = [
    Page {
        path: "/",
        title: "Overview",
        view: View::Object(Object {
            none: "",
            api: Some(target(monitoring::GET_OVERVIEW)),
            name: "node",
            facts: &[
                col("Ready", "is_ready"),
                col("Replication of commits", "replication"),
                col("Version", "version"),
                col("Live nodes", "nodes_live"),
                col("Nodes lost with stock", "nodes_lost"),
                col("Orders that wait for a vendor", "orders_at_vendors"),
                col("Orders that wait for approval", "orders_to_approve"),
                col("Open drifts", "drifts_open"),
                col("Failing webhooks", "webhooks_failing"),
            ],
            sections: &[
                Section {
                    heading: "Traffic of the last second",
                    source: Source::Live("sample"),
                    columns: &SAMPLE_COLUMNS,
                    row_actions: &[],
                    none: "",
                },
                Section {
                    heading: "Period",
                    source: Source::Links(&[("10 minutes", "/"), ("6 hours", "/?period=ten_seconds")]),
                    columns: &[],
                    row_actions: &[],
                    none: "",
                },
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
                Section {
                    heading: "Low stock",
                    source: Source::Field("low_stock"),
                    columns: &[
                        col("Product", "product_id"),
                        col("Denomination", "denomination currency"),
                        col("Available", "free"),
                        col("Sold in 7 days", "sold_7d"),
                        col("Days left", "days_left"),
                    ],
                    row_actions: &[],
                    none: "The stock of every SKU lasts for seven days at least.",
                },
                queue(
                    "Requests for a second operator",
                    target(change_requests::LIST_CHANGE_REQUESTS).query("status=WAITING&limit=5"),
                    "/requests?status=WAITING",
                    &REQUEST_COLUMNS,
                    "No change waits for a second operator.",
                ),
                queue(
                    "Orders that wait for approval",
                    target(orders::SEARCH_ORDERS).query("pending_reason=APPROVAL&limit=5"),
                    "/orders?pending_reason=APPROVAL",
                    &ORDER_COLUMNS,
                    "No order waits for approval.",
                ),
                queue(
                    "Payouts to pay",
                    target(payouts::LIST_PAYOUTS).query("status=PENDING&limit=5"),
                    "/payouts?status=PENDING",
                    &PAYOUT_COLUMNS,
                    "No payout waits.",
                ),
                queue(
                    "Failing webhooks",
                    target(webhooks::LIST_WEBHOOKS).query("status=failing&limit=5"),
                    "/webhooks?status=failing",
                    &WEBHOOK_COLUMNS,
                    "No endpoint fails.",
                ),
                queue(
                    "Open drifts",
                    target(reconciliation::LIST_DRIFTS).query("resolution=pending&limit=5"),
                    "/drifts?resolution=pending",
                    &DRIFT_COLUMNS,
                    "No difference to the vendors' records is open.",
                ),
                queue(
                    "Refused purchases",
                    target(vendors::LIST_PURCHASES).query("state=refused&limit=5"),
                    "/purchases?state=refused",
                    &PURCHASE_COLUMNS,
                    "No vendor has refused a purchase.",
                ),
                queue(
                    "Orders that wait for a vendor",
                    target(orders::SEARCH_ORDERS).query("pending_reason=VENDOR&limit=5"),
                    "/orders?pending_reason=VENDOR",
                    &ORDER_COLUMNS,
                    "No order waits for a vendor.",
                ),
            ],
        }),
        actions: &[],
    },
    Page {
        path: "/samples",
        title: "Traffic of this node",
        view: View::List(List {
            api: target(monitoring::LIST_SAMPLES),
            columns: &SAMPLE_COLUMNS,
            filters: &[choice("period", "Interval", labels::<SamplePeriod>)],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/search",
        title: "Search",
        view: View::List(List {
            api: target(monitoring::SEARCH),
            columns: &[
                col("Kind", "kind"),
                col("ID", "id"),
                col("Name", "label"),
                col("Partner", "partner_id"),
                col("Order", "order_id"),
            ],
            filters: &[filter("q", "ID, or reference of an order")],
            row_actions: &[],
            is_complete: false,
            variants: &[],
        }),
        actions: &[],
    },
];
