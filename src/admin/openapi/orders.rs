//! What is said of orders, as operators look at them.

use utoipa::PartialSchema as _;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::order::OrderStatus;

use super::{ORDERS, looks};
use crate::admin::orders::OrderOfPartner;
use crate::errors::Code;
use crate::http::openapi::example_order;
use crate::openapi::{Answer, Operation, filter, word};

pub(super) fn operations() -> [Operation; 2] {
    [search(), get()]
}

fn search() -> Operation {
    looks("/orders", "searchOrders")
        .says(
            ORDERS,
            "Search orders",
            "Every partner's orders, newest first, as their partners see them.",
        )
        .query("partner_id", "Only those of this partner.", PartnerId::schema())
        .query("order_id", "Only this one.", OrderId::schema())
        .query(
            "status",
            "Only those in this status.",
            word(OrderStatus::ALL.map(OrderStatus::as_str)),
        )
        .query("reference", "Only those with this reference.", filter("po-1001"))
        .dated()
        .paged()
        .answers(Answer::page_of::<OrderOfPartner<'_>>("Orders.", order()))
}

fn get() -> Operation {
    looks("/orders/{order_id}", "getOrder")
        .says(ORDERS, "Get an order", "As its partner sees it; never a code.")
        .path("order_id", "Which order.", OrderId::schema())
        .answers(Answer::of::<OrderOfPartner<'_>>(200, "The order.", order()))
        .refuses(&[Code::OrderNotFound])
}

fn order() -> serde_json::Value {
    let mut order = example_order();
    order["partner_id"] = "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f".into();
    order
}
