//! Vendors: terms, circuit breaker, purchases; reconciliation and drifts.

use vouchsafe_domain::purchase::view::PurchaseState;
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::DriftResolution;
use vouchsafe_wire::operator::{reconciliation, vendors};

use super::{audit_of, waiting_changes};
use crate::page::{
    Action, Column, Input, List, Object, Page, REASON, Section, Source, choice, col, filter, labels, target,
};

pub(super) const DRIFT_COLUMNS: [Column; 7] = [
    col("Drift", "drift_id"),
    col("Day", "date").link("/reconciliation/{date}"),
    col("Vendor", "vendor"),
    col("Kind", "kind"),
    col("Order", "order_id"),
    col("Differences", "differences"),
    col("Resolution", "resolution"),
];

const PURCHASES: Section = Section::list(
    "Purchases",
    target(vendors::LIST_PURCHASES).query("vendor={vendor_id}&limit=10"),
    "/purchases?vendor={vendor_id}",
    "Nothing was bought.",
);

const OPEN_DRIFTS: Section = Section::list(
    "Open drifts",
    target(reconciliation::LIST_DRIFTS).query("vendor={vendor_id}&resolution=pending&limit=10"),
    "/drifts?vendor={vendor_id}",
    "No difference is open.",
)
.columns(&DRIFT_COLUMNS);

/// The settings of a vendor. A change replaces all of them, so the form begins with the current ones.
const VENDOR: [Input; 4] = [
    Input::field("adapter", "Adapter"),
    Input::field("url", "URL").hint("For http only."),
    Input::field("credentials", "Credential").hint("Empty: the stored one stays, unless the URL changes."),
    Input::field("concurrency", "Purchases at once"),
];

pub(super) static PAGES: [Page; 7] = [
    Page::list("/vendors", "Vendors", List::of(vendors::LIST_VENDORS)).actions(&[Action::new("create",
            "Create a vendor", vendors::PUT_VENDOR)
        .inputs(&[
            Input::placeholder("vendor_id", "Vendor ID").hint("Of a-z, 0-9, '-', '_' and '.'. It cannot be changed."),
            VENDOR[0],
            VENDOR[1],
            VENDOR[2],
            VENDOR[3],
        ])
        .done("The vendor was created.")]),
    Page::object("/vendors/{vendor_id}", "Vendor", Object::of(vendors::GET_VENDOR, "vendor_id", &[
                col("Adapter", "adapter"),
                col("URL", "url"),
                col("Has a credential", "has_credentials"),
                col("Purchases at once", "concurrency"),
                col("Circuit of the node that responded", "circuit"),
                col("Changed", "updated_at"),
            ], &[
                waiting_changes("status=WAITING&object={vendor_id}", "/requests?status=WAITING&object={vendor_id}"),
                PURCHASES,
                OPEN_DRIFTS,
                audit_of("subject={vendor_id}&limit=10",
                    "/audit?subject={vendor_id}",
                ),
            ])).actions(&[Action::new("change",
            "Change", vendors::PUT_VENDOR)
        .inputs(&VENDOR)
        .done("The vendor was changed. It applies to the next call.")]),
    Page::list("/purchases", "Purchases", List::of(vendors::LIST_PURCHASES).filters(&[
                filter("vendor", "Vendor ID"),
                filter("order_id", "Order ID"),
                choice("state", "State", labels::<PurchaseState>),
            ])),
    Page::object("/purchases/{purchase_id}", "Purchase", Object::of(vendors::GET_PURCHASE, "purchase_id", &[
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
            ], &[audit_of("subject={purchase_id}&limit=10",
                "/audit?subject={purchase_id}",
            )])).actions(&[
            Action::new("end", "End this purchase", vendors::END_PURCHASE)
                .inputs(&[REASON])
                .when(|purchase| !purchase.is("state", "ended"))
                .dangerous()
                .note("The order buys elsewhere, or is refunded. Ask the vendor first whether it has sold.")
                .done("The purchase was ended."),
        ]),
    Page::list("/drifts", "Drifts", List::of(reconciliation::LIST_DRIFTS).filters(&[
                filter("date", "Day (YYYY-MM-DD)"),
                filter("vendor", "Vendor ID"),
                choice("kind", "Kind", labels::<DriftKind>),
                choice("resolution", "Resolution", labels::<DriftResolution>),
            ]).row_actions(&[
                Action::new("resolve", "Resolve", reconciliation::RESOLVE_DRIFT)
                    .inputs(&[
                        // With the values of now, so that another operator's resolution is not overwritten.
                        Input::field("resolution", "Resolution").prefilled(),
                        REASON.prefilled(),
                    ])
                    .when(|drift| !drift.is("resolution", "resolved"))
                    .done("The drift has its resolution."),
            ])),
    Page::list("/reconciliation", "Reconciliation by day", List::of(reconciliation::LIST_RECONCILIATIONS)).actions(&[
            // Days that were not compared yet are not in the list.
            Action::new("run", "Compare a day", reconciliation::RUN_RECONCILIATION)
                .inputs(&[Input::placeholder("date", "Day").hint("UTC, such as 2026-11-20.")])
                .done("The comparison was requested."),
        ]),
    Page::object("/reconciliation/{date}", "Reconciliation of", Object::of(reconciliation::GET_RECONCILIATION, "date", &[
                col("Orders settled", "summary.orders_total"),
                col("Vouchers", "summary.vouchers_allocated"),
                col("Matched", "summary.matched"),
                col("Drifted", "summary.drifted"),
                col("Unmatched", "summary.unmatched"),
            ], &[
                Section::new("Vendors", Source::Field("vendors"), &[
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
                    ], "No vendor was compared."),
                Section::new("Vouchers by batch", Source::Field("allocations"), &[
                        col("Vendor", "vendor"),
                        col("Source", "source"),
                        col("Batch", "batch"),
                        col("Orders", "orders"),
                        col("Vouchers", "vouchers"),
                        col("Matched", "matched"),
                        col("Drifted", "drifted"),
                        col("Unmatched", "unmatched"),
                    ], "No voucher was counted."),
                Section::list("Drifts", target(reconciliation::LIST_DRIFTS).query("date={date}&limit=20"), "/drifts?date={date}", "No differences.").columns(&DRIFT_COLUMNS),
            ]).or("This day was not compared yet.")).actions(&[
            Action::new("run", "Compare now", reconciliation::RUN_RECONCILIATION)
                .inputs(&[Input::field("vendor", "Vendor ID")
                    .hint("Empty: all vendors that list their sales.")])
                .done("The comparison was requested."),
            Action::by_query("records", "Upload records", reconciliation::UPLOAD_RECORDS, "vendor={vendor}")
                .inputs(&[
                    Input::placeholder("vendor", "Vendor ID"),
                    Input::file("file", "Records", ".csv").hint("The vendor's records of the day as CSV."),
                ])
                .note("Compares them with our purchases. A file takes effect completely or not at all, and can be sent again.")
                .shows("The records were compared"),
        ]),
];
