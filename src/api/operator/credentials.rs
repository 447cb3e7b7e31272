//! `/partners/{partner_id}/credentials` and `/credentials`: issue, list and revoke credentials.
//!
//! Only the response that creates a credential contains the secret; the database and the audit trail have its
//! hash and ID.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_security::credential::Credential;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::{CertificationPolicy, IssueOutcome};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::limit_use::LimitUse;
use vouchsafe_wire::operator::credentials;
use vouchsafe_wire::operator::credentials::{
    CredentialDetails, IssuedCredential, NewCredential, RevocationQuery,
};

use super::body::OptionalJson;
use super::change::{Change, ChangeDescription, Execution, submit, to_description};
use super::credential_errors::{issued_before, limit_reached};
use super::wallets::PartnerList;
use super::{config_change, partner_id};
use crate::api::credential_rotation::generate_key_pair;
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::limit_use;
use crate::api::list_request::{ListRequest, ValidatedQuery, list_response, sorted_list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::credential_rotation;
use crate::api::operator::endpoint::bind;
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; credentials::OPERATIONS.len()] {
    [
        bind(credentials::LIST_CREDENTIALS, list),
        bind(credentials::ISSUE_CREDENTIAL, issue),
        bind(credentials::REVOKE_CREDENTIAL, revoke),
        bind(credentials::ROTATE_CREDENTIAL, credential_rotation::rotate),
    ]
}

/// Generates a credential: the row to store, and the response with the secret.
pub(super) fn generate_credential(
    service: &OperatorState,
    partner_id: PartnerId,
    NewCredential { allowlist, scopes }: NewCredential,
) -> Result<(Credential, IssuedCredential), ApiError> {
    let key_pair = generate_key_pair(service)?;
    let credential = Credential {
        allowlist,
        scopes,
        ..key_pair.to_credential(partner_id, service.clock.now())
    };
    let issued = IssuedCredential {
        credential_id: credential.credential_id,
        api_key: key_pair.api_key.to_string(),
        api_secret: key_pair.api_secret,
    };
    Ok((credential, issued))
}

/// `POST /partners/{partner_id}/credentials`.
async fn issue(
    service: web::Data<OperatorState>,
    operator: Operator,
    partner_id: Id<PartnerId>,
    OptionalJson(request): OptionalJson<NewCredential>,
) -> ApiResult {
    let partner_id = partner_id::find(&service, partner_id.parse()?).await?.partner_id;
    let issue = CredentialIssue { partner_id, request };
    submit(&service, &operator, ChangeKind::CredentialIssue, issue).await
}

/// `GET /partners/{partner_id}/limits`: what the credentials use of their rate limits on all nodes.
pub(super) async fn list_limit_use(
    (service, _, partner_id, ListRequest { page, .. }): PartnerList<WholeList>,
) -> ApiResult {
    let partner = partner_id::find(&service, partner_id.parse()?).await?;
    let families = service
        .registry
        .live_families(partner.partner_id, service.clock.now());
    let mut uses = limit_use::read(&service, &families, &partner.limits).await?;
    uses.sort_by_key(LimitUse::cursor);
    sorted_list_response(&page, uses, LimitUse::cursor)
}

/// A new credential of a partner.
#[derive(Serialize, Deserialize)]
pub(super) struct CredentialIssue {
    partner_id: PartnerId,
    request: NewCredential,
}

impl Change for CredentialIssue {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        let partner = service.store.partners.find(self.partner_id).await?;
        let partner = partner.ok_or_else(PartnerId::not_found)?;
        if certification_policy(service) == CertificationPolicy::Required && !partner.is_certified() {
            return Err(uncertified());
        }
        to_description(self.partner_id, self.partner_id, &self.request)
    }

    async fn carry_out(
        self,
        Execution {
            service,
            actor,
            request_id,
        }: Execution<'_>,
    ) -> ApiResult {
        let (mut credential, mut issued) = generate_credential(service, self.partner_id, self.request)?;
        if let Some(request_id) = request_id {
            let credential_id = CredentialId::from_uuid(request_id.as_uuid());
            credential.credential_id = credential_id;
            credential.family_id = credential_id;
            issued.credential_id = credential_id;
        }
        let credential_id = credential.credential_id;
        let policy = certification_policy(service);
        let outcome = config_change::apply(service, |service| async move {
            let outcome = service
                .store
                .credentials
                .issue(credential.clone(), policy, actor)
                .await?;
            if outcome == IssueOutcome::Issued {
                service.registry.upsert_credential(credential);
            }
            Ok(outcome)
        });
        match outcome.await? {
            IssueOutcome::Issued => Ok(HttpResponse::Created()
                .insert_header((CACHE_CONTROL, "no-store"))
                .json(issued)),
            IssueOutcome::IssuedBefore => Err(issued_before(credential_id)),
            IssueOutcome::PartnerNotFound => Err(PartnerId::not_found()),
            IssueOutcome::Uncertified => Err(uncertified()),
            IssueOutcome::TooMany => Err(limit_reached()),
        }
    }
}

fn certification_policy(service: &OperatorState) -> CertificationPolicy {
    match service.environment {
        Environment::Sandbox => CertificationPolicy::NotRequired,
        Environment::Production => CertificationPolicy::Required,
    }
}

fn uncertified() -> ApiError {
    ApiError::new(
        Code::CertificationRequired,
        "record certified_at and agreement_signed_at first (PATCH the partner)",
    )
}

/// `GET /partners/{partner_id}/credentials`: newest first, including revoked and ended ones.
async fn list(
    service: web::Data<OperatorState>,
    partner_id: Id<PartnerId>,
    ListRequest { page, .. }: ListRequest,
) -> ApiResult {
    let partner_id = partner_id.parse()?;
    let credentials = service
        .store
        .credentials
        .list(partner_id, page.after()?, page.fetch_limit());
    let credentials = credentials.await?;
    if credentials.is_empty() && service.store.partners.find(partner_id).await?.is_none() {
        return Err(PartnerId::not_found());
    }
    let now = service.clock.now();
    let bodies = credentials
        .iter()
        .map(|credential| CredentialDetails::of(credential, now));
    list_response(&page, bodies, |body| body.summary.credential_id)
}

/// `DELETE /credentials/{credential_id}`: also if it is revoked already.
async fn revoke(
    service: web::Data<OperatorState>,
    operator: Operator,
    credential_id: Id<CredentialId>,
    ValidatedQuery(query): ValidatedQuery<RevocationQuery>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let descendants = query.descendants.unwrap_or_default();
    let credential_id = credential_id.parse()?;
    let revocation = config_change::apply(&service, |service| async move {
        let credentials = &service.store.credentials;
        let holder = service.registry.find_owner(credential_id);
        let revocation = credentials
            .revoke(credential_id, descendants, holder, actor)
            .await?;
        for revoked in revocation.iter().flat_map(|revocation| &revocation.revoked) {
            service.registry.revoke(*revoked, service.clock.now());
        }
        Ok(revocation)
    });
    let revocation = revocation.await?.ok_or_else(CredentialId::not_found)?;
    Ok(HttpResponse::Ok().json(revocation))
}
