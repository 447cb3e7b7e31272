//! `POST /credentials/rotate`: credential rotation by the partner.
//!
//! Creates a credential and sets an expiry on the credential that signed the request. The secret is in this response only.
//! After a lost response the client repeats the request with the same credential: a new credential that was never used is
//! revoked and another one is created. A repetition may bring the expiry forward but never postpones it.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_domain::ids::CredentialId;

use crate::api::error::ApiError;
use crate::api::middleware::authentication::{Auth, VerifiedRequest};
use crate::config_change;
use crate::service::Service;
use vouchsafe_store::{AuditActor, MAX_LIVE_CREDENTIALS, RotationOutcome, RotationRequest, RotationResult};
use crate::telemetry::trace;
use vouchsafe_security::credential::{ApiKeyPair, generate_key_pair};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::json::{self, JsonObject};

/// Default overlap (contract §3): a day.
const DEFAULT_OVERLAP_S: u32 = 86_400;

/// Maximum overlap: a week.
const MAX_OVERLAP_S: u32 = 604_800;

/// Options of a credential rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = RotateRequest)]
#[serde(deny_unknown_fields)]
pub struct RotateCredentialBody {
    /// How long the current credential stays valid, in seconds. Default: 86400 (a day).
    #[serde(default)]
    #[schema(maximum = 604_800)]
    overlap_seconds: Option<u32>,
}

/// The new credential. The secret is returned only once.
#[derive(Serialize, ToSchema)]
#[schema(as = RotatedCredential)]
pub struct RotatedCredentialBody<'a> {
    /// Identifies the credential. Not secret.
    credential_id: CredentialId,
    /// Value for the `X-API-Key` header.
    api_key: String,
    /// Value for the `X-API-Secret` header, and the key of the request signature.
    api_secret: &'a str,
    /// When the previous credential expires.
    #[serde(with = "vouchsafe_domain::timestamp")]
    previous_expires_at: OffsetDateTime,
}

/// `POST /credentials/rotate`. The body is optional.
///
/// # Errors
/// `VALIDATION_FAILED`, `CREDENTIAL_LIMIT_REACHED`, and `INVALID_CREDENTIALS` if the signing credential ended meanwhile.
pub async fn rotate(
    service: web::Data<Service>,
    signed: VerifiedRequest<Auth>,
) -> Result<HttpResponse, ApiError> {
    let overlap = parse_overlap(&signed.body)?;
    let partner_id = signed.caller.partner_id();
    let key_pair = generate_key_pair(service.environment, getrandom::fill).map_err(|error| {
        tracing::error!(error.message = %error, "cannot read random bytes from the operating system");
        ApiError::unavailable()
    })?;
    let now = service.clock.now();
    let rotation = RotationRequest {
        credential_id: signed.caller.credential_id,
        next: key_pair.to_credential(partner_id, now),
        overlap,
        now,
    };
    let actor = AuditActor::partner(partner_id, trace::current_trace_id());
    let rotated = config_change::apply(&service, |service| async move {
        let rotated = service.store.credentials.rotate(rotation, actor).await?;
        if let RotationOutcome::Rotated(rotation) = &rotated {
            apply_rotation(&service, rotation, now);
        }
        Ok(rotated)
    });
    match rotated.await? {
        RotationOutcome::Rotated(rotation) => Ok(rotated_response(&key_pair, &rotation)),
        RotationOutcome::NotLive => Err(ApiError::new(
            Code::InvalidCredentials,
            "the credential that signed this request has expired or was revoked; use an active one",
        )),
        RotationOutcome::TooMany => Err(ApiError::new(
            Code::CredentialLimitReached,
            format!(
                "the limit of {MAX_LIVE_CREDENTIALS} active credentials is reached; wait until one expires, or ask \
                     the operator to revoke one"
            ),
        )),
    }
}

fn parse_overlap(body: &[u8]) -> Result<Duration, ApiError> {
    let request = if body.is_empty() {
        RotateCredentialBody::default()
    } else {
        json::parse::<JsonObject<RotateCredentialBody>>(body)?.0
    };
    let seconds = request.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_S);
    if seconds > MAX_OVERLAP_S {
        let message = format!("expected 0 to {MAX_OVERLAP_S} seconds");
        return Err(ApiError::invalid_field("overlap_seconds", message));
    }
    Ok(Duration::seconds(seconds.into()))
}

/// Applies the committed rotation in memory. The new credential comes first, so that the partner always has a valid one.
fn apply_rotation(service: &Service, rotation: &RotationResult, now: OffsetDateTime) {
    service.registry.upsert_credential(rotation.next.clone());
    service.registry.upsert_credential(rotation.previous.clone());
    for credential_id in &rotation.revoked {
        service.registry.revoke(*credential_id, now);
    }
}

fn rotated_response(key_pair: &ApiKeyPair, rotation: &RotationResult) -> HttpResponse {
    HttpResponse::Created()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(RotatedCredentialBody {
            credential_id: rotation.next.credential_id,
            api_key: key_pair.api_key.to_string(),
            api_secret: key_pair.api_secret.expose(),
            previous_expires_at: rotation.previous_ends_at,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_defaults_to_a_day_and_is_at_most_a_week() {
        for (body, expected) in [
            ("", Ok(DEFAULT_OVERLAP_S)),
            ("{}", Ok(DEFAULT_OVERLAP_S)),
            (r#"{"overlap_seconds":null}"#, Ok(DEFAULT_OVERLAP_S)),
            (r#"{"overlap_seconds":0}"#, Ok(0)),
            (r#"{"overlap_seconds":604800}"#, Ok(MAX_OVERLAP_S)),
            (r#"{"overlap_seconds":604801}"#, Err(Code::ValidationFailed)),
            (r#"{"overlap_seconds":-1}"#, Err(Code::ValidationFailed)),
            (r#"{"overlap_seconds":1.5}"#, Err(Code::ValidationFailed)),
            (r#"{"overlap_seconds":"60"}"#, Err(Code::ValidationFailed)),
            (r#"{"overlap":60}"#, Err(Code::ValidationFailed)),
            (
                r#"{"overlap_seconds":1,"overlap_seconds":2}"#,
                Err(Code::ValidationFailed),
            ),
            ("[]", Err(Code::ValidationFailed)),
            ("{", Err(Code::MalformedRequest)),
        ] {
            let parsed = parse_overlap(body.as_bytes()).map_err(|error| error.code);
            let expected = expected.map(|seconds| Duration::seconds(i64::from(seconds)));
            assert_eq!(parsed, expected, "{body}");
        }
    }
}
