//! OpenAPI operation of `/certification`.

use serde_json::{Value, json};
use strum::VariantArray as _;
use vouchsafe_domain::certification::check::Check;
use vouchsafe_domain::certification::result::CheckState;
use vouchsafe_wire::partner::operations;

use super::describe;
use crate::openapi::Operation;

pub(super) fn certification() -> Vec<Operation> {
    vec![
        describe(
            operations::GET_CERTIFICATION,
            "Returns the certification checklist and what the sandbox \
            has observed of your client. The latest attempt at each check counts until all are passed; \
            later failures are warnings. Production has no such route.",
        )
        .ok("The checklist.", example()),
    ]
}

/// A checklist with one check passed.
pub(crate) fn example() -> Value {
    let check = |check: &Check| {
        let is_passed = *check == Check::LostResponse;
        let state = if is_passed {
            CheckState::Passed
        } else {
            CheckState::NotSeen
        };
        json!({
            "check": check, "state": state, "at": is_passed.then_some("2026-11-20T12:00:00.123456Z"),
            "reason": if is_passed { "the client repeated the order under its key" } else { "no deciding trial was observed yet" },
            "requirement": check.requirement(), "advice": check.advice(),
        })
    };
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "passed": false, "first_passed_at": null, "passed_at": null,
        "checks": Check::VARIANTS.iter().map(check).collect::<Vec<_>>(), "warnings": [],
    })
}
