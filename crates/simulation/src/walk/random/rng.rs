//! Random source of a walk, and labels of its replies.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use vouchsafe_actors::flows::{FlowError, PlaceOrderError, TopUpError, TopUpResult};

use crate::walk::OrderReply;

pub(super) struct WalkRng(StdRng);

impl WalkRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number below `sides`.
    pub(super) fn below(&mut self, sides: u32) -> u32 {
        self.0.random_range(0..sides)
    }

    /// `true` with a probability of `percentage` percent.
    pub(super) fn percent(&mut self, percentage: u32) -> bool {
        self.below(100) < percentage
    }

    pub(super) fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    pub(super) fn seed(&mut self) -> u64 {
        self.0.random()
    }
}

/// Kinds of reply, each of which must occur in some walk.
pub const REPLIES: [&str; 37] = [
    "delivered",
    "pending vendor",
    "pending approval",
    "insufficient funds",
    "insufficient stock",
    "replayed",
    "unpriced",
    "key reused",
    "key busy",
    "overloaded",
    "unavailable",
    "outcome unknown",
    "poisoned",
    "disconnected",
    "top-up posted",
    "top-up replayed",
    "insufficient balance",
    "top-up unavailable",
    "top-up key reused",
    "top-up cancelled",
    "cancelled",
    "revoked",
    "already retrieved",
    "too late to cancel",
    "nothing to cancel",
    "approved",
    "rejected",
    "not awaiting approval",
    "payout requested",
    "payout replayed",
    "payout decided",
    "payout already decided",
    "supplied",
    "bought",
    "partly bought",
    "given up",
    "refunded by service",
];

pub(super) fn reply_label(reply: &OrderReply) -> &'static str {
    match reply {
        OrderReply::Disconnected => "disconnected",
        OrderReply::Replayed(_) => "replayed",
        OrderReply::Rejected(PlaceOrderError::Pricing(_)) => "unpriced",
        OrderReply::Rejected(PlaceOrderError::Cap(_)) => "over a cap",
        OrderReply::Rejected(PlaceOrderError::Flow(reason)) => error_label(reason),
        OrderReply::New(response) => match response.status {
            201 => "delivered",
            402 => "insufficient funds",
            409 => "insufficient stock",
            _ if response.body.starts_with(b"PENDINGVENDOR") => "pending vendor",
            _ => "pending approval",
        },
    }
}

pub(super) fn error_label(reason: &FlowError) -> &'static str {
    match reason {
        FlowError::KeyReused => "key reused",
        FlowError::KeyInFlight => "key busy",
        FlowError::Overloaded => "overloaded",
        FlowError::Unavailable => "unavailable",
        FlowError::OutcomeUnknown => "outcome unknown",
        FlowError::StockQuarantined => "stock quarantined",
        FlowError::Poisoned => "poisoned",
    }
}

pub(super) fn top_up_label(result: &Result<TopUpResult, TopUpError>) -> &'static str {
    match result {
        Ok(result) if result.replayed => "top-up replayed",
        Ok(_) => "top-up posted",
        Err(TopUpError::Flow(FlowError::KeyReused)) => "top-up key reused",
        Err(TopUpError::Flow(_)) => "top-up unavailable",
        Err(TopUpError::InsufficientBalance(_) | TopUpError::TooLarge) => "insufficient balance",
    }
}
