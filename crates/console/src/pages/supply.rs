//! Stock: levels, and expiries.

use vouchsafe_wire::operator::stock;

use crate::page::{List, Page, filter};

pub(super) static PAGES: [Page; 2] = [
    Page::list(
        "/stock",
        "Stock",
        List::of(stock::LIST_STOCK).filters(&[filter("product_id", "Product ID")]),
    ),
    Page::list(
        "/expiries",
        "Stock by expiry",
        List::of(stock::LIST_STOCK_EXPIRIES).filters(&[filter("product_id", "Product ID")]),
    ),
];
