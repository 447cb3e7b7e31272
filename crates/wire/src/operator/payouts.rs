//! Bodies and filters of `/payouts`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::payout::{
    Payout, PayoutDecision, PayoutFilter, PayoutMilestone, PayoutOutcome, PayoutStatus,
};

use super::decision::{validate_reason, validate_reference};
use crate::error_body::InvalidRequest;
use crate::page::PageRequest;

pub const FILTERS: [&str; 2] = ["partner_id", "status"];

/// Parses the filters.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<PayoutFilter, InvalidRequest> {
    Ok(PayoutFilter {
        partner_id: page.parsed_filter("partner_id")?,
        status: page.enum_filter("status", &PayoutStatus::ALL, PayoutStatus::as_str)?,
    })
}

/// A payout and its partner.
#[derive(Serialize, ToSchema)]
pub struct PayoutOfPartner {
    partner_id: PartnerId,
    /// Payout ID.
    pub payout_id: PayoutId,
    /// Status.
    status: PayoutStatus,
    /// Amount in `currency`.
    amount: Money,
    /// Currency of `amount`.
    currency: Currency,
    /// Destination of the money, with masked numbers.
    #[schema(value_type = BTreeMap<String, String>)]
    destination: Box<RawValue>,
    /// The partner's reference.
    #[schema(required)]
    reference: Option<String>,
    /// Status changes, oldest first.
    timeline: Vec<PayoutMilestone>,
    /// Time at which it was accepted.
    #[serde(with = "vouchsafe_domain::timestamp")]
    created_at: OffsetDateTime,
    /// Time of the last change.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

impl PayoutOfPartner {
    /// The wire representation of a payout.
    ///
    /// # Errors
    /// Returns an error if the stored masked destination is not JSON, which is a bug.
    pub fn of(payout: Payout) -> Result<Self, serde_json::Error> {
        let destination = RawValue::from_string(payout.destination.masked.to_string())?;
        Ok(Self {
            partner_id: payout.partner_id,
            payout_id: payout.payout_id,
            status: payout.status,
            amount: payout.money,
            currency: payout.money.currency,
            destination,
            reference: payout.reference,
            timeline: payout.timeline,
            created_at: payout.created_at,
            updated_at: payout.updated_at,
        })
    }
}

/// Details of a payout decision, all optional.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PayoutDecisionRequest {
    /// Reason, shown to the partner in the timeline.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 500)]
    reason: Option<String>,
    /// Reference of the payment at the bank.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128)]
    reference: Option<String>,
}

impl PayoutDecisionRequest {
    /// The decision with trimmed texts.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn decision(&self, outcome: PayoutOutcome) -> Result<PayoutDecision, InvalidRequest> {
        Ok(PayoutDecision {
            outcome,
            reason: self.reason.as_deref().map(validate_reason).transpose()?,
            reference: self.reference.as_deref().map(validate_reference).transpose()?,
        })
    }
}
