//! OpenAPI operations of partners, credentials, certification and wallets.

use serde_json::{Value, json};
use vouchsafe_wire::operator::{credentials, partners, wallets};

use super::describe;
use super::orders::erasure_reason;
use crate::openapi::{Operation, ResponseHeader};
use crate::partner::{example_certification, money};

pub(super) fn partners() -> [Operation; partners::OPERATIONS.len()] {
    [
        describe(partners::LIST_PARTNERS, "Newest first.")
            .list("Page of partners.", partner()),
        describe(partners::CREATE_PARTNER, "The sandbox also issues the first credential; its secret is \
            shown once. In production `credential` is null: issue one after recording certification and \
            agreement.")
            .json_body(json!({
                "name": "Example Ltd", "allowlist": ["203.0.113.0/24"], "limits": { "orders": { "quota": 500, "window_s": 60 } },
            }))
            .created("The partner.", created_partner())
            .with_header(ResponseHeader::Location),
        describe(partners::GET_PARTNER, "With its newest credentials, without keys and secrets.")
            .ok("The partner.", partner_with_credentials()),
        describe(partners::CHANGE_PARTNER, "Takes effect at once. Omitted fields stay unchanged; null \
            removes a term. Limits and ceilings are merged by class. A ceiling below what the live \
            credentials may send together is refused; a credential that is issued later raises it.")
            .json_body(json!({ "suspended": true, "approval_rule": { "amount_over": { "USD": 500 }, "first_orders": 3 } }))
            .ok("The partner after the change.", partner()),
        describe(partners::GET_CERTIFICATION, "The checks of the partner's client, as the partner sees \
            them. Sandbox only: in production PATCH the partner with `certified_at` after it has passed in \
            the sandbox.")
            .ok("The checks.", example_certification()),
        describe(partners::RESTART_CERTIFICATION, "Deletes the observations of the partner, so that every check is open again.")
            .no_content("The observations are deleted."),
        describe(partners::ERASE_PARTNER, "Removes references, metadata, destinations and reasons of the \
            partner's closed orders and decided payouts, for ever. Amounts, vouchers, events, the ledger \
            and the audit trail stay. Orders are erased in parts, for some seconds: repeat the call with \
            `next_after` as `after` until it is null.")
            .json_body(erasure_reason())
            .ok("What was erased.", json!({ "orders": 4000, "payouts": 12, "next_after": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f" })),
        describe(partners::LIST_LIMIT_USE, "For each live credential of the partner and each class of \
            requests: the limit, and the requests that count against it now in the whole deployment. A \
            credential and those that came from it by rotation share their limits.")
            .list("The use of the limits.", json!({
                "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "class": "orders", "quota": 100, "window_s": 60, "used": 12,
                "is_default": true,
            })),
    ]
}

pub(super) fn credentials() -> [Operation; credentials::OPERATIONS.len()] {
    [
        describe(
            credentials::LIST_CREDENTIALS,
            "Newest first, including revoked and ended ones, without keys and secrets.",
        )
        .list("Page of credentials.", listed_credential()),
        describe(
            credentials::ISSUE_CREDENTIAL,
            "Only this response contains the secret. A partner has at \
            most five valid credentials. `scopes` restricts what the credential may do.",
        )
        .optional_json_body(json!({ "allowlist": ["203.0.113.7"], "scopes": ["orders", "codes"] }))
        .created("The credential.", issued_credential()),
        describe(
            credentials::REVOKE_CREDENTIAL,
            "Takes effect at once and is permanent. Covers the \
            credentials that came from it by rotation, unless `descendants` is `keep`: an attacker with a \
            leaked secret can rotate it. Can be repeated.",
        )
        .query()
        .ok(
            "The credentials that were revoked.",
            json!({
                "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "revoked": ["cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e60"],
                "live_descendants": [],
            }),
        ),
        describe(
            credentials::ROTATE_CREDENTIAL,
            "Issues its successor with the same allowlist and scopes, \
            and ends the credential after an overlap. Only this response contains the secret. An unused \
            successor of an earlier rotation is revoked. It counts among the rotations in 24 hours that a \
            partner may request (`VOUCHSAFE_ROTATIONS_PER_DAY`), and is possible above them.",
        )
        .optional_json_body(json!({ "overlap_seconds": 3600 }))
        .created("The new credential.", rotated_credential()),
    ]
}

pub(super) fn wallets() -> [Operation; wallets::OPERATIONS.len()] {
    [
        describe(wallets::LIST_WALLETS, "As the partner sees them.").list("The wallets.", money::wallet()),
        describe(
            wallets::LIST_TRANSACTIONS,
            "All credits and debits of its wallets, newest first, as the partner sees them.",
        )
        .list("A page of transactions.", money::transaction()),
        describe(wallets::TOP_UP, POSTED_ONCE)
            .json_body(json!({ "amount": 100, "reference": "wire-77" }))
            .created("The ledger entry.", posting("TOP_UP", 100))
            .with_header(ResponseHeader::Replayed),
        describe(wallets::ADJUST, POSTED_ONCE)
            .json_body(json!({ "amount": -10, "reference": "wire-77" }))
            .created("The ledger entry.", posting("ADJUSTMENT", -10))
            .with_header(ResponseHeader::Replayed),
    ]
}

/// What top-ups and adjustments have in common.
const POSTED_ONCE: &str = "Posted once per reference: a repeated request returns the original entry; another amount with the same \
     reference is rejected. Top-ups and adjustments of a wallet have separate references.";

fn posting(kind: &str, amount: i64) -> Value {
    json!({
        "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "type": kind, "amount": amount, "currency": "USD",
        "balance_after": 190, "sequence": 2, "order_id": null, "payout_id": null, "reference": "wire-77",
        "created_at": "2026-11-20T12:00:00.123456Z",
    })
}

fn created_partner() -> Value {
    let mut created = partner();
    created["credential"] = issued_credential();
    created
}

fn partner_with_credentials() -> Value {
    let mut partner = partner();
    partner["credentials"] = json!([listed_credential()]);
    partner
}

fn rotated_credential() -> Value {
    let mut rotated = issued_credential();
    rotated["previous_expires_at"] = "2026-11-21T12:00:00.123456Z".into();
    rotated
}

/// A credential without its secret.
fn listed_credential() -> Value {
    json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "allowlist": null,
        "scopes": ["orders", "codes"],
        "not_before": "2026-11-20T12:00:00.123456Z",
        "not_after": null,
        "revoked_at": null,
        "rotated_from": null,
        "rotated_at": null,
        "first_used_at": null,
        "live": true,
    })
}

fn partner() -> Value {
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "name": "Example Ltd",
        "allowlist": ["203.0.113.0/24"],
        "limits": { "orders": { "quota": 500, "window_s": 60 } },
        "ceilings": {},
        "suspended": false,
        "codes_blocked": false,
        "approval_rule": null,
        "caps": { "pending_orders": 50, "spend_per_day": { "USD": 5000.00 } },
        "catalogue": null,
        "cancel_window_s": 86_400,
        "certified_at": null,
        "agreement_signed_at": null,
        "created_at": "2026-11-20T12:00:00.123456Z",
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}

fn issued_credential() -> Value {
    json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "api_key": "vs_sandbox_...",
        "api_secret": "...",
    })
}
