//! OpenAPI operations of `/credentials` and `/me`.

use serde_json::{Value, json};
use vouchsafe_wire::partner::operations;

use super::describe;
use crate::openapi::Operation;

pub(super) fn credentials() -> Vec<Operation> {
    vec![
        describe(
            operations::GET_ME,
            "Returns your account, the credential that sent the request, its \
            scopes, and what it has used of its rate limits on all nodes. The first request of a new \
            client: it shows that credentials, allowlist and environment are right.",
        )
        .ok("Your account.", me()),
        describe(
            operations::LIST_CREDENTIALS,
            "Lists your credentials, newest first, including those that \
            ended within the last 90 days, without keys and secrets.",
        )
        .list("A page of credentials.", credential()),
        describe(
            operations::ROTATE_CREDENTIAL,
            "Creates a credential with the allowlist and the scopes of \
            the one that signs this request, and sets an expiry on that one. If the response is lost, call \
            again with the same credential: a new credential from an earlier call is revoked if it was \
            never used. Takes no `Idempotency-Key`. Old and new credentials share their rate limits, and \
            together they can be rotated 10 times (in the sandbox 1,000 times) in 24 hours, unless the \
            operator has set another number; above it the response is 429 with `Retry-After`.",
        )
        .optional_json_body(json!({ "overlap_seconds": 3600 }))
        .created(
            "The new credential.",
            json!({
                "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "api_key": "vs_sandbox_5f0c2b1e9a7d4c3b8e6f1a2b3c4d5e6f",
                "api_secret": "vss_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "previous_expires_at": "2026-11-21T12:00:00.123456Z",
            }),
        ),
    ]
}

fn credential() -> Value {
    json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "allowlist": null, "scopes": null, "not_before": "2026-11-20T12:00:00.123456Z", "not_after": null, "revoked_at": null,
        "rotated_from": null, "rotated_at": null, "first_used_at": null, "live": true, "current": true,
    })
}

fn me() -> Value {
    let limit = |class: &str, quota: u32, window_s: u32, used: u32| {
        json!({
            "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "class": class, "quota": quota, "window_s": window_s,
            "used": used, "is_default": true,
        })
    };
    json!({
        "environment": "sandbox", "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "name": "Acme",
        "allowlist": ["203.0.113.0/24"], "cancel_window_s": 86_400, "credential": credential(),
        "scopes": ["orders", "codes", "read", "payouts", "webhooks", "credentials"],
        "limits": [
            limit("orders", 100, 60, 12), limit("general", 1_000, 3_600, 40), limit("auth", 5, 60, 0), limit("vouchers", 100, 60, 3),
        ],
    })
}
