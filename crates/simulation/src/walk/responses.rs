//! Plain text responses of the simulation.

use vouchsafe_actors::flows::{OrderRefusal, OrderResponseEncoder, PayoutResponseEncoder};
use vouchsafe_domain::idempotency::Response;
use vouchsafe_domain::money::{Amount, Money};
use vouchsafe_domain::order::{Order, OrderStatus};
use vouchsafe_domain::payout::Payout;

use crate::build;

/// Responses of one line, such as `DELIVERED ord_… 20.00 USD …`.
#[derive(Debug, Clone, Copy)]
pub struct PlainTextResponses;

impl OrderResponseEncoder for PlainTextResponses {
    fn accepted(&self, order: &Order) -> Response {
        let delivered = order.status == OrderStatus::Delivered;
        let reason = order.pending_reason.map_or("", |reason| reason.into_str());
        let vouchers: Vec<String> = order.vouchers.iter().map(|v| v.voucher_id.to_string()).collect();
        let body = format!(
            "{}{reason} {} {} {} {:?} {}",
            order.status.into_str(),
            order.order_id,
            order.total,
            order.total.currency,
            order.reference,
            vouchers.join(" "),
        );
        Response {
            status: if delivered { 201 } else { 202 },
            body: body.into(),
        }
    }

    fn refused(&self, refusal: &OrderRefusal) -> Response {
        match refusal {
            OrderRefusal::InsufficientFunds { needed, available } => Response {
                status: 402,
                body: format!("INSUFFICIENT_FUNDS {needed} of {}", available.minor()).into(),
            },
            OrderRefusal::InsufficientInventory {
                sku,
                requested,
                available,
                ..
            } => Response {
                status: 409,
                body: format!("INSUFFICIENT_INVENTORY {sku} {requested} of {available}").into(),
            },
        }
    }
}

impl PayoutResponseEncoder for PlainTextResponses {
    fn accepted(&self, payout: &Payout) -> Response {
        build::response(&payout.payout_id.to_string())
    }

    fn insufficient_funds(&self, needed: Money, available: Amount) -> Response {
        build::response(&format!("{needed} of {}", available.minor()))
    }
}
