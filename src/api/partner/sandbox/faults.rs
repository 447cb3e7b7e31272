//! `/sandbox/faults`: faults that the next orders of a partner meet.

use actix_web::{HttpResponse, web};
use vouchsafe_wire::partner::sandbox::{SandboxFaultBody, parse_fault};

use crate::api::error::ApiResult;
use crate::api::list_request::sorted_list_response;
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::service::Service;

/// Requests a fault, instead of an earlier one of its kind.
pub(super) async fn put(service: web::Data<Service>, signed: VerifiedRequest<General>) -> ApiResult {
    let fault = parse_fault(&signed.body, service.clock.now())?;
    service
        .sandbox_faults
        .put(signed.caller.partner_id(), fault.clone());
    Ok(HttpResponse::Created().json(SandboxFaultBody::of(&fault)))
}

pub(super) async fn list(
    service: web::Data<Service>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList,
) -> ApiResult {
    let faults = service
        .sandbox_faults
        .list(caller.partner_id(), service.clock.now());
    sorted_list_response(
        &page,
        faults.iter().map(SandboxFaultBody::of).collect(),
        SandboxFaultBody::label,
    )
}

pub(super) async fn clear(service: web::Data<Service>, signed: VerifiedRequest<General>) -> HttpResponse {
    service.sandbox_faults.clear(signed.caller.partner_id());
    HttpResponse::NoContent().finish()
}
