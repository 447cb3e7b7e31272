//! OpenAPI operation of `/credentials/rotate`.

use serde_json::json;
use vouchsafe_wire::partner::operations;

use super::describe;
use crate::openapi::Operation;

pub(super) fn credentials() -> Vec<Operation> {
    vec![
        describe(operations::ROTATE_CREDENTIAL, "Creates a credential with the allowlist and the scopes of the one that signs this request, and sets an expiry on that one. If the response is lost, call again \
             with the same credential: a new credential from an earlier call is revoked if it was never used. Takes no \
             `Idempotency-Key`. Old and new credentials share their rate limits, and together they can be rotated 10 times (in the sandbox 1,000 times) in 24 \
             hours, unless the operator has set another number; above it the response is 429 with `Retry-After`.")
            .optional_json_body(json!({ "overlap_seconds": 3600 }))
            .created("The new credential.", json!({
                "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
                "api_key": "vs_sandbox_5f0c2b1e9a7d4c3b8e6f1a2b3c4d5e6f",
                "api_secret": "vss_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "previous_expires_at": "2026-11-21T12:00:00.123456Z",
            })),
    ]
}
