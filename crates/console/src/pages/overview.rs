//! Overview: what needs a decision now. Search.

use vouchsafe_wire::operator::live::SamplePeriod;
use vouchsafe_wire::operator::{
    change_requests, monitoring, orders, payouts, reconciliation, vendors, webhooks,
};

use super::vendors::DRIFT_COLUMNS;
use crate::page::{
    Column, Decision, FROM, List, Object, Page, Section, Severity, Source, TO, choice, col, filter, labels,
    target,
};

const TIME: Column = col("Time", "at");

const fn sales(heading: &'static str, field: &'static str, columns: &'static [Column]) -> Section {
    Section::new(
        heading,
        Source::Field(field),
        columns,
        "Nothing was sold today or yesterday. Each node adds its sales once a minute.",
    )
}

const ORDERS_TODAY: Column = col("Orders today", "orders_today");
const ORDERS_YESTERDAY: Column = col("Yesterday", "orders_yesterday");
const AMOUNT_TODAY: Column = col("Amount today", "amount_today currency");
const AMOUNT_YESTERDAY: Column = col("Yesterday", "amount_yesterday currency");

const SALES: [Column; 5] = [
    col("Currency", "currency"),
    ORDERS_TODAY,
    ORDERS_YESTERDAY,
    AMOUNT_TODAY,
    AMOUNT_YESTERDAY,
];

const PARTNER_SALES: [Column; 5] = [
    col("Partner", "partner_id"),
    ORDERS_TODAY,
    ORDERS_YESTERDAY,
    AMOUNT_TODAY,
    AMOUNT_YESTERDAY,
];

const PRODUCT_SALES: [Column; 5] = [
    col("Product", "product_id"),
    ORDERS_TODAY,
    ORDERS_YESTERDAY,
    AMOUNT_TODAY,
    AMOUNT_YESTERDAY,
];

/// A chart of this node's traffic, or of all nodes.
const fn chart(heading: &'static str, is_node: bool, columns: &'static [Column]) -> Section {
    let (target, page) = match is_node {
        true => (
            target(monitoring::LIST_SAMPLES).query("period={period}"),
            "/samples?period={period}",
        ),
        false => (
            target(monitoring::LIST_TRAFFIC).query("from={from}&to={to}"),
            "/traffic/table?from={from}&to={to}",
        ),
    };
    let source = Source::Chart {
        target,
        field: "data",
        is_live: is_node,
        page,
        zoom: "/traffic",
    };
    Section::new(heading, source, columns, "")
}

const RATES: [Column; 3] = [
    TIME,
    col("Orders/s", "orders_per_s"),
    col("Requests/s", "requests_per_s"),
];

const LATENCIES: [Column; 4] = [
    TIME,
    col("p50", "order_p50_ms"),
    col("p99", "order_p99_ms"),
    col("Commit", "commit_ms"),
];

const UNAVAILABLE: [Column; 2] = [TIME, col("Share", "unavailable_share")];

const PERIODS: Section = Section::new(
    "Period",
    Source::Links(&[
        ("10 minutes", "/"),
        ("6 hours", "/?period=ten_seconds"),
        ("1 day, all nodes", "/traffic?from=1d"),
        ("7 days", "/traffic?from=7d"),
        ("30 days", "/traffic?from=30d"),
    ]),
    &[],
    "",
);

/// The most severe first.
const DECISIONS: [Decision; 11] = [
    urgent("nodes_lost", "Lost nodes that own stock", "/nodes"),
    urgent("circuits_open", "Open circuits of vendors", "/vendors"),
    urgent(
        "webhooks_gone",
        "Endpoints disabled by a 410",
        "/webhooks?status=disabled",
    ),
    urgent(
        "webhooks_failing",
        "Failing endpoints",
        "/webhooks?status=failing",
    ),
    urgent(
        "exports_behind",
        "Targets that the audit export does not reach",
        "/audit/checkpoints",
    ),
    urgent(
        "low_stock_skus",
        "SKUs with stock for less than seven days",
        "/stock",
    ),
    waiting(
        "requests_to_confirm",
        "Changes that wait for a second operator",
        "/requests?status=WAITING",
    ),
    waiting(
        "orders_to_approve",
        "Orders to approve",
        "/orders?pending_reason=APPROVAL",
    ),
    waiting("payouts_to_decide", "Payouts to pay", "/payouts?status=PENDING"),
    waiting("drifts_open", "Open drifts", "/drifts?resolution=pending"),
    waiting(
        "purchases_to_end",
        "Refused purchases",
        "/purchases?state=refused",
    ),
];

const fn urgent(field: &'static str, label: &'static str, page: &'static str) -> Decision {
    Decision {
        field,
        label,
        page,
        severity: Severity::Urgent,
    }
}

const fn waiting(field: &'static str, label: &'static str, page: &'static str) -> Decision {
    Decision {
        severity: Severity::Waiting,
        ..urgent(field, label, page)
    }
}

pub(super) static PAGES: [Page; 5] = [
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
                col("Orders that wait for a vendor", "orders_at_vendors"),
            ],
            &[
                sales(
                    "Sales by currency, today and yesterday",
                    "sales.by_currency",
                    &SALES,
                ),
                sales("Sales by partner", "sales.by_partner", &PARTNER_SALES),
                sales("Sales by product", "sales.by_product", &PRODUCT_SALES),
                Section::new(
                    "Traffic of the last second",
                    Source::Live("sample"),
                    monitoring::LIST_SAMPLES.route.columns,
                    "",
                ),
                PERIODS,
                chart("Orders and requests per second", true, &RATES),
                chart("Latency of orders in milliseconds", true, &LATENCIES),
                chart("Share of requests answered with 503", true, &UNAVAILABLE),
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
        )
        .decisions(&DECISIONS),
    ),
    Page::list(
        "/samples",
        "Traffic of this node",
        List::of(monitoring::LIST_SAMPLES).filters(&[choice("period", "Interval", labels::<SamplePeriod>)]),
    ),
    Page::object(
        "/traffic",
        "Traffic of all nodes",
        Object::of_sections(&[
            PERIODS,
            chart("Orders and requests per second", false, &RATES),
            chart("Latency of orders in the slowest minute (ms)", false, &LATENCIES),
            chart("Share of requests answered with 503", false, &UNAVAILABLE),
        ]),
    ),
    Page::list(
        "/traffic/table",
        "Traffic of all nodes",
        List::of(monitoring::LIST_TRAFFIC).filters(&[FROM, TO]),
    ),
    Page::list(
        "/search",
        "Search",
        List::of(monitoring::SEARCH)
            .filters(&[filter("q", "ID, name, or reference or trace ID of an order")])
            .search(),
    ),
];
