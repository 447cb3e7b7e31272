//! OpenAPI operations of `/payouts`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::payouts;

use super::describe;
use super::orders::erasure_reason;
use crate::openapi::Operation;

pub(super) fn payouts() -> [Operation; payouts::OPERATIONS.len()] {
    [
        describe(
            payouts::LIST_PAYOUTS,
            "Payouts of all partners, newest first, with masked destinations.",
        )
        .list("Page of payouts.", pending_payout()),
        describe(
            payouts::GET_PAYOUT,
            "With its timeline and, for roles that may pay, the unmasked destination.",
        )
        .ok("The payout.", pending_payout()),
        describe(
            payouts::PAY_PAYOUT,
            "The money has reached its destination. The decision is final.",
        )
        .optional_json_body(decision())
        .ok("The payout after the decision.", decided_payout("PAID")),
        describe(
            payouts::REJECT_PAYOUT,
            "No transfer was attempted; the money returns to the wallet.",
        )
        .optional_json_body(decision())
        .ok("The payout after the decision.", decided_payout("REJECTED")),
        describe(
            payouts::FAIL_PAYOUT,
            "The transfer failed; the money returns to the wallet.",
        )
        .optional_json_body(decision())
        .ok("The payout after the decision.", decided_payout("FAILED")),
        describe(
            payouts::ERASE_PAYOUT,
            "Removes destination, references and reasons of a payout that is decided, for ever. The \
             amount, the ledger and the audit trail stay. A repeated call changes nothing.",
        )
        .json_body(erasure_reason())
        .ok(
            "What was erased.",
            json!({ "orders": 0, "payouts": 1, "next_after": null }),
        ),
    ]
}

fn decision() -> Value {
    json!({ "reason": "seen on the statement", "reference": "bank-4711" })
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
