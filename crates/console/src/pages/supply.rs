//! Catalogue and stock: products, levels, import and void.

use vouchsafe_domain::operator::Role;

use super::audit_of;
use crate::page::{Action, Column, Input, InputKind, List, Object, Page, Section, Source, View, col, filter};

const LEVEL_COLUMNS: [Column; 10] = [
    col("Product", "product_id"),
    col("Denomination", "denomination currency"),
    col("Free", "free"),
    col("Sold in 7 days", "sold_7d"),
    col("Days left", "days_left"),
    col("Quarantined", "quarantined"),
    col("Sold", "sold"),
    col("Void", "void"),
    col("Expired", "expired"),
    col("Next expiry", "next_expiry"),
];

pub(super) static PAGES: [Page; 3] = [
    Page {
        path: "/products",
        title: "Products",
        view: View::List(List {
            api: "/products",
            columns: &[
                col("Product", "product_id"),
                col("Name", "name"),
                col("Brand", "brand"),
                col("Category", "category_id"),
                col("Vendor", "vendor"),
                col("Currency", "currency"),
                col("Denominations", "denominations"),
                col("Discontinued", "discontinued"),
            ],
            filters: &[],
            row_actions: &[],
            is_complete: true,
        }),
        actions: &[],
    },
    Page {
        path: "/products/{product_id}",
        title: "Product",
        view: View::Object(Object {
            none: "",
            api: "/products/{product_id}",
            name: "name",
            facts: &[
                col("ID", "product_id"),
                col("Brand", "brand"),
                col("Category", "category_id"),
                col("Vendor", "vendor"),
                col("Currency", "currency"),
                col("Denominations", "denominations"),
                col("Range", "denomination_range"),
                col("Countries", "countries"),
                col("Expiry policy", "expiry_policy"),
                col("Source when stock is short", "route"),
                col("Approval", "approval"),
                col("Returnable", "returnable"),
                col("Codes are unique by", "code_identity"),
                col("Least validity in days", "min_validity_days"),
                col("Low stock at", "low_stock_at"),
                col("Discontinued", "discontinued"),
                col("Instructions", "redemption.instructions"),
                col("Terms", "redemption.terms"),
                col("Changed", "updated_at"),
            ],
            sections: &[
                Section {
                    heading: "Stock",
                    source: Source::Api {
                        path: "/stock?product_id={product_id}&limit=50",
                        field: "data",
                        page: "/stock?product_id={product_id}",
                    },
                    columns: &LEVEL_COLUMNS,
                    row_actions: &[],
                    none: "No voucher was imported.",
                },
                audit_of("/audit?subject={product_id}&limit=10", "/audit?subject={product_id}"),
            ],
        }),
        actions: &[
            Action::post(
                "import",
                "Import vouchers",
                Role::Operator,
                "/stock?product_id={product_id}&denomination={denomination}&batch={batch}",
            )
            .inputs(&[
                Input::line("denomination", "Denomination").hint("Such as 25.00."),
                Input::line("batch", "Batch")
                    .optional()
                    .hint("A name for reconciliation. Empty: the time of the import."),
                Input::new("csv", "Vouchers", InputKind::Csv)
                    .hint("CSV with a header of code, pin, serial, url and expiry, at most 256 KiB; the command line imports more."),
            ])
            .note("Can be repeated: no voucher is imported twice. Codes are encrypted and not shown again.")
            .shows("Vouchers were imported"),
            Action::post("void", "Void vouchers", Role::Admin, "/stock/void")
                .inputs(&[
                    Input::new("product_id", "Product", InputKind::Param),
                    Input::line("denomination", "All free vouchers of this denomination").optional(),
                    Input::new("codes", "Or single codes", InputKind::Rows)
                        .optional()
                        .hint("CSV with a header of code and pin."),
                    Input::new("reason", "Reason", InputKind::Paragraph).hint("For the audit trail."),
                ])
                .note("Voided vouchers are never sold. This cannot be undone.")
                .shows("Vouchers were voided"),
        ],
    },
    Page {
        path: "/stock",
        title: "Stock",
        view: View::List(List {
            api: "/stock",
            columns: &LEVEL_COLUMNS,
            filters: &[filter("product_id", "Product ID")],
            row_actions: &[],
            is_complete: true,
        }),
        actions: &[],
    },
];
