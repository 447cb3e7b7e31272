//! OpenAPI operations of `/payouts`.

use serde_json::{Value, json};
use vouchsafe_domain::payout::PayoutSearch;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::payouts::{PayoutDecisionRequest, PayoutOfPartner};

use super::{PAYOUTS, json_write_operation, read_operation};
use crate::openapi::Operation;

pub fn list(operation: Operation) -> Operation {
    read_operation(operation, "listPayouts")
        .describe(
            PAYOUTS,
            "List payouts",
            "Payouts of all partners, newest first, with masked destinations.",
        )
        .list::<PayoutSearch, PayoutOfPartner<'_>>("Page of payouts.", pending_payout())
}

pub fn get(operation: Operation) -> Operation {
    read_operation(operation, "getPayout")
        .describe(
            PAYOUTS,
            "Get a payout",
            "With its timeline and, for roles that may pay, the unmasked destination.",
        )
        .ok::<PayoutOfPartner<'_>>("The payout.", pending_payout())
}

pub fn pay(operation: Operation) -> Operation {
    decision_operation(operation, "payPayout", "PAID").describe(
        PAYOUTS,
        "Record a payout as paid",
        "The money has reached its destination. The decision is final.",
    )
}

pub fn reject(operation: Operation) -> Operation {
    decision_operation(operation, "rejectPayout", "REJECTED").describe(
        PAYOUTS,
        "Reject a payout",
        "No transfer was attempted; the money returns to the wallet.",
    )
}

pub fn fail(operation: Operation) -> Operation {
    decision_operation(operation, "failPayout", "FAILED").describe(
        PAYOUTS,
        "Record a payout as failed",
        "The transfer failed; the money returns to the wallet.",
    )
}

fn decision_operation(operation: Operation, id: &'static str, status: &str) -> Operation {
    json_write_operation(operation, id)
        .optional_json_body::<PayoutDecisionRequest>(
            json!({ "reason": "seen on the statement", "reference": "bank-4711" }),
        )
        .ok::<PayoutOfPartner<'_>>("The payout after the decision.", decided_payout(status))
        .errors(&[
            Code::StepUpRequired,
            Code::PayoutNotPending,
            Code::IdempotencyInProgress,
        ])
}

fn pending_payout() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "payout_id": "po_0198c1f2a3b47c5d8e9f0a1b2c3d4e61",
        "status": "PENDING",
        "amount": 700,
        "currency": "USD",
        "destination": { "type": "bank_account", "iban": "••••3000" },
        "reference": "november",
        "timeline": [{ "status": "PENDING", "at": at, "by": "partner", "reason": null, "reference": null }],
        "created_at": at,
        "updated_at": at,
    })
}

fn decided_payout(status: &str) -> Value {
    let at = "2026-11-20T15:00:00.123456Z";
    let mut payout = pending_payout();
    payout["status"] = status.into();
    payout["updated_at"] = at.into();
    if let Some(timeline) = payout["timeline"].as_array_mut() {
        timeline.push(json!({
            "status": status, "at": at, "by": "operator", "reason": "seen on the statement", "reference": "bank-4711",
        }));
    }
    payout
}
