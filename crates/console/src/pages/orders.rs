//! Orders of all partners: search, one order with everything about it, and decisions.

use vouchsafe_domain::order::{OrderStatus, PendingReason};
use vouchsafe_wire::operator::{orders, vendors, wallets, webhooks};

use super::audit_of;
use crate::json::Json;
use crate::page::{
    Action, Column, FROM, Input, InputKind, List, Object, Page, REASON, Section, Source, TO, View, choice,
    col, filter, labels, target,
};

pub(super) const ORDER_COLUMNS: [Column; 7] = [
    col("Order", "order_id"),
    col("Partner", "partner_id"),
    col("Status", "status"),
    col("Total", "total_amount currency"),
    col("Reference", "reference"),
    col("Waits for", "pending_reason"),
    col("Created", "created_at"),
];

const EVENT_COLUMNS: [Column; 5] = [
    col("Number", "data.sequence"),
    col("Time", "created_at"),
    col("Event", "event"),
    col("ID", "event_id"),
    col("Content", "data"),
];

fn waits_for_approval(order: &Json) -> bool {
    order.is("pending_reason", "APPROVAL")
}

fn is_cancellable(order: &Json) -> bool {
    !order.is("status", "CANCELLED") && !order.is("status", "REFUNDED")
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
    Action::new("reject", "Reject", orders::REJECT_ORDER)
        .inputs(&[REASON])
        .when(waits_for_approval)
        .note("The order is cancelled and its amount returns to the wallet.")
        .done("The order was rejected and refunded."),
    Action::new("cancel", "Cancel", orders::CANCEL_ORDER)
        .inputs(&[REASON])
        .when(is_cancellable)
        .note("Vouchers whose codes the partner has not read are taken back and refunded. This cannot be undone.")
        .done("The order was cancelled."),
    Action::new("fulfil", "Fulfil by hand", orders::FULFIL_ORDER)
        .inputs(&[
            Input::line("product_id", "Product")
                .optional()
                .hint("Required, with the denomination, if the order needs several products."),
            Input::line("denomination", "Denomination").optional(),
            Input::new("vouchers", "Vouchers", InputKind::Rows)
                .hint("CSV with a header of code, pin, serial, url and expiry. Codes are encrypted and not shown again."),
        ])
        .when(needs_vouchers)
        .note("Can be repeated: no voucher is stored twice.")
        .done("The vouchers were stored for this order."),
];

pub(super) static PAGES: [Page; 3] = [
    Page {
        path: "/orders",
        title: "Orders",
        view: View::List(List {
            api: target(orders::SEARCH_ORDERS),
            columns: &ORDER_COLUMNS,
            filters: &[
                filter("order_id", "Order ID"),
                filter("partner_id", "Partner ID"),
                filter("reference", "Reference"),
                filter("voucher_id", "Voucher ID"),
                choice("status", "Status", labels::<OrderStatus>),
                choice("pending_reason", "Waits for", labels::<PendingReason>),
                FROM,
                TO,
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[
                ("All", "/orders"),
                ("Wait for approval", "/orders?pending_reason=APPROVAL"),
                ("Wait for vouchers", "/orders?pending_reason=VENDOR"),
            ],
        }),
        actions: &[],
    },
    Page {
        path: "/orders/{order_id}",
        title: "Order",
        view: View::Object(Object {
            none: "",
            api: Some(target(orders::GET_ORDER)),
            name: "order_id",
            facts: &[
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
            ],
            sections: &[
                Section {
                    heading: "Items",
                    source: Source::Field("items"),
                    columns: &[
                        col("Product", "product_id"),
                        col("Denomination", "denomination"),
                        col("Quantity", "quantity"),
                        col("Delivered", "delivered"),
                        col("Pending", "pending"),
                        col("Failed", "failed"),
                        col("Cancelled", "cancelled"),
                    ],
                    row_actions: &[],
                    none: "No items.",
                },
                Section {
                    heading: "Timeline",
                    source: Source::Field("timeline"),
                    columns: &[
                        col("Time", "at"),
                        col("Status", "status"),
                        col("By", "by"),
                        col("Reason", "reason"),
                    ],
                    row_actions: &[],
                    none: "No entries.",
                },
                Section {
                    heading: "Vouchers",
                    source: Source::Field("vouchers"),
                    columns: &[
                        col("Voucher", "voucher_id"),
                        col("Product", "product_id"),
                        col("Denomination", "denomination"),
                        col("Expiry", "expiry"),
                        col("Code first read", "first_retrieved_at"),
                    ],
                    row_actions: &[],
                    none: "No voucher is allocated.",
                },
                Section {
                    heading: "Ledger",
                    source: Source::Api {
                        target: target(wallets::LIST_TRANSACTIONS).query("order_id={order_id}&limit=20"),
                        field: "data",
                        page: "/partners/{partner_id}/transactions?order_id={order_id}",
                    },
                    columns: &[
                        col("Time", "created_at"),
                        col("Type", "type"),
                        col("Amount", "amount currency"),
                        col("Balance", "balance_after"),
                        col("Transaction", "transaction_id"),
                    ],
                    row_actions: &[],
                    none: "No entries.",
                },
                Section {
                    heading: "Purchases",
                    source: Source::Api {
                        target: target(vendors::LIST_PURCHASES).query("order_id={order_id}&limit=20"),
                        field: "data",
                        page: "/purchases?order_id={order_id}",
                    },
                    columns: &[
                        col("Purchase", "purchase_id"),
                        col("Vendor", "vendor"),
                        col("Product", "product_id"),
                        col("Quantity", "quantity"),
                        col("State", "state"),
                        col("Last response", "last_response"),
                        col("Requested", "requested_at"),
                    ],
                    row_actions: &[],
                    none: "Nothing was bought for it.",
                },
                Section {
                    heading: "Events",
                    source: Source::Api {
                        target: target(orders::LIST_ORDER_EVENTS).query("limit=20"),
                        field: "data",
                        page: "/orders/{order_id}/events",
                    },
                    columns: &EVENT_COLUMNS,
                    row_actions: &[],
                    none: "No events.",
                },
                Section {
                    heading: "Deliveries that failed, wait or were replayed",
                    source: Source::Api {
                        target: target(webhooks::LIST_DELIVERIES).query("order_id={order_id}&limit=20"),
                        field: "data",
                        page: "/deliveries?order_id={order_id}",
                    },
                    columns: &[
                        col("Delivery", "delivery_id"),
                        col("Webhook", "webhook_id"),
                        col("Status", "status"),
                        col("Failed attempts", "failed_attempts"),
                        col("Next attempt", "next_attempt_at"),
                    ],
                    row_actions: &[],
                    none: "All events were delivered at the first attempt, or no endpoint receives them.",
                },
                audit_of("subject={order_id}&limit=20", "/audit?subject={order_id}"),
            ],
        }),
        actions: ACTIONS,
    },
    Page {
        path: "/orders/{order_id}/events",
        title: "Events of",
        view: View::List(List {
            api: target(orders::LIST_ORDER_EVENTS),
            columns: &EVENT_COLUMNS,
            filters: &[],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
];
