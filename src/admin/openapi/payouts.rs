//! What is said of `/payouts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::{PartnerId, PayoutId};
use vouchsafe_actors::domain::payout::PayoutStatus;

use super::{PAYOUTS, looks, writes_json};
use crate::admin::payouts::{PayoutOfPartner, PayoutWord};
use crate::errors::Code;
use crate::openapi::{Answer, Operation, word};

pub(super) fn operations() -> [Operation; 5] {
    [list(), get(), pay(), reject(), fail()]
}

fn list() -> Operation {
    looks("/payouts", "listPayouts")
        .says(
            PAYOUTS,
            "List payouts",
            "Every partner's payouts, newest first; their destinations are masked.",
        )
        .query("partner_id", "Only those of this partner.", PartnerId::schema())
        .query(
            "status",
            "Only those in this status.",
            word(PayoutStatus::ALL.map(PayoutStatus::as_str)),
        )
        .paged()
        .answers(Answer::page_of::<PayoutOfPartner>("Payouts.", pending()))
}

fn get() -> Operation {
    looks("/payouts/{payout_id}", "getPayout")
        .says(PAYOUTS, "Get a payout", "Where it stands, and how it came there.")
        .path("payout_id", "Which payout.", PayoutId::schema())
        .answers(Answer::of::<PayoutOfPartner>(200, "The payout.", pending()))
        .refuses(&[Code::PayoutNotFound])
}

fn pay() -> Operation {
    decides("/payouts/{payout_id}/pay", "payPayout", "PAID").says(
        PAYOUTS,
        "Note that a payout was paid",
        "The money has reached its destination. Once said, it stays so.",
    )
}

fn reject() -> Operation {
    decides("/payouts/{payout_id}/reject", "rejectPayout", "REJECTED").says(
        PAYOUTS,
        "Reject a payout",
        "It is not tried; the money goes back to the wallet.",
    )
}

fn fail() -> Operation {
    decides("/payouts/{payout_id}/fail", "failPayout", "FAILED").says(
        PAYOUTS,
        "Note that a payout has failed",
        "It was tried and did not succeed; the money goes back to the wallet.",
    )
}

fn decides(path: &str, id: &'static str, status: &str) -> Operation {
    writes_json(HttpMethod::Post, path, id)
        .path("payout_id", "Which payout.", PayoutId::schema())
        .may_take::<PayoutWord>(json!({ "reason": "seen on the statement", "reference": "bank-4711" }))
        .answers(Answer::of::<PayoutOfPartner>(
            200,
            "The payout since.",
            decided(status),
        ))
        .refuses(&[
            Code::PayoutNotFound,
            Code::PayoutNotPending,
            Code::IdempotencyInProgress,
        ])
}

fn pending() -> Value {
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

fn decided(status: &str) -> Value {
    let at = "2026-11-20T15:00:00.123456Z";
    let mut payout = pending();
    payout["status"] = status.into();
    payout["updated_at"] = at.into();
    if let Some(timeline) = payout["timeline"].as_array_mut() {
        timeline.push(json!({
            "status": status, "at": at, "by": "operator", "reason": "seen on the statement", "reference": "bank-4711",
        }));
    }
    payout
}
