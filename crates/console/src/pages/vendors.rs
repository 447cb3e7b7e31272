//! Vendors: terms, circuit breaker, purchases; reconciliation and drifts.

use vouchsafe_domain::purchase::view::PurchaseState;
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::DriftResolution;
use vouchsafe_domain::vendor::AdapterKind;
use vouchsafe_wire::operator::{reconciliation, vendors};

use super::audit_of;
use crate::page::{
    Action, Column, Input, InputKind, List, Object, Page, REASON, Section, Source, View, choice, col, filter,
    labels, link, target,
};

pub(super) const PURCHASE_COLUMNS: [Column; 8] = [
    col("Purchase", "purchase_id"),
    col("Order", "order_id"),
    col("Vendor", "vendor"),
    col("Product", "product_id"),
    col("Quantity", "quantity"),
    col("State", "state"),
    col("Last response", "last_response"),
    col("Requested", "requested_at"),
];

pub(super) const DRIFT_COLUMNS: [Column; 7] = [
    col("Drift", "drift_id"),
    link("Day", "date", "/reconciliation/{date}"),
    col("Vendor", "vendor"),
    col("Kind", "kind"),
    col("Order", "order_id"),
    col("Differences", "differences"),
    col("Resolution", "resolution"),
];

fn resolutions() -> Vec<&'static str> {
    vec![
        DriftResolution::Resolved.into(),
        DriftResolution::Escalated.into(),
    ]
}

const PURCHASES: Section = Section {
    heading: "Purchases",
    source: Source::Api {
        target: target(vendors::LIST_PURCHASES).query("vendor={vendor_id}&limit=10"),
        field: "data",
        page: "/purchases?vendor={vendor_id}",
    },
    columns: &PURCHASE_COLUMNS,
    row_actions: &[],
    none: "Nothing was bought.",
};

const OPEN_DRIFTS: Section = Section {
    heading: "Open drifts",
    source: Source::Api {
        target: target(reconciliation::LIST_DRIFTS).query("vendor={vendor_id}&resolution=pending&limit=10"),
        field: "data",
        page: "/drifts?vendor={vendor_id}",
    },
    columns: &DRIFT_COLUMNS,
    row_actions: &[],
    none: "No difference is open.",
};

/// The settings of a vendor. A change replaces all of them, so the form begins with the current ones.
const VENDOR: [Input; 4] = [
    Input::new("adapter", "Adapter", InputKind::Choice(labels::<AdapterKind>)).prefilled(),
    Input::line("url", "URL")
        .optional()
        .prefilled()
        .hint("For http only."),
    Input::new("credentials", "Credential", InputKind::Secret)
        .optional()
        .hint("Empty: the stored one stays, unless the URL changes."),
    Input::new("concurrency", "Purchases at once", InputKind::Number)
        .optional()
        .prefilled(),
];

pub(super) static PAGES: [Page; 7] = [
    Page {
        path: "/vendors",
        title: "Vendors",
        view: View::List(List {
            api: target(vendors::LIST_VENDORS),
            columns: &[
                col("Vendor", "vendor_id"),
                col("Adapter", "adapter"),
                col("Circuit", "circuit.state"),
                col("URL", "url"),
                col("Purchases at once", "concurrency"),
                col("Changed", "updated_at"),
            ],
            filters: &[],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[Action::new("create",
            "Create a vendor", vendors::PUT_VENDOR)
        .inputs(&[
            Input::line("vendor_id", "Vendor ID").hint("Of a-z, 0-9, '-', '_' and '.'. It cannot be changed."),
            VENDOR[0],
            VENDOR[1],
            VENDOR[2],
            VENDOR[3],
        ])
        .done("The vendor was created.")],
    },
    Page {
        path: "/vendors/{vendor_id}",
        title: "Vendor",
        view: View::Object(Object {
            none: "",
            api: Some(target(vendors::GET_VENDOR)),
            name: "vendor_id",
            facts: &[
                col("Adapter", "adapter"),
                col("URL", "url"),
                col("Has a credential", "has_credentials"),
                col("Purchases at once", "concurrency"),
                col("Circuit of the node that responded", "circuit"),
                col("Changed", "updated_at"),
            ],
            sections: &[
                PURCHASES,
                OPEN_DRIFTS,
                audit_of("subject={vendor_id}&limit=10",
                    "/audit?subject={vendor_id}",
                ),
            ],
        }),
        actions: &[Action::new("change",
            "Change", vendors::PUT_VENDOR)
        .inputs(&VENDOR)
        .done("The vendor was changed. It applies to the next call.")],
    },
    Page {
        path: "/purchases",
        title: "Purchases",
        view: View::List(List {
            api: target(vendors::LIST_PURCHASES),
            columns: &PURCHASE_COLUMNS,
            filters: &[
                filter("vendor", "Vendor ID"),
                filter("order_id", "Order ID"),
                choice("state", "State", labels::<PurchaseState>),
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/purchases/{purchase_id}",
        title: "Purchase",
        view: View::Object(Object {
            none: "",
            api: Some(target(vendors::GET_PURCHASE)),
            name: "purchase_id",
            facts: &[
                col("State", "state"),
                col("Order", "order_id"),
                col("Item", "item"),
                col("Partner", "partner_id"),
                col("Vendor", "vendor"),
                col("Product", "product_id"),
                col("Denomination", "denomination currency"),
                col("Quantity", "quantity"),
                col("Sold", "sold"),
                col("Imported", "imported"),
                col("Quarantined", "quarantined"),
                col("Last response", "last_response"),
                col("The vendor's message", "last_message"),
                col("Requested", "requested_at"),
                col("Responded", "last_response_at"),
                col("Next attempt", "next_attempt_at"),
            ],
            sections: &[audit_of("subject={purchase_id}&limit=10",
                "/audit?subject={purchase_id}",
            )],
        }),
        actions: &[
            Action::new("end", "End", vendors::END_PURCHASE)
                .inputs(&[REASON])
                .when(|purchase| !purchase.is("state", "ended"))
                .note("The order buys elsewhere, or is refunded. Ask the vendor first whether it has sold.")
                .done("The purchase was ended."),
        ],
    },
    Page {
        path: "/drifts",
        title: "Drifts",
        view: View::List(List {
            api: target(reconciliation::LIST_DRIFTS),
            columns: &[
                col("Drift", "drift_id"),
                link("Day", "date", "/reconciliation/{date}"),
                col("Vendor", "vendor"),
                col("Kind", "kind"),
                col("Order", "order_id"),
                col("Differences", "differences"),
                col("Ours", "ours"),
                col("Theirs", "theirs"),
                col("Resolution", "resolution"),
                col("Reason", "reason"),
            ],
            filters: &[
                filter("date", "Day (YYYY-MM-DD)"),
                filter("vendor", "Vendor ID"),
                choice("kind", "Kind", labels::<DriftKind>),
                choice("resolution", "Resolution", labels::<DriftResolution>),
            ],
            row_actions: &[
                Action::new("resolve", "Resolve", reconciliation::RESOLVE_DRIFT)
                    .inputs(&[
                        // With the values of now, so that another operator's resolution is not overwritten.
                        Input::new("resolution", "Resolution", InputKind::Choice(resolutions)).prefilled(),
                        Input::new("reason", "Reason", InputKind::Paragraph)
                            .prefilled()
                            .hint("For the audit trail."),
                    ])
                    .when(|drift| !drift.is("resolution", "resolved"))
                    .done("The drift has its resolution."),
            ],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/reconciliation",
        title: "Reconciliation by day",
        view: View::List(List {
            api: target(reconciliation::LIST_RECONCILIATIONS),
            columns: &[
                link("Day", "date", "/reconciliation/{date}"),
                col("Vendors", "vendors"),
                col("Compared", "compared"),
                col("Failed", "failed"),
                col("Matched", "matched"),
                col("Drifted", "drifted"),
                col("Unmatched", "unmatched"),
            ],
            filters: &[],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[
            // Days that were not compared yet are not in the list.
            Action::new("run", "Compare a day", reconciliation::RUN_RECONCILIATION)
                .inputs(&[Input::line("date", "Day").hint("UTC, such as 2026-11-20.")])
                .done("The comparison was requested."),
        ],
    },
    Page {
        path: "/reconciliation/{date}",
        title: "Reconciliation of",
        view: View::Object(Object {
            none: "This day was not compared yet.",
            api: Some(target(reconciliation::GET_RECONCILIATION)),
            name: "date",
            facts: &[
                col("Orders settled", "summary.orders_total"),
                col("Vouchers", "summary.vouchers_allocated"),
                col("Matched", "summary.matched"),
                col("Drifted", "summary.drifted"),
                col("Unmatched", "summary.unmatched"),
            ],
            sections: &[
                Section {
                    heading: "Vendors",
                    source: Source::Field("vendors"),
                    columns: &[
                        col("Vendor", "vendor"),
                        col("Recorded", "recorded"),
                        col("Matched", "summary.matched"),
                        col("Drifted", "summary.drifted"),
                        col("Unmatched", "summary.unmatched"),
                        col("Source", "source"),
                        col("Compared", "generated_at"),
                        col("Failed attempts", "failed_attempts"),
                        col("Last error", "last_error"),
                        col("Next attempt", "next_attempt_at"),
                    ],
                    row_actions: &[],
                    none: "No vendor was compared.",
                },
                Section {
                    heading: "Vouchers by batch",
                    source: Source::Field("allocations"),
                    columns: &[
                        col("Vendor", "vendor"),
                        col("Source", "source"),
                        col("Batch", "batch"),
                        col("Orders", "orders"),
                        col("Vouchers", "vouchers"),
                        col("Matched", "matched"),
                        col("Drifted", "drifted"),
                        col("Unmatched", "unmatched"),
                    ],
                    row_actions: &[],
                    none: "No voucher was counted.",
                },
                Section {
                    heading: "Drifts",
                    source: Source::Api {
                        target: target(reconciliation::LIST_DRIFTS).query("date={date}&limit=20"),
                        field: "data",
                        page: "/drifts?date={date}",
                    },
                    columns: &DRIFT_COLUMNS,
                    row_actions: &[],
                    none: "No differences.",
                },
            ],
        }),
        actions: &[
            Action::new("run", "Compare now", reconciliation::RUN_RECONCILIATION)
                .inputs(&[Input::line("vendor", "Vendor ID")
                    .optional()
                    .hint("Empty: all vendors that list their sales.")])
                .done("The comparison was requested."),
            Action::new("records", "Upload records", reconciliation::UPLOAD_RECORDS).query("vendor={vendor}")
                .inputs(&[
                    Input::line("vendor", "Vendor ID"),
                    Input::new("file", "Records", InputKind::File(".csv")).hint("The vendor's records of the day as CSV."),
                ])
                .note("Compares them with our purchases. A file takes effect completely or not at all, and can be sent again.")
                .shows("The records were compared"),
        ],
    },
];
