//! `/partners/{partner_id}/credentials` and `/credentials`: handing access out, looking at it, and taking it back.
//!
//! Rule: the secret is in the one answer that makes it and nowhere else; what is kept and audited are hashes and names.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize, Serializer};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::{CredentialId, PartnerId};

use super::body::JsonOrNothing;
use super::change;
use super::operator::{Operator, Role};
use super::partners;
use crate::access::allowlist::Allowlist;
use crate::access::credential::{self, ApiSecret, Credential};
use crate::access::environment::Environment;
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::service::Service;
use crate::store::{CredentialSummary, Issued, MAX_LIVE_CREDENTIALS, Papers};

/// What a new credential is to be.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCredential {
    /// Narrows the partner's list; nothing leaves it as it is.
    #[serde(default)]
    allowlist: Option<Allowlist>,
}

/// A credential as its owner is told of it, once.
#[derive(Serialize, ToSchema)]
pub(super) struct IssuedCredential {
    /// Its public name.
    credential_id: CredentialId,
    /// Sent as `X-API-Key`.
    api_key: String,
    /// Sent as `X-API-Secret`, and the key of signatures. Shown once.
    #[serde(serialize_with = "expose")]
    #[schema(value_type = String)]
    api_secret: ApiSecret,
}

/// The one answer that shows a secret.
fn expose<S: Serializer>(secret: &ApiSecret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// Makes a credential: what is kept of it, and what its owner is told.
pub(super) fn mint(
    service: &Service,
    partner_id: PartnerId,
    allowlist: Option<Allowlist>,
) -> Result<(Credential, IssuedCredential), ApiError> {
    let minted = credential::mint(service.environment, getrandom::fill).map_err(|error| {
        tracing::error!(%error, "the operating system gives no random bytes");
        ApiError::unavailable()
    })?;
    let kept = Credential {
        allowlist,
        ..minted.kept(partner_id, service.clock.now())
    };
    let issued = IssuedCredential {
        credential_id: kept.credential_id,
        api_key: minted.api_key.to_string(),
        api_secret: minted.api_secret,
    };
    Ok((kept, issued))
}

/// `POST /partners/{partner_id}/credentials`.
pub(super) async fn issue(
    service: web::Data<Service>,
    operator: Operator,
    partner_id: web::Path<String>,
    JsonOrNothing(request): JsonOrNothing<NewCredential>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Admin)?;
    let partner_id = partners::parse_id(&partner_id)?;
    let (kept, issued) = mint(&service, partner_id, request.allowlist)?;
    let papers = match service.environment {
        Environment::Sandbox => Papers::NotRequired,
        Environment::Production => Papers::Required,
    };
    let outcome = change::make(&service, |service| async move {
        let outcome = service.store.insert_credential(kept.clone(), papers, by).await?;
        if outcome == Issued::Issued {
            service.register.put_credential(kept);
        }
        Ok(outcome)
    });
    match outcome.await? {
        Issued::Issued => Ok(HttpResponse::Created()
            .insert_header((CACHE_CONTROL, "no-store"))
            .json(issued)),
        Issued::PartnerNotFound => Err(partners::not_found()),
        Issued::Uncertified => Err(ApiError::new(
            Code::CertificationRequired,
            "put certified_at and agreement_signed_at on record first (PATCH the partner)",
        )),
        Issued::TooMany => Err(too_many()),
    }
}

fn too_many() -> ApiError {
    let message =
        format!("the partner has {MAX_LIVE_CREDENTIALS} live credentials, the most there may be; revoke one");
    ApiError::new(Code::CredentialLimitReached, message)
}

/// A credential as operators see it.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownCredential {
    #[serde(flatten)]
    summary: CredentialSummary,
    /// Whether it opens anything now, its partner's standing aside.
    live: bool,
}

impl ShownCredential {
    pub(super) fn of(credential: &Credential, now: OffsetDateTime) -> Self {
        Self {
            summary: CredentialSummary::from(credential),
            live: credential.is_live(now),
        }
    }
}

/// `GET /partners/{partner_id}/credentials`: newest first, those out of force too.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    partner_id: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let partner_id = partners::parse_id(&partner_id)?;
    let before = page.after()?;
    let found = service
        .store
        .list_credentials(partner_id, before, page.fetch())
        .await?;
    if found.is_empty() && service.store.find_partner(partner_id).await?.is_none() {
        return Err(partners::not_found());
    }
    let now = service.clock.now();
    let shown = found
        .iter()
        .map(|credential| ShownCredential::of(credential, now));
    Ok(page.answer(shown.collect(), |shown| shown.summary.credential_id.to_string()))
}

/// `DELETE /credentials/{credential_id}`: 204, also when it was revoked before.
pub(super) async fn revoke(
    service: web::Data<Service>,
    operator: Operator,
    credential_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Admin)?;
    let credential_id: CredentialId = credential_id.parse().map_err(|_| not_found())?;
    let revoked = change::make(&service, |service| async move {
        let revoked = service.store.revoke_credential(credential_id, by).await?;
        if revoked.is_some() {
            service.register.revoke(credential_id, service.clock.now());
        }
        Ok(revoked)
    });
    revoked
        .await?
        .map(|_| HttpResponse::NoContent().finish())
        .ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::new(
        Code::CredentialNotFound,
        "there is no such credential; GET /admin/v1/partners/{partner_id}/credentials lists those of a partner",
    )
}
