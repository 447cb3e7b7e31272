//! JSON representation of a payout, with its destination masked.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::ids::PayoutId;
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::payout::{Payout, PayoutMilestone, PayoutStatus};

use crate::json;

/// A payout from a wallet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Payout)]
pub struct PayoutBody<'a> {
    /// Identifies the payout.
    pub payout_id: PayoutId,
    /// Current status of the payout.
    status: PayoutStatus,
    /// Amount to pay out.
    amount: Money,
    /// Currency of the wallet.
    currency: Currency,
    #[schema(value_type = MaskedDestination)]
    destination: &'a RawValue,
    /// Your reference for the payout.
    #[schema(required)]
    reference: Option<&'a str>,
    /// When the payout was accepted.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
    /// Status history, oldest first.
    timeline: &'a [PayoutMilestone],
}

/// Where the amount goes, with masked values: at most their last four characters are shown. After an erasure
/// only its type is left.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema: the stored text is sent as it is")]
struct MaskedDestination {
    /// Kind of destination.
    #[schema(value_type = String)]
    r#type: String,
    #[serde(flatten)]
    fields: BTreeMap<String, String>,
}

impl<'a> PayoutBody<'a> {
    /// The wire representation of a payout.
    ///
    /// # Errors
    /// Returns an error if the stored masked destination is not JSON, which is a bug.
    pub fn of(payout: &'a Payout) -> Result<Self, serde_json::Error> {
        Ok(Self {
            payout_id: payout.payout_id,
            status: payout.status,
            amount: payout.money,
            currency: payout.money.currency,
            destination: serde_json::from_str(&payout.destination.masked)?,
            reference: payout.reference.as_deref(),
            created_at: payout.created_at,
            timeline: &payout.timeline,
        })
    }

    /// Extracts the id, which is the first field of a payout's JSON.
    #[must_use]
    pub fn id_in(body: &[u8]) -> Option<&str> {
        json::leading_text(body, "payout_id", PayoutId::TEXT_LENGTH)
    }
}
