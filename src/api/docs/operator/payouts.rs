//! OpenAPI operations of `/payouts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::payout::PayoutStatus;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::payouts::{PayoutDecisionRequest, PayoutOfPartner};

use super::{PAYOUTS, json_write_operation, read_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, enum_text};

pub(super) fn operations() -> [Operation; 5] {
    [list(), get(), pay(), reject(), fail()]
}

fn list() -> Operation {
    read_operation("/payouts", "listPayouts")
        .describe(
            PAYOUTS,
            "List payouts",
            "Payouts of all partners, newest first, with masked destinations.",
        )
        .query_parameter("partner_id", "Filter by partner.", PartnerId::schema())
        .query_parameter(
            "status",
            "Filter by status.",
            enum_text(PayoutStatus::ALL.map(PayoutStatus::as_str)),
        )
        .paginated()
        .response(OperationResponse::page::<PayoutOfPartner>(
            "Page of payouts.",
            pending_payout(),
        ))
}

fn get() -> Operation {
    read_operation("/payouts/{payout_id}", "getPayout")
        .describe(
            PAYOUTS,
            "Get a payout",
            "With its timeline and, for roles that may pay, the unmasked destination.",
        )
        .path_parameter("payout_id", "Payout ID.", PayoutId::schema())
        .response(OperationResponse::json::<PayoutOfPartner>(
            200,
            "The payout.",
            pending_payout(),
        ))
        .errors(&[Code::PayoutNotFound])
}

fn pay() -> Operation {
    decision_operation("/payouts/{payout_id}/pay", "payPayout", "PAID").describe(
        PAYOUTS,
        "Record a payout as paid",
        "The money has reached its destination. The decision is final.",
    )
}

fn reject() -> Operation {
    decision_operation("/payouts/{payout_id}/reject", "rejectPayout", "REJECTED").describe(
        PAYOUTS,
        "Reject a payout",
        "No transfer was attempted; the money returns to the wallet.",
    )
}

fn fail() -> Operation {
    decision_operation("/payouts/{payout_id}/fail", "failPayout", "FAILED").describe(
        PAYOUTS,
        "Record a payout as failed",
        "The transfer failed; the money returns to the wallet.",
    )
}

fn decision_operation(path: &str, id: &'static str, status: &str) -> Operation {
    json_write_operation(HttpMethod::Post, path, id)
        .path_parameter("payout_id", "Payout ID.", PayoutId::schema())
        .optional_json_body::<PayoutDecisionRequest>(
            json!({ "reason": "seen on the statement", "reference": "bank-4711" }),
        )
        .response(OperationResponse::json::<PayoutOfPartner>(
            200,
            "The payout after the decision.",
            decided_payout(status),
        ))
        .errors(&[
            Code::PayoutNotFound,
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
