//! Bodies of `/credentials`.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_security::credential::{ApiKeyPair, Credential};
use vouchsafe_security::credential_summary::CredentialSummary;

use crate::error_body::InvalidRequest;
use crate::json;
use crate::partner::limits::{overlap_s, overlap_schema};

/// Options of a credential rotation.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct RotateRequest {
    /// Seconds that the current credential stays valid [default: 86400, a day].
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(schema_with = credential_overlap_schema)]
    #[arg(long, value_name = "SECONDS")]
    overlap_seconds: Option<u32>,
}

impl RotateRequest {
    /// How long the current credential stays valid.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_overlap(&self) -> Result<Duration, InvalidRequest> {
        Ok(Duration::seconds(overlap_s(self.overlap_seconds)?.into()))
    }
}

fn credential_overlap_schema() -> ObjectBuilder {
    overlap_schema("How long the current credential stays valid, in seconds.")
}

/// The new credential. The secret is returned only once.
#[derive(Serialize, ToSchema)]
pub struct RotatedCredential<'a> {
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

impl<'a> RotatedCredential<'a> {
    /// A new credential with its secret.
    #[must_use]
    pub fn of(
        credential_id: CredentialId,
        key_pair: &'a ApiKeyPair,
        previous_expires_at: OffsetDateTime,
    ) -> Self {
        Self {
            credential_id,
            api_key: key_pair.api_key.to_string(),
            api_secret: key_pair.api_secret.expose(),
            previous_expires_at,
        }
    }
}

/// Parses the overlap of a rotation. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_overlap(body: &[u8]) -> Result<Duration, InvalidRequest> {
    let request: RotateRequest = json::parse_optional(body)?;
    request.validate_overlap()
}

/// One of your credentials, without key and secret.
#[derive(Serialize, ToSchema)]
pub struct OwnCredential {
    #[serde(flatten)]
    pub summary: CredentialSummary,
    /// Whether the credential is in force now.
    live: bool,
    /// Whether the credential sent this request.
    current: bool,
}

impl OwnCredential {
    #[must_use]
    pub fn of(credential: &Credential, sender: CredentialId, now: OffsetDateTime) -> Self {
        Self {
            summary: CredentialSummary::from(credential),
            live: credential.is_live(now),
            current: credential.credential_id == sender,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::Code;
    use crate::partner::limits::{DEFAULT_OVERLAP_S, MAX_OVERLAP_S};

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
