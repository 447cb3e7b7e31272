//! Operations and bodies of `/payouts`.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::payout::{Payout, PayoutDecision, PayoutOutcome, PayoutSearch};

use super::erasure::{ErasureReport, ErasureRequest};
use super::text::{Reason, Reference};
use crate::column::col;
use crate::error_code::Code;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::{Always, Never};
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::partner::payouts::body::PayoutBody;

operations! {
    OperatorAccess;
    LIST_PAYOUTS: Operation<PayoutSearch, Page<PayoutOfPartner<'static>>> =
        get("/payouts", Role::Viewer, "listPayouts", "List payouts")
            .columns(&[
                col("Payout", "payout_id"),
                col("Partner", "partner_id"),
                col("Status", "status"),
                col("Amount", "amount currency"),
                col("Reference", "reference").text(24),
                col("Created", "created_at"),
            ]);
    GET_PAYOUT: Operation<(), PayoutOfPartner<'static>> = get("/payouts/{payout_id}", Role::Viewer, "getPayout", "Get a payout");
    PAY_PAYOUT: Operation<PayoutDecisionRequest, PayoutOfPartner<'static>> =
        post("/payouts/{payout_id}/pay", Role::Admin, Always(&[ChangeKind::PayoutPay]), "payPayout", "Record a payout as paid")
            .errors(&[Code::StepUpRequired, Code::PayoutNotPending, Code::IdempotencyInProgress]);
    REJECT_PAYOUT: Operation<PayoutDecisionRequest, PayoutOfPartner<'static>> =
        post("/payouts/{payout_id}/reject", Role::Admin, Always(&[ChangeKind::PayoutReject]), "rejectPayout", "Reject a payout")
            .errors(&[Code::StepUpRequired, Code::PayoutNotPending, Code::IdempotencyInProgress]);
    FAIL_PAYOUT: Operation<PayoutDecisionRequest, PayoutOfPartner<'static>> =
        post("/payouts/{payout_id}/fail", Role::Admin, Always(&[ChangeKind::PayoutFail]), "failPayout", "Record a payout as failed")
            .errors(&[Code::StepUpRequired, Code::PayoutNotPending, Code::IdempotencyInProgress]);
    ERASE_PAYOUT: Operation<ErasureRequest, ErasureReport> =
        post("/payouts/{payout_id}/erase", Role::Admin, Never, "erasePayout", "Erase the personal data of a payout")
            .errors(&[Code::NotClosed]);
}

/// A payout and its partner.
#[derive(Serialize, ToSchema)]
pub struct PayoutOfPartner<'a> {
    partner_id: PartnerId,
    #[serde(flatten)]
    payout: PayoutBody<'a>,
    /// Time of the last change.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
}

impl<'a> PayoutOfPartner<'a> {
    /// The wire representation of a payout.
    ///
    /// # Errors
    /// Returns an error if the stored masked destination is not JSON, which is a bug.
    pub fn of(payout: &'a Payout) -> Result<Self, serde_json::Error> {
        Ok(Self {
            partner_id: payout.partner_id,
            payout: PayoutBody::of(payout)?,
            updated_at: payout.updated_at,
        })
    }

    #[must_use]
    pub const fn payout_id(&self) -> PayoutId {
        self.payout.payout_id
    }
}

/// Details of a payout decision, all optional.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct PayoutDecisionRequest {
    /// Reason, shown to the partner in the timeline.
    #[serde(default)]
    #[arg(long)]
    reason: Option<Reason>,
    /// Reference of the payment at the bank.
    #[serde(default)]
    #[arg(
        long,
        help = "Reference of the payment at the bank, e.g. the number of a statement"
    )]
    reference: Option<Reference>,
}

impl PayoutDecisionRequest {
    /// The decision with this outcome.
    #[must_use]
    pub fn decision(&self, outcome: PayoutOutcome) -> PayoutDecision {
        PayoutDecision {
            outcome,
            reason: self.reason.clone().map(Into::into),
            reference: self.reference.clone().map(Into::into),
        }
    }
}
