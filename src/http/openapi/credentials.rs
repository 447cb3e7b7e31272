//! What is said of a partner's own credentials.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::{ACCESS, signed};
use crate::errors::Code;
use crate::http::credentials::{RotateRequest, RotatedBody};
use crate::openapi::{Answer, Operation};

pub(super) fn rotate() -> Operation {
    let rotated = json!({
        "credential_id": "cred_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "api_key": "vs_sandbox_5f0c2b1e9a7d4c3b8e6f1a2b3c4d5e6f",
        "api_secret": "vss_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "previous_expires_at": "2026-11-21T12:00:00.123456Z",
    });
    signed(HttpMethod::Post, "/credentials/rotate", "rotateCredential")
        .says(
            ACCESS,
            "Rotate the credential",
            "Makes a new credential and gives the one that asks an end. If the answer is lost, ask again with the same one: \
             what was made before is taken back if it was never used. Takes no `Idempotency-Key`.",
        )
        .may_take::<RotateRequest>(json!({ "overlap_seconds": 3600 }))
        .answers(Answer::of::<RotatedBody<'_>>(201, "The new credential.", rotated))
        .refuses(&[Code::ValidationFailed, Code::CredentialLimitReached])
}
