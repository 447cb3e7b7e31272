//! `/partners`: who may call, from where, and on which terms.

mod patch;

use actix_web::http::header::{CACHE_CONTROL, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::PartnerId;

pub(super) use self::patch::Patch;
use self::patch::{LimitsPatch, in_range};
use super::body::{Json, given_object, name};
use super::change;
use super::credentials::{IssuedCredential, ShownCredential, mint};
use super::operator::{Operator, Role};
use crate::access::allowlist::Allowlist;
use crate::access::environment::Environment;
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::service::Service;
use crate::store::Partner;

/// Who is to be taken in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPartner {
    /// Its name, for people.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The networks it calls from; an empty list admits nobody.
    allowlist: Allowlist,
    /// Limits that differ from the settings.
    #[serde(default, deserialize_with = "given_object")]
    #[schema(nullable = false)]
    limits: Option<LimitsPatch>,
}

/// A partner with its first credential; `null` where it may not have one yet.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedPartner)]
pub(super) struct Created<'a> {
    #[serde(flatten)]
    partner: &'a Partner,
    #[schema(required)]
    credential: Option<&'a IssuedCredential>,
}

/// How many credentials are shown with a partner, the newest ones; a list of their own has them all.
const SHOWN_CREDENTIALS: usize = 25;

/// A partner with its credentials, of which neither key nor secret is known any more.
#[derive(Serialize, ToSchema)]
#[schema(as = PartnerWithCredentials)]
pub(super) struct WithCredentials<'a> {
    #[serde(flatten)]
    partner: &'a Partner,
    credentials: Vec<ShownCredential>,
}

/// `POST /partners`.
pub(super) async fn create(
    service: web::Data<Service>,
    operator: Operator,
    Json(request): Json<NewPartner>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Admin)?;
    let now = service.clock.now();
    let mut partner = Partner::new(name("name", &request.name)?, request.allowlist, now);
    request.limits.unwrap_or_default().apply(&mut partner.limits);
    partner.limits = in_range(partner.limits)?;
    let minted = match service.environment {
        Environment::Sandbox => Some(mint(&service, partner.partner_id, None)?),
        Environment::Production => None,
    };
    let (kept, issued) = minted.unzip();
    let created = partner.clone();
    change::make(&service, |service| async move {
        service
            .store
            .create_partner(created.clone(), kept.clone(), by)
            .await?;
        service.register.replace_partner(created.access());
        if let Some(kept) = kept {
            service.register.put_credential(kept);
        }
        Ok(())
    })
    .await?;
    let body = Created {
        partner: &partner,
        credential: issued.as_ref(),
    };
    Ok(HttpResponse::Created()
        .insert_header((LOCATION, format!("/admin/v1/partners/{}", partner.partner_id)))
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(body))
}

/// `GET /partners`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let partners = service.store.list_partners(page.after()?, page.fetch()).await?;
    Ok(page.answer(partners, |partner| partner.partner_id.to_string()))
}

/// `GET /partners/{partner_id}`.
pub(super) async fn get(
    service: web::Data<Service>,
    _operator: Operator,
    partner_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let partner_id = parse_id(&partner_id)?;
    let partner = service
        .store
        .find_partner(partner_id)
        .await?
        .ok_or_else(not_found)?;
    let credentials = service
        .store
        .list_credentials(partner_id, None, SHOWN_CREDENTIALS)
        .await?;
    let now = service.clock.now();
    let shown = credentials
        .iter()
        .map(|credential| ShownCredential::of(credential, now));
    Ok(HttpResponse::Ok().json(WithCredentials {
        partner: &partner,
        credentials: shown.collect(),
    }))
}

/// `PATCH /partners/{partner_id}`.
pub(super) async fn change(
    service: web::Data<Service>,
    operator: Operator,
    partner_id: web::Path<String>,
    Json(patch): Json<Patch>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Admin)?;
    let partner_id = parse_id(&partner_id)?;
    patch.check(service.clock.now())?;
    let changed = change::make(&service, |service| async move {
        let change = Box::new(|partner: &mut Partner| patch.apply(partner));
        let changed = service.store.change_partner(partner_id, change, by).await?;
        if let Some(partner) = &changed {
            service.register.replace_partner(partner.access());
        }
        Ok(changed)
    })
    .await?;
    Ok(HttpResponse::Ok().json(changed.ok_or_else(not_found)?))
}

/// What is no id belongs to nobody.
pub(super) fn parse_id(text: &str) -> Result<PartnerId, ApiError> {
    text.parse().map_err(|_| not_found())
}

pub(super) fn not_found() -> ApiError {
    ApiError::new(
        Code::PartnerNotFound,
        "there is no such partner; GET /admin/v1/partners lists them",
    )
}
