//! `/partners`: partners, their allowlists and terms.

use actix_web::http::header::{CACHE_CONTROL, LOCATION};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use time::OffsetDateTime;
use vouchsafe_domain::change_request::{ChangeKind, ChangePreview};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_domain::partner::{Partner, PartnerFilter};
use vouchsafe_security::environment::Environment;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::credentials::{CredentialDetails, NewCredential};
use vouchsafe_wire::operator::partners;
use vouchsafe_wire::operator::partners::{
    CreatedPartner, MAX_EMBEDDED_CREDENTIALS, NewPartner, PartnerPatch, PartnerWithCredentials,
};

use super::body::Json;
use super::change::{
    Change, ChangeDescription, Execution, Safeguard, submit_with, to_description, to_preview,
};
use super::credentials::generate_credential;
use super::{config_change, partner_id};
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::operator::erasure;
use crate::api::operator::{certification, credentials};
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; partners::OPERATIONS.len()] {
    [
        bind(partners::LIST_PARTNERS, list),
        bind(partners::CREATE_PARTNER, create),
        bind(partners::GET_PARTNER, get),
        bind(partners::CHANGE_PARTNER, change),
        bind(partners::GET_CERTIFICATION, certification::get),
        bind(partners::RESTART_CERTIFICATION, certification::restart),
        bind(partners::ERASE_PARTNER, erasure::erase_partner),
        bind(partners::LIST_LIMIT_USE, credentials::list_limit_use),
    ]
}

/// `POST /partners`.
async fn create(
    service: web::Data<OperatorState>,
    operator: Operator,
    Json(request): Json<NewPartner>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let now = service.clock.now();
    let partner = request.into_partner(now)?;
    let credential = match service.environment {
        Environment::Sandbox => Some(generate_credential(
            &service,
            partner.partner_id,
            NewCredential::default(),
        )?),
        Environment::Production => None,
    };
    let (stored, issued) = credential.unzip();
    let created = partner.clone();
    config_change::apply(&service, |service| async move {
        service
            .store
            .partners
            .create(created.clone(), stored.clone(), actor)
            .await?;
        service.registry.upsert_partner((&created).into());
        if let Some(stored) = stored {
            service.registry.upsert_credential(stored);
        }
        Ok(())
    })
    .await?;
    let body = CreatedPartner {
        partner: &partner,
        credential: issued.as_ref(),
    };
    Ok(HttpResponse::Created()
        .insert_header((LOCATION, format!("/admin/v1/partners/{}", partner.partner_id)))
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(body))
}

/// `GET /partners`.
async fn list(
    service: web::Data<OperatorState>,
    ListRequest { page, filter }: ListRequest<PartnerFilter>,
) -> ApiResult {
    let partners = service
        .store
        .partners
        .list(filter, page.after()?, page.fetch_limit());
    list_response(&page, partners.await?, |partner| partner.partner_id)
}

/// `GET /partners/{partner_id}`.
async fn get(service: web::Data<OperatorState>, partner_id: Id<PartnerId>) -> ApiResult {
    let partner_id = partner_id.parse()?;
    let partner = service
        .store
        .partners
        .find(partner_id)
        .await?
        .ok_or_else(PartnerId::not_found)?;
    let credentials = service
        .store
        .credentials
        .list(partner_id, None, MAX_EMBEDDED_CREDENTIALS)
        .await?;
    let now = service.clock.now();
    let bodies = credentials
        .iter()
        .map(|credential| CredentialDetails::of(credential, now));
    Ok(HttpResponse::Ok().json(PartnerWithCredentials {
        partner: &partner,
        credentials: bodies.collect(),
    }))
}

/// `PATCH /partners/{partner_id}`.
async fn change(
    service: web::Data<OperatorState>,
    operator: Operator,
    partner_id: Id<PartnerId>,
    Json(patch): Json<PartnerPatch>,
) -> ApiResult {
    let Partner {
        partner_id,
        updated_at,
        ..
    } = partner_id::find(&service, partner_id.parse()?).await?;
    patch.check(service.clock.now())?;
    check_ceilings(&service, partner_id, &patch).await?;
    let safeguard = Safeguard::of_change(&service, !patch.changes_access());
    let change = TermsChange {
        partner_id,
        patch,
        seen: (safeguard == Safeguard::SecondOperator).then_some(updated_at),
    };
    submit_with(safeguard, &service, &operator, ChangeKind::PartnerChange, change).await
}

/// Refuses ceilings below what the live credentials may send together. A credential that is issued later
/// raises them.
async fn check_ceilings(
    service: &OperatorState,
    partner_id: PartnerId,
    patch: &PartnerPatch,
) -> Result<(), ApiError> {
    let Some(ceilings) = patch.changed_ceilings() else {
        return Ok(());
    };
    let partner = service.store.partners.find(partner_id).await?;
    let limits = patch.limits_after(partner.ok_or_else(PartnerId::not_found)?.limits);
    let families = service.registry.count_families(partner_id, service.clock.now());
    for class in RequestClass::VARIANTS.iter().copied() {
        let Some(ceiling) = ceilings.get(class) else {
            continue;
        };
        let least = service
            .rate_limits
            .least_ceiling(&limits, class, families, ceiling.window_s);
        if ceiling.quota < least {
            let message = format!(
                "expected a quota of at least {least} in {} s, which the live credentials may send together",
                ceiling.window_s
            );
            return Err(ApiError::invalid_field(
                format!("ceilings.{}", class.into_str()),
                message,
            ));
        }
    }
    Ok(())
}

/// A change of a partner's terms.
#[derive(Serialize, Deserialize)]
pub(super) struct TermsChange {
    partner_id: PartnerId,
    patch: PartnerPatch,
    /// The partner's last change when a second operator was asked: the patch must not overwrite a later one.
    seen: Option<OffsetDateTime>,
}

impl Change for TermsChange {
    async fn describe(&self, _: &OperatorState) -> Result<ChangeDescription, ApiError> {
        to_description(self.partner_id, self.partner_id, &self.patch)
    }

    async fn preview(self, service: &OperatorState) -> Result<Option<ChangePreview>, ApiError> {
        let before = partner_id::find(service, self.partner_id).await?;
        let mut after = before.clone();
        self.patch.apply(&mut after);
        to_preview(&before, &after)
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        if let Some(seen) = self.seen {
            let partner = service.store.partners.find(self.partner_id).await?;
            if partner.is_some_and(|partner| partner.updated_at != seen) {
                let message = "the partner was changed after this request; request the change again";
                return Err(ApiError::new(Code::ChangeRequestNotWaiting, message));
            }
        }
        let Self {
            partner_id, patch, ..
        } = self;
        patch.check(service.clock.now())?;
        check_ceilings(service, partner_id, &patch).await?;
        let changed = config_change::apply(service, |service| async move {
            let change = Box::new(|partner: &mut Partner| patch.apply(partner));
            let changed = service.store.partners.change(partner_id, change, actor).await?;
            if let Some(partner) = &changed {
                service.registry.upsert_partner(partner.into());
            }
            Ok(changed)
        })
        .await?;
        Ok(HttpResponse::Ok().json(changed.ok_or_else(PartnerId::not_found)?))
    }
}
