//! A payout: money that leaves a wallet for somewhere outside.
//!
//! Rule: the money leaves the wallet when the payout is accepted. It is paid, or it comes back; each once.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::ids::{PartnerId, PayoutId};
use super::money::Money;
use super::order::Actor;

/// The status of a payout (contract §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Where a payout stands: `PENDING` (an operator has to pay it), `PAID`, `REJECTED` (it was not \
    tried), `FAILED` (it was tried and did not succeed). The money of the last two is back in the wallet."
)]
pub enum PayoutStatus {
    /// An operator has to pay it.
    Pending,
    Paid,
    /// It was not tried; the money is back.
    Rejected,
    /// It did not succeed; the money is back.
    Failed,
}

impl PayoutStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Paid, Self::Rejected, Self::Failed];

    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Paid => "PAID",
            Self::Rejected => "REJECTED",
            Self::Failed => "FAILED",
        }
    }

    /// The status of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// An entry of a payout's timeline: a status, since when, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PayoutMilestone {
    /// The status that was entered.
    pub status: PayoutStatus,
    /// When.
    #[serde(with = "crate::domain::moment")]
    pub at: OffsetDateTime,
    /// By whom.
    pub by: Actor,
    /// Why, where somebody said so.
    #[schema(required)]
    pub reason: Option<String>,
    /// What the payment is called where it was made, where somebody said so.
    #[schema(required)]
    pub reference: Option<String>,
}

/// Where the money goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    /// As everybody may see it: a JSON object with its numbers masked.
    pub shown: Arc<str>,
    /// All of it, sealed; whoever pays opens it.
    pub sealed: Bytes,
}

impl std::fmt::Debug for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

/// A payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payout {
    pub payout_id: PayoutId,
    pub partner_id: PartnerId,
    pub status: PayoutStatus,
    pub money: Money,
    pub destination: Destination,
    /// The partner's own reference.
    pub reference: Option<String>,
    /// How it came here, oldest first.
    pub timeline: Vec<PayoutMilestone>,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
}

/// How a payout ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutEnd {
    Paid,
    /// It is not tried.
    Rejected,
    /// It was tried and did not succeed.
    Failed,
}

impl From<PayoutEnd> for PayoutStatus {
    fn from(end: PayoutEnd) -> Self {
        match end {
            PayoutEnd::Paid => Self::Paid,
            PayoutEnd::Rejected => Self::Rejected,
            PayoutEnd::Failed => Self::Failed,
        }
    }
}

/// What an operator says of a payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutDecision {
    /// What becomes of it.
    pub end: PayoutEnd,
    pub reason: Option<String>,
    /// What the payment is called where it was made.
    pub reference: Option<String>,
}

impl Payout {
    /// The payout after this decision.
    #[must_use]
    pub fn decided(mut self, decision: PayoutDecision, at: OffsetDateTime) -> Self {
        let PayoutDecision {
            end,
            reason,
            reference,
        } = decision;
        let status = end.into();
        self.status = status;
        self.updated_at = at;
        self.timeline.push(PayoutMilestone {
            status,
            at,
            by: Actor::Operator,
            reason,
            reference,
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_read_back() {
        for status in PayoutStatus::ALL {
            assert_eq!(PayoutStatus::from_word(status.as_str()), Some(status));
            assert_eq!(
                serde_json::to_string(&status).unwrap(),
                format!("\"{}\"", status.as_str())
            );
        }
        assert_eq!(PayoutStatus::from_word("paid"), None);
    }
}
