//! How answers are worded in a world: one line each, in which a test finds what it looks for.

use crate::domain::answer::Answer;
use crate::domain::order::{Order, OrderStatus};
use crate::flows::{Refusal, Wording};

/// `201 DELIVERED ord_… 20.00 USD …` and its like.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Wording for Plain {
    fn accepted(&self, order: &Order) -> Answer {
        let delivered = order.status == OrderStatus::Delivered;
        let reason = order.pending_reason.map_or("", |reason| reason.as_str());
        let vouchers: Vec<String> = order.vouchers.iter().map(|v| v.voucher_id.to_string()).collect();
        let body = format!(
            "{}{reason} {} {} {} {:?} {}",
            order.status.as_str(),
            order.order_id,
            order.total,
            order.total.currency,
            order.reference,
            vouchers.join(" "),
        );
        Answer {
            status: if delivered { 201 } else { 202 },
            body: body.into(),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Answer {
        match refusal {
            Refusal::InsufficientFunds { needed, available } => Answer {
                status: 402,
                body: format!("INSUFFICIENT_FUNDS {needed} of {}", available.minor()).into(),
            },
            Refusal::InsufficientInventory {
                sku,
                asked,
                available,
            } => Answer {
                status: 409,
                body: format!("INSUFFICIENT_INVENTORY {sku} {asked} of {available}").into(),
            },
        }
    }
}
