//! Stock: levels, and expiries.

use vouchsafe_wire::operator::stock;

use crate::page::{Column, List, Page, View, col, filter, target};

pub(super) const LEVEL_COLUMNS: [Column; 10] = [
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

pub(super) const EXPIRY_COLUMNS: [Column; 3] = [
    col("Last valid in", "month"),
    col("Vouchers", "vouchers"),
    col("Share", "share"),
];

pub(super) static PAGES: [Page; 2] = [
    Page {
        path: "/stock",
        title: "Stock",
        view: View::List(List {
            api: target(stock::LIST_STOCK),
            columns: &LEVEL_COLUMNS,
            filters: &[filter("product_id", "Product ID")],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/expiries",
        title: "Stock by expiry",
        view: View::List(List {
            api: target(stock::LIST_STOCK_EXPIRIES),
            columns: &EXPIRY_COLUMNS,
            filters: &[filter("product_id", "Product ID")],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
];
