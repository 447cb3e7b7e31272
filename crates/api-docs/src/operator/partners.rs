//! OpenAPI operations of partners, credentials, certification and wallets.

use serde_json::{Value, json};
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::partner::{Partner, PartnerFilter};
use vouchsafe_domain::revocation::Revocation;
use vouchsafe_domain::wallet::Wallet;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::{NoFilter, WholeList};
use vouchsafe_wire::operator::credentials::{
    CredentialBody, IssueCredentialRequest, IssuedCredential, RevocationQuery,
};
use vouchsafe_wire::operator::limit_use::LimitUse;
use vouchsafe_wire::operator::partners::{CreatedPartner, NewPartner, PartnerPatch, PartnerWithCredentials};
use vouchsafe_wire::operator::wallets::PostingRequest;
use vouchsafe_wire::partner::certification::CertificationBody;
use vouchsafe_wire::partner::credentials::{RotateCredentialBody, RotatedCredentialBody};

use super::{PARTNERS, json_write_operation, read_operation};
use crate::openapi::{Operation, OperationResponse, ResponseHeader};
use crate::partner::{example_certification, money};

pub fn list(operation: Operation) -> Operation {
    read_operation(operation, "listPartners")
        .describe(PARTNERS, "List partners", "Newest first.")
        .list::<PartnerFilter, Partner>("Page of partners.", partner())
}

pub fn create(operation: Operation) -> Operation {
    let request = json!({
        "name": "Example Ltd", "allowlist": ["203.0.113.0/24"], "limits": { "orders": { "quota": 500, "window_s": 60 } },
    });
    let mut created = partner();
    created["credential"] = issued_credential();
    json_write_operation(operation, "createPartner")
        .describe(
            PARTNERS,
            "Create a partner",
            "The sandbox also issues the first credential; its secret is shown once. In production `credential` is null: \
             issue one after recording certification and agreement.",
        )
        .json_body::<NewPartner>(request)
        .response(OperationResponse::json::<CreatedPartner<'_>>(201, "The partner.", created).with_header(ResponseHeader::Location))
}

pub fn get(operation: Operation) -> Operation {
    let mut partner = partner();
    partner["credentials"] = json!([listed_credential()]);
    read_operation(operation, "getPartner")
        .describe(
            PARTNERS,
            "Get a partner",
            "With its newest credentials, without keys and secrets.",
        )
        .ok::<PartnerWithCredentials<'_>>("The partner.", partner)
}

pub fn change(operation: Operation) -> Operation {
    let patch =
        json!({ "suspended": true, "approval_rule": { "amount_over": { "USD": 500 }, "first_orders": 3 } });
    json_write_operation(operation, "changePartner")
    .describe(
        PARTNERS,
        "Change the terms of a partner",
        "Takes effect at once. Omitted fields stay unchanged; null removes a term. Limits and ceilings are merged by class. A \
         ceiling below what the live credentials may send together is refused; a credential that is issued later raises it.",
    )
    .json_body::<PartnerPatch>(patch)
    .ok::<Partner>("The partner after the change.", partner())
    .errors(&[Code::InvalidRowHmac])
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

pub fn list_credentials(operation: Operation) -> Operation {
    read_operation(operation, "listCredentials")
        .describe(
            PARTNERS,
            "List the credentials of a partner",
            "Newest first, including revoked and ended ones, without keys and secrets.",
        )
        .list::<NoFilter, CredentialBody>("Page of credentials.", listed_credential())
}

pub fn issue(operation: Operation) -> Operation {
    json_write_operation(operation, "issueCredential")
        .describe(
            PARTNERS,
            "Issue a credential",
            "Only this response contains the secret. A partner has at most five valid credentials. `scopes` restricts what the credential \
             may do.",
        )
        .optional_json_body::<IssueCredentialRequest>(json!({ "allowlist": ["203.0.113.7"], "scopes": ["orders", "codes"] }))
        .created::<IssuedCredential>("The credential.", issued_credential())
        .errors(&[
            Code::CertificationRequired,
            Code::CredentialLimitReached,
            Code::InvalidRowHmac,
        ])
}

pub fn revoke(operation: Operation) -> Operation {
    read_operation(operation, "revokeCredential")
        .describe(
            PARTNERS,
            "Revoke a credential",
            "Takes effect at once and is permanent. Covers the credentials that came from it by rotation, unless `descendants` is `keep`: \
             an attacker with a leaked secret can rotate it. Can be repeated.",
        )
        .query::<RevocationQuery>()
        .ok::<Revocation>(
            "The credentials that were revoked.",
            json!({
                "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "revoked": ["cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e60"],
                "live_descendants": [],
            }),
        )
        .errors(&[Code::ValidationFailed])
}

pub fn rotate(operation: Operation) -> Operation {
    let mut rotated = issued_credential();
    rotated["previous_expires_at"] = "2026-11-21T12:00:00.123456Z".into();
    json_write_operation(operation, "rotateCredential")
        .describe(
            PARTNERS,
            "Rotate a credential",
            "Issues its successor with the same allowlist and scopes, and ends the credential after an overlap. Only this response contains the secret. An unused successor of an earlier rotation is revoked. It counts among the rotations in 24 hours that a partner may request (`VOUCHSAFE_ROTATIONS_PER_DAY`), and is possible above them.",
        )
        .optional_json_body::<RotateCredentialBody>(json!({ "overlap_seconds": 3600 }))
        .created::<RotatedCredentialBody<'_>>("The new credential.", rotated)
        .errors(&[
            Code::CredentialLimitReached,
            Code::CredentialNotLive,
            Code::InvalidRowHmac,
        ])
}

pub fn certification(operation: Operation) -> Operation {
    read_operation(operation, "getCertification")
        .describe(
            PARTNERS,
            "Get the certification of a partner",
            "The checks of the partner's client, as the partner sees them. Sandbox only: in production PATCH the partner with \
             `certified_at` after it has passed in the sandbox.",
        )
        .ok::<CertificationBody>("The checks.", example_certification())
        .errors(&[Code::RouteNotFound])
}

pub fn restart_certification(operation: Operation) -> Operation {
    read_operation(operation, "restartCertification")
        .describe(
            PARTNERS,
            "Restart a certification",
            "Deletes the observations of the partner, so that every check is open again.",
        )
        .response(OperationResponse::empty(204, "The observations are deleted."))
        .errors(&[Code::RouteNotFound])
}

pub fn list_limit_use(operation: Operation) -> Operation {
    let limit_use = json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "class": "orders", "quota": 100, "window_s": 60, "used": 12,
        "is_default": true,
    });
    read_operation(operation, "listLimitUse")
        .describe(
            PARTNERS,
            "List the use of rate limits",
            "For each live credential of the partner and each class of requests: the limit, and the requests that count against it now in the whole \
             deployment. A credential and those that came from it by rotation share their limits.",
        )
        .list::<WholeList, LimitUse>("The use of the limits.", limit_use)
}

pub fn list_wallets(operation: Operation) -> Operation {
    read_operation(operation, "listWallets")
        .describe(
            PARTNERS,
            "List the wallets of a partner",
            "As the partner sees them.",
        )
        .list::<WholeList, Wallet>("The wallets.", money::wallet())
}

pub fn list_transactions(operation: Operation) -> Operation {
    read_operation(operation, "listTransactions")
        .describe(
            PARTNERS,
            "List the transactions of a partner",
            "All credits and debits of its wallets, newest first, as the partner sees them.",
        )
        .list::<TransactionFilter, Transaction>("A page of transactions.", money::transaction())
}

pub fn top_up(operation: Operation) -> Operation {
    posting(operation, "topUp", "Top up a wallet", "TOP_UP", 100)
}

pub fn adjust(operation: Operation) -> Operation {
    posting(
        operation,
        "adjust",
        "Adjust the balance of a wallet",
        "ADJUSTMENT",
        -10,
    )
}

fn posting(
    operation: Operation,
    id: &'static str,
    summary: &'static str,
    kind: &'static str,
    amount: i64,
) -> Operation {
    let transaction = json!({
        "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "type": kind, "amount": amount, "currency": "USD",
        "balance_after": 190, "sequence": 2, "order_id": null, "payout_id": null, "reference": "wire-77",
        "created_at": "2026-11-20T12:00:00.123456Z",
    });
    json_write_operation(operation, id)
        .describe(
            PARTNERS,
            summary,
            "Posted once per reference: a repeated request returns the original entry; another amount with the same \
             reference is rejected. Top-ups and adjustments of a wallet have separate references.",
        )
        .json_body::<PostingRequest>(json!({ "amount": amount, "reference": "wire-77" }))
        .response(OperationResponse::json::<Transaction>(201, "The ledger entry.", transaction).with_header(ResponseHeader::Replayed))
        .errors(&[
            Code::StepUpRequired,
            Code::InsufficientFunds,
            Code::IdempotencyInProgress,
            Code::IdempotencyKeyReused,
        ])
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
