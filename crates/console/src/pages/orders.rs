//! Orders of all partners: search, one order with everything about it, and decisions.

use vouchsafe_domain::order::{OrderStatus, PendingReason};
use vouchsafe_wire::operator::{orders, vendors, wallets, webhooks};

use super::{audit_of, waiting_changes};
use crate::json::Json;
use crate::page::{
    Action, FROM, Input, List, Object, Page, REASON, Section, Source, TO, choice, col, filter, labels, target,
};

fn waits_for_approval(order: &Json) -> bool {
    order.is("pending_reason", "APPROVAL")
}

fn is_cancellable(order: &Json) -> bool {
    !order.is("status", "CANCELLED") && !order.is("status", "REFUNDED")
}

fn is_closed(order: &Json) -> bool {
    *order.get("closed") == Json::Bool(true)
}

fn needs_vouchers(order: &Json) -> bool {
    *order.get("closed") == Json::Bool(false) && !waits_for_approval(order)
}

const ACTIONS: &[Action] = &[
    Action::new("approve", "Approve", orders::APPROVE_ORDER)
        .inputs(&[REASON])
        .when(waits_for_approval)
        .note("The order is paid already: its vouchers are delivered from stock, or bought.")
        .done("The order was approved."),
    Action::new("reject", "Reject this order", orders::REJECT_ORDER)
        .inputs(&[REASON])
        .when(waits_for_approval)
        .dangerous()
        .note("The order is cancelled and its amount returns to the wallet.")
        .done("The order was rejected and refunded."),
    Action::new("cancel", "Cancel this order", orders::CANCEL_ORDER)
        .inputs(&[REASON])
        .when(is_cancellable)
        .dangerous()
        .note("Vouchers whose codes the partner has not read are taken back and refunded. This cannot be undone.")
        .done("The order was cancelled."),
    Action::new("erase", "Erase personal data", orders::ERASE_ORDER)
        .inputs(&[REASON])
        .when(is_closed)
        .dangerous()
        .note("Reference, metadata and reasons are removed for ever. Vouchers, amounts and the audit trail stay.")
        .done("The personal data of the order was erased."),
    Action::new("fulfil", "Fulfil by hand", orders::FULFIL_ORDER)
        .inputs(&[
            Input::field("product_id", "Product")
                .hint("Required, with the denomination, if the order needs several products."),
            Input::field("denomination", "Denomination"),
            Input::field("vouchers", "Vouchers")
                .hint("CSV with a header of code, pin, serial, url and expiry. Codes are encrypted and not shown again."),
        ])
        .when(needs_vouchers)
        .note("Can be repeated: no voucher is stored twice.")
        .done("The vouchers were stored for this order."),
];

pub(super) static PAGES: [Page; 3] = [
    Page::list(
        "/orders",
        "Orders",
        List::of(orders::SEARCH_ORDERS)
            .filters(&[
                filter("order_id", "Order ID"),
                filter("partner_id", "Partner ID"),
                filter("reference", "Reference"),
                filter("voucher_id", "Voucher ID"),
                choice("status", "Status", labels::<OrderStatus>),
                choice("pending_reason", "Waits for", labels::<PendingReason>),
                FROM,
                TO,
            ])
            .variants(&[
                ("All", "/orders"),
                ("Wait for approval", "/orders?pending_reason=APPROVAL"),
                ("Wait for vouchers", "/orders?pending_reason=VENDOR"),
            ]),
    ),
    Page::object(
        "/orders/{order_id}",
        "Order",
        Object::of(
            orders::GET_ORDER,
            "order_id",
            &[
                col("Status", "status"),
                col("Waits for", "pending_reason"),
                col("Partner", "partner_id"),
                col("Reference", "reference"),
                col("Total", "total_amount currency"),
                col("Refunded", "refunded_amount currency"),
                col("Fulfilled from", "fulfilled_from"),
                col("Closed", "closed"),
                col("Created", "created_at"),
                col("Changed", "updated_at"),
                col("Metadata", "metadata"),
                col("Trace ID of the request", "trace.trace_id"),
                col("Admission: authentication and body (µs)", "trace.admission_us"),
                col("Price and holds of money and vouchers (µs)", "trace.holds_us"),
                col("Wait for the commit, which the log has (µs)", "trace.queue_us"),
            ],
            &[
                waiting_changes(
                    "status=WAITING&object={order_id}",
                    "/requests?status=WAITING&object={order_id}",
                ),
                Section::new(
                    "Items",
                    Source::Field("items"),
                    &[
                        col("Product", "product_id"),
                        col("Denomination", "denomination"),
                        col("Quantity", "quantity"),
                        col("Delivered", "delivered"),
                        col("Pending", "pending"),
                        col("Failed", "failed"),
                        col("Cancelled", "cancelled"),
                    ],
                    "No items.",
                ),
                Section::new(
                    "Timeline",
                    Source::Field("timeline"),
                    &[
                        col("Time", "at"),
                        col("Status", "status"),
                        col("By", "by"),
                        col("Reason", "reason"),
                    ],
                    "No entries.",
                ),
                Section::new(
                    "Vouchers",
                    Source::Field("vouchers"),
                    &[
                        col("Voucher", "voucher_id"),
                        col("Product", "product_id"),
                        col("Denomination", "denomination"),
                        col("Expiry", "expiry"),
                        col("Code first read", "first_retrieved_at"),
                    ],
                    "No voucher is allocated.",
                ),
                Section::list(
                    "Ledger",
                    target(wallets::LIST_TRANSACTIONS).query("order_id={order_id}&limit=20"),
                    "/partners/{partner_id}/transactions?order_id={order_id}",
                    "No entries.",
                )
                .columns(&[
                    col("Time", "created_at"),
                    col("Type", "type"),
                    col("Amount", "amount currency"),
                    col("Balance", "balance_after"),
                    col("Transaction", "transaction_id"),
                ]),
                Section::list(
                    "Purchases",
                    target(vendors::LIST_PURCHASES).query("order_id={order_id}&limit=20"),
                    "/purchases?order_id={order_id}",
                    "Nothing was bought for it.",
                )
                .columns(&[
                    col("Purchase", "purchase_id"),
                    col("Vendor", "vendor"),
                    col("Product", "product_id"),
                    col("Quantity", "quantity"),
                    col("State", "state"),
                    col("Last response", "last_response"),
                    col("Requested", "requested_at"),
                ]),
                Section::list(
                    "Events",
                    target(orders::LIST_ORDER_EVENTS).query("limit=20"),
                    "/orders/{order_id}/events",
                    "No events.",
                ),
                Section::list(
                    "Deliveries that failed, wait or were replayed",
                    target(webhooks::LIST_DELIVERIES).query("order_id={order_id}&limit=20"),
                    "/deliveries?order_id={order_id}",
                    "No attempt has failed, and none was replayed. Events that were not attempted yet are \
                     in the backlog of the endpoints.",
                )
                .columns(&[
                    col("Delivery", "delivery_id"),
                    col("Webhook", "webhook_id"),
                    col("Status", "status"),
                    col("Failed attempts", "failed_attempts"),
                    col("Next attempt", "next_attempt_at"),
                ]),
                Section::list(
                    "Endpoints of the partner",
                    target(webhooks::LIST_WEBHOOKS).query("partner_id={partner_id}&limit=10"),
                    "/webhooks?partner_id={partner_id}",
                    "The partner has no endpoint.",
                )
                .columns(&[
                    col("Webhook", "webhook_id"),
                    col("Status", "status"),
                    col("Events not attempted yet", "backlog"),
                    col("Failures in a row", "consecutive_failures"),
                    col("URL", "url"),
                ]),
                audit_of("subject={order_id}&limit=20", "/audit?subject={order_id}"),
            ],
        ),
    )
    .actions(ACTIONS),
    Page::list(
        "/orders/{order_id}/events",
        "Events of",
        List::of(orders::LIST_ORDER_EVENTS),
    ),
];
