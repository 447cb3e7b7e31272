//! `POST /credentials/rotate`: a partner gets itself a new credential, and gives the one that asks an end.
//!
//! Rule: the secret is in this one answer and nowhere else. If the answer is lost, the same credential asks again: what it
//! got before is taken back if nobody has used it, and a new one is made. Its own end may come nearer by that, and never
//! moves off.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::CredentialId;

use super::caller::{Auth, Signed};
use crate::access::credential::{Minted, mint};
use crate::change;
use crate::errors::{ApiError, Code};
use crate::json::{self, Object};
use crate::service::Service;
use crate::store::{By, MAX_LIVE_CREDENTIALS, Rotated, Rotation, Succession};
use crate::trace;

/// How long the credential that asks goes on, unless it says otherwise (contract §3). Seconds: a day.
const DEFAULT_OVERLAP_S: u32 = 86_400;

/// The longest that it may go on. Seconds: a week.
const MAX_OVERLAP_S: u32 = 604_800;

/// How the next credential takes over.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RotateRequest {
    /// For how long the credential that asks goes on, in seconds; a day unless it is said.
    #[serde(default)]
    #[schema(maximum = 604_800)]
    overlap_seconds: Option<u32>,
}

/// The next credential; its secret is shown in this answer alone.
#[derive(Serialize, ToSchema)]
#[schema(as = RotatedCredential)]
pub(super) struct RotatedBody<'a> {
    /// Its public name.
    credential_id: CredentialId,
    /// What goes into `X-API-Key`.
    api_key: String,
    /// What goes into `X-API-Secret`, and keys the signature.
    api_secret: &'a str,
    /// Until when the credential that asked works.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    previous_expires_at: OffsetDateTime,
}

/// `POST /credentials/rotate`. A body may be left out.
///
/// # Errors
/// `VALIDATION_FAILED`, `CREDENTIAL_LIMIT_REACHED`, and `INVALID_CREDENTIALS` if the one that asks ended meanwhile.
pub async fn rotate(service: web::Data<Service>, signed: Signed<Auth>) -> Result<HttpResponse, ApiError> {
    let overlap = overlap(&signed.body)?;
    let partner_id = signed.caller.partner_id();
    let minted = mint(service.environment, getrandom::fill).map_err(|error| {
        tracing::error!(%error, "the operating system gives no random bytes");
        ApiError::unavailable()
    })?;
    let now = service.clock.now();
    let rotation = Rotation {
        asking: signed.caller.credential_id,
        next: minted.kept(partner_id, now),
        overlap,
        now,
    };
    let by = By::partner(partner_id, trace::current());
    let rotated = change::make(&service, |service| async move {
        let rotated = service.store.rotate_credential(rotation, by).await?;
        if let Rotated::Rotated(succession) = &rotated {
            put_in_force(&service, succession, now);
        }
        Ok(rotated)
    });
    match rotated.await? {
        Rotated::Rotated(succession) => Ok(answer(&minted, &succession)),
        Rotated::Ended => Err(ApiError::new(
            Code::InvalidCredentials,
            "the credential that asked is no longer in force",
        )),
        Rotated::TooMany => Err(ApiError::new(
            Code::CredentialLimitReached,
            format!(
                "{MAX_LIVE_CREDENTIALS} credentials are live, the most there may be; wait for one to end, or ask \
                     the operator to revoke one"
            ),
        )),
    }
}

fn overlap(body: &[u8]) -> Result<Duration, ApiError> {
    let request = if body.is_empty() {
        RotateRequest::default()
    } else {
        json::parse::<Object<RotateRequest>>(body)?.0
    };
    let seconds = request.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_S);
    if seconds > MAX_OVERLAP_S {
        let message = format!("expected 0 to {MAX_OVERLAP_S} seconds");
        return Err(ApiError::invalid("overlap_seconds", message));
    }
    Ok(Duration::seconds(seconds.into()))
}

/// In memory what is committed: the new one first, so that there is never none.
fn put_in_force(service: &Service, succession: &Succession, now: OffsetDateTime) {
    service.register.put_credential(succession.next.clone());
    service.register.put_credential(succession.previous.clone());
    for taken_back in &succession.taken_back {
        service.register.revoke(*taken_back, now);
    }
}

fn answer(minted: &Minted, succession: &Succession) -> HttpResponse {
    HttpResponse::Created()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(RotatedBody {
            credential_id: succession.next.credential_id,
            api_key: minted.api_key.to_string(),
            api_secret: minted.api_secret.expose(),
            previous_expires_at: succession.previous_ends_at,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_is_up_to_a_week_and_a_day_where_nothing_is_said() {
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
            let read = overlap(body.as_bytes()).map_err(|error| error.code);
            let expected = expected.map(|seconds| Duration::seconds(i64::from(seconds)));
            assert_eq!(read, expected, "{body}");
        }
    }
}
