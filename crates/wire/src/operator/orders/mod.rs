//! Operations and bodies of `/orders`.

pub mod fulfil;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::fmt::Simple;
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

/// An order, its partner, and how it was placed.
#[derive(Serialize, ToSchema)]
pub struct OrderOfPartner<'a> {
    partner_id: PartnerId,
    #[serde(flatten)]
    order: OrderBody<'a>,
    /// How long the steps of placing the order took. Null for an order of an earlier version.
    #[schema(required)]
    trace: Option<OrderTraceBody>,
}

/// The trace of the request that placed an order, and how long its steps took until its commit began. The
/// duration of the commit is in the log.
#[derive(Serialize, ToSchema)]
#[schema(as = OrderTrace)]
pub struct OrderTraceBody {
    /// Trace ID of the request, as in its `X-Trace-ID` and in the log.
    #[schema(value_type = String, pattern = "^[0-9a-f]{32}$")]
    trace_id: Simple,
    /// Microseconds from the head of the request to the first decision: authentication, body and idempotency
    /// key.
    admission_us: i32,
    /// Microseconds of the decisions: price, holds of money and vouchers, and commits that refused an earlier
    /// decision.
    holds_us: i32,
    /// Microseconds that the decided order waited for a commit.
    queue_us: i32,
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
            trace: order.trace.map(|trace| OrderTraceBody {
                trace_id: trace.trace_id.into(),
                admission_us: trace.admission_us,
                holds_us: trace.holds_us,
                queue_us: trace.queue_us,
            }),
        })
    }

    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        self.order.order_id()
    }
}
