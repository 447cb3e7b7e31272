//! Payouts: money that leaves a wallet for an external destination.
//!
//! The wallet is debited when the payout is accepted. The payout is then either paid or reversed, exactly
//! once.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::ids::{PartnerId, PayoutId};
use super::money::Money;
use super::order::Actor;
use crate::labels::labels;

labels! {
    /// The status of a payout (contract §3).
    pub enum PayoutStatus: "SCREAMING_SNAKE_CASE",
        "Status of the payout: `PENDING` (an operator has to pay it), `PAID`, `REJECTED` (it was not \
         attempted: rejected by an operator, or cancelled by you), `FAILED` (it was attempted and failed). \
         `REJECTED` and `FAILED` return the money to the wallet." {
        /// An operator has to pay it.
        Pending,
        Paid,
        /// It was not attempted, by a decision of an operator or of the partner; the money was returned.
        Rejected,
        /// It was attempted and failed; the money was returned.
        Failed,
    }
}

/// An entry of a payout's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PayoutMilestone {
    /// The status that the payout entered.
    pub status: PayoutStatus,
    /// When it entered the status.
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// Who caused the change.
    pub by: Actor,
    /// The reason, if one was given.
    #[schema(required)]
    pub reason: Option<String>,
    /// The payment's reference in the system that made it, if given.
    #[schema(required)]
    pub reference: Option<String>,
}

/// The destination of a payout.
#[derive(Clone, PartialEq, Eq)]
pub struct PayoutDestination {
    /// A JSON object with masked numbers, for display.
    pub masked: Arc<str>,
    /// The complete destination, encrypted at rest; decrypted for the operator who pays.
    pub sealed: Bytes,
}

impl std::fmt::Debug for PayoutDestination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.masked)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payout {
    pub payout_id: PayoutId,
    pub partner_id: PartnerId,
    pub status: PayoutStatus,
    pub money: Money,
    pub destination: PayoutDestination,
    pub reference: Option<String>,
    /// Oldest first.
    pub timeline: Vec<PayoutMilestone>,
    pub created_at: OffsetDateTime,
    pub updated_at: OffsetDateTime,
}

/// The final outcome of a payout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayoutOutcome {
    Paid,
    /// It is not attempted.
    Rejected,
    /// It was attempted and failed.
    Failed,
    /// The partner cancelled it before it was attempted. Its status is that of a rejected one: statuses are a
    /// closed list.
    Cancelled,
}

impl PayoutOutcome {
    /// Who decides so.
    #[must_use]
    pub const fn decided_by(self) -> Actor {
        match self {
            Self::Paid | Self::Rejected | Self::Failed => Actor::Operator,
            Self::Cancelled => Actor::Partner,
        }
    }
}

impl From<PayoutOutcome> for PayoutStatus {
    fn from(outcome: PayoutOutcome) -> Self {
        match outcome {
            PayoutOutcome::Paid => Self::Paid,
            PayoutOutcome::Rejected | PayoutOutcome::Cancelled => Self::Rejected,
            PayoutOutcome::Failed => Self::Failed,
        }
    }
}

/// A decision on a payout, of an operator or of its partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutDecision {
    pub outcome: PayoutOutcome,
    pub reason: Option<String>,
    /// The payment's reference in the system that made it.
    pub reference: Option<String>,
}

impl Payout {
    /// Whether the partner cancelled it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let last = self.timeline.last();
        self.status == PayoutStatus::Rejected && last.is_some_and(|last| last.by == Actor::Partner)
    }

    /// Returns the payout with the decision applied.
    #[must_use]
    pub fn apply_decision(mut self, decision: PayoutDecision, at: OffsetDateTime) -> Self {
        let PayoutDecision {
            outcome: end,
            reason,
            reference,
        } = decision;
        let status = end.into();
        self.status = status;
        self.updated_at = at;
        self.timeline.push(PayoutMilestone {
            status,
            at,
            by: end.decided_by(),
            reason,
            reference,
        });
        self
    }
}

/// Filter of a partner's payouts; `None` matches any.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams, clap::Args,
)]
#[into_params(parameter_in = Query)]
pub struct PayoutFilter {
    /// Filter by status.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<PayoutStatus>())]
    pub status: Option<PayoutStatus>,
}

/// Filter of the payouts of all partners.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams, clap::Args,
)]
#[into_params(parameter_in = Query)]
pub struct PayoutSearch {
    /// Filter by partner.
    #[param(inline)]
    #[arg(long = "partner", value_name = "PARTNER_ID")]
    pub partner_id: Option<PartnerId>,
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub filter: PayoutFilter,
}
