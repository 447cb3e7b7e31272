//! `GET /me`: the partner's account, and the credential that sent the request.

use actix_web::{HttpResponse, web};
use strum::VariantArray as _;
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::credentials::OwnCredential;
use vouchsafe_wire::partner::me::Me;

use crate::api::error::{ApiError, ApiResult};
use crate::api::limit_use;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::partner::PartnerState;

pub(super) async fn get(service: web::Data<PartnerState>, caller: AuthenticatedCaller) -> ApiResult {
    let credential = service.store.credentials.find(caller.credential_id).await?;
    let credential = credential.ok_or_else(|| {
        let message = "the credential was deleted during the request; use another one";
        ApiError::new(Code::InvalidCredentials, message)
    })?;
    let family = (caller.credential_id, caller.family_id);
    let limits = limit_use::read(&service, &[family], &caller.partner.limits).await?;
    let scopes = match credential.scopes {
        Some(scopes) => scopes.iter().collect(),
        None => ApiScope::VARIANTS.to_vec(),
    };
    Ok(HttpResponse::Ok().json(Me {
        environment: service.environment,
        partner_id: caller.partner_id(),
        name: caller.partner.name.clone(),
        allowlist: caller.partner.allowlist.clone(),
        cancel_window_s: caller.partner.cancel_window_s,
        credential: OwnCredential::of(&credential, caller.credential_id, service.clock.now()),
        scopes,
        limits,
    }))
}
