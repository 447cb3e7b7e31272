//! Stock: levels, and expiries.

use vouchsafe_domain::stock::level::Shortage;
use vouchsafe_wire::operator::stock;

use crate::page::{List, Page, choice, filter, labels};

pub(super) static PAGES: [Page; 2] = [
    Page::list(
        "/stock",
        "Stock",
        List::of(stock::LIST_STOCK)
            .filters(&[
                filter("product_id", "Product ID"),
                choice("shortage", "Shortage", labels::<Shortage>),
            ])
            .variants(&[
                ("All", "/stock"),
                ("Low", "/stock?shortage=low"),
                ("Empty", "/stock?shortage=empty"),
            ]),
    ),
    Page::list(
        "/expiries",
        "Stock by expiry",
        List::of(stock::LIST_STOCK_EXPIRIES).filters(&[filter("product_id", "Product ID")]),
    ),
];
