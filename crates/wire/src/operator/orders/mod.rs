//! Operations and bodies of `/orders`.

pub mod fulfil;

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::envelope::Event;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::order::filter::OrderSearch;

use crate::column::col;
use crate::error_code::Code;
use crate::filter::NoFilter;
use crate::operation::{Page, operations};
use crate::operator::decision::ReasonRequest;
use crate::operator::erasure::{ErasureReport, ErasureRequest};
use crate::operator::operation::SecondOperator::{Always, Never};
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::operator::orders::fulfil::{FulfilReport, FulfilRequest};
use crate::partner::orders::body::OrderBody;

operations! {
    OperatorAccess;
    SEARCH_ORDERS: Operation<OrderSearch, Page<OrderOfPartner<'static>>> =
        get("/orders", Role::Viewer, "searchOrders", "Search orders")
            .columns(&[
                col("Order", "order_id"),
                col("Partner", "partner_id"),
                col("Status", "status").text(12),
                col("Total", "total_amount currency"),
                col("Reference", "reference").text(24),
                col("Waits for", "pending_reason").at(3),
                col("Created", "created_at"),
            ]);
    GET_ORDER: Operation<(), OrderOfPartner<'static>> = get("/orders/{order_id}", Role::Viewer, "getOrder", "Get an order");
    LIST_ORDER_EVENTS: Operation<NoFilter, Page<Event>> =
        get("/orders/{order_id}/events", Role::Viewer, "listOrderEvents", "List the events of an order")
            .columns(&[
                col("Number", "data.sequence"),
                col("Time", "created_at"),
                col("Event", "event"),
                col("ID", "event_id"),
                col("Content", "data").console_only(),
            ]);
    APPROVE_ORDER: Operation<ReasonRequest, OrderOfPartner<'static>> =
        post("/orders/{order_id}/approve", Role::Operator, Always(&[ChangeKind::OrderApprove]), "approveOrder", "Approve an order")
            .errors(&[Code::OrderNotAwaitingApproval, Code::IdempotencyInProgress]);
    REJECT_ORDER: Operation<ReasonRequest, OrderOfPartner<'static>> =
        post("/orders/{order_id}/reject", Role::Operator, Never, "rejectOrder", "Reject an order")
            .errors(&[Code::OrderNotAwaitingApproval, Code::IdempotencyInProgress]);
    CANCEL_ORDER: Operation<ReasonRequest, OrderOfPartner<'static>> =
        post("/orders/{order_id}/cancel", Role::Operator, Never, "cancelOrder", "Cancel an order")
            .errors(&[Code::OrderNotCancellable, Code::IdempotencyInProgress]);
    ERASE_ORDER: Operation<ErasureRequest, ErasureReport> =
        post("/orders/{order_id}/erase", Role::Admin, Never, "eraseOrder", "Erase the personal data of an order")
            .errors(&[Code::NotClosed]);
    FULFIL_ORDER: Operation<FulfilRequest, FulfilReport<'static>> = post(
        "/orders/{order_id}/fulfil",
        Role::Operator,
        Always(&[ChangeKind::OrderFulfil]),
        "fulfilOrder",
        "Fulfil an order manually",
    )
        .errors(&[Code::OrderNotFulfillable, Code::IdempotencyInProgress]);
}

/// An order and its partner.
#[derive(Serialize, ToSchema)]
pub struct OrderOfPartner<'a> {
    partner_id: PartnerId,
    #[serde(flatten)]
    order: OrderBody<'a>,
}

impl<'a> OrderOfPartner<'a> {
    /// The wire representation of an order.
    ///
    /// # Errors
    /// Returns an error if the stored metadata is not JSON, which is a bug.
    pub fn of(order: &'a Order) -> Result<Self, serde_json::Error> {
        Ok(Self {
            partner_id: order.partner_id,
            order: OrderBody::of(order)?,
        })
    }

    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        self.order.order_id()
    }
}
