//! What is said of partners, their credentials and their wallets.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};
use vouchsafe_actors::domain::money::Currency;

use super::{PARTNERS, looks, writes, writes_json};
use crate::admin::credentials::{IssuedCredential, NewCredential, ShownCredential};
use crate::admin::partners::{Created, NewPartner, Patch, WithCredentials};
use crate::admin::wallets::BookingRequest;
use crate::errors::Code;
use crate::http::TransactionBody;
use crate::http::certification::CertificationBody;
use crate::http::openapi::example_certification;
use crate::openapi::{Answer, Header, Operation};
use crate::store::Partner;

pub(super) fn operations() -> [Operation; 11] {
    [
        list(),
        create(),
        get(),
        change(),
        list_credentials(),
        issue(),
        revoke(),
        certification(),
        start_over(),
        top_up(),
        adjust(),
    ]
}

fn list() -> Operation {
    looks("/partners", "listPartners")
        .says(PARTNERS, "List partners", "Newest first.")
        .paged()
        .answers(Answer::page_of::<Partner>("Partners.", partner()))
}

fn create() -> Operation {
    let request = json!({
        "name": "Example Ltd", "allowlist": ["203.0.113.0/24"], "limits": { "orders": { "quota": 500, "window_s": 60 } },
    });
    let mut created = partner();
    created["credential"] = credential();
    writes_json(HttpMethod::Post, "/partners", "createPartner")
        .says(
            PARTNERS,
            "Take a partner in",
            "In the sandbox with its first credential, whose secret is shown once. In production `credential` is null: it \
             is issued when certification and agreement are on record.",
        )
        .takes::<NewPartner>(request)
        .answers(Answer::of::<Created<'_>>(201, "The partner.", created).with(Header::Location))
}

fn get() -> Operation {
    let mut partner = partner();
    partner["credentials"] = json!([shown()]);
    one(looks("/partners/{partner_id}", "getPartner"))
        .says(
            PARTNERS,
            "Get a partner",
            "With its newest credentials, of which neither key nor secret is known any more.",
        )
        .answers(Answer::of::<WithCredentials<'_>>(200, "The partner.", partner))
}

fn change() -> Operation {
    let patch =
        json!({ "suspended": true, "approval_rule": { "amount_over": { "USD": 500 }, "first_orders": 3 } });
    one(writes_json(
        HttpMethod::Patch,
        "/partners/{partner_id}",
        "changePartner",
    ))
    .says(
        PARTNERS,
        "Change the terms of a partner",
        "In force at once. What is not named stays; null takes a term away. Limits are merged by class.",
    )
    .takes::<Patch>(patch)
    .answers(Answer::of::<Partner>(200, "The partner as it is now.", partner()))
}

/// A credential as it is shown after the answer that made it.
fn shown() -> Value {
    json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "allowlist": null,
        "not_before": "2026-11-20T12:00:00.123456Z",
        "not_after": null,
        "revoked_at": null,
        "rotated_from": null,
        "rotated_at": null,
        "first_used_at": null,
        "live": true,
    })
}

fn list_credentials() -> Operation {
    one(looks("/partners/{partner_id}/credentials", "listCredentials"))
        .says(
            PARTNERS,
            "List the credentials of a partner",
            "Newest first, those out of force too; neither key nor secret is known any more.",
        )
        .paged()
        .answers(Answer::page_of::<ShownCredential>("Credentials.", shown()))
}

fn issue() -> Operation {
    let path = "/partners/{partner_id}/credentials";
    one(writes_json(HttpMethod::Post, path, "issueCredential"))
        .says(
            PARTNERS,
            "Issue a credential",
            "The secret is shown in this answer alone. A partner has at most five live ones.",
        )
        .may_take::<NewCredential>(json!({ "allowlist": ["203.0.113.7"] }))
        .answers(Answer::of::<IssuedCredential>(
            201,
            "The credential.",
            credential(),
        ))
        .refuses(&[Code::CertificationRequired, Code::CredentialLimitReached])
}

fn revoke() -> Operation {
    writes(
        HttpMethod::Delete,
        "/credentials/{credential_id}",
        "revokeCredential",
    )
    .says(
        PARTNERS,
        "Revoke a credential",
        "At once, and for good. May be repeated.",
    )
    .path("credential_id", "Which credential.", CredentialId::schema())
    .answers(Answer::empty(204, "It is revoked."))
    .refuses(&[Code::CredentialNotFound])
}

fn certification() -> Operation {
    one(looks("/partners/{partner_id}/certification", "getCertification"))
        .says(
            PARTNERS,
            "Get the certification of a partner",
            "What the sandbox has seen of its client, point by point, as the partner reads it. In production there is no such \
             route: there PATCH the partner with `certified_at` once the sandbox says that it has passed.",
        )
        .answers(Answer::of::<CertificationBody>(
            200,
            "The checklist.",
            example_certification(),
        ))
        .refuses(&[Code::RouteNotFound])
}

fn start_over() -> Operation {
    let path = "/partners/{partner_id}/certification";
    one(writes(HttpMethod::Delete, path, "restartCertification"))
        .says(
            PARTNERS,
            "Begin a certification anew",
            "What was seen of the partner is forgotten, and every point is open again.",
        )
        .answers(Answer::empty(204, "Nothing was seen yet."))
        .refuses(&[Code::RouteNotFound])
}

fn top_up() -> Operation {
    booking("top-ups", "topUp", "Add money to a wallet", "TOP_UP", 100)
}

fn adjust() -> Operation {
    booking(
        "adjustments",
        "adjust",
        "Correct the balance of a wallet",
        "ADJUSTMENT",
        -10,
    )
}

fn booking(
    path: &str,
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
    let path = format!("/partners/{{partner_id}}/wallets/{{currency}}/{path}");
    one(writes_json(HttpMethod::Post, &path, id))
        .says(
            PARTNERS,
            summary,
            "Booked once under its reference: a repetition is answered with the entry of then, another amount under the \
             same reference is refused. Each wallet counts its own references.",
        )
        .path("currency", "Which wallet; one that is not there yet is made.", Currency::schema())
        .takes::<BookingRequest>(json!({ "amount": amount, "reference": "wire-77" }))
        .answers(Answer::of::<TransactionBody>(201, "The entry.", transaction).with(Header::Replayed))
        .refuses(&[
            Code::InsufficientFunds,
            Code::IdempotencyInProgress,
            Code::IdempotencyKeyReused,
        ])
}

/// Of one partner.
fn one(operation: Operation) -> Operation {
    operation
        .path("partner_id", "Which partner.", PartnerId::schema())
        .refuses(&[Code::PartnerNotFound])
}

fn partner() -> Value {
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "name": "Example Ltd",
        "allowlist": ["203.0.113.0/24"],
        "limits": { "orders": { "quota": 500, "window_s": 60 } },
        "suspended": false,
        "approval_rule": null,
        "catalogue": null,
        "cancel_window_s": 86_400,
        "certified_at": null,
        "agreement_signed_at": null,
        "created_at": "2026-11-20T12:00:00.123456Z",
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}

fn credential() -> Value {
    json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "api_key": "vs_sandbox_...",
        "api_secret": "...",
    })
}
