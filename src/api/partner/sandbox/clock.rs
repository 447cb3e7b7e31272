//! `/sandbox/clock`: the test clock of a partner.

use actix_web::{HttpResponse, web};
use vouchsafe_store::AdvancedClock;
use vouchsafe_wire::partner::sandbox::clock::{SandboxClockBody, parse_advance};

use crate::api::error::ApiResult;
use crate::api::middleware::authentication::{General, VerifiedRequest};
use crate::api::partner::PartnerState;

/// Advances the clock. Keys are not found by their partner: those whose time has passed are deleted when they
/// are used again.
pub(super) async fn advance(service: web::Data<PartnerState>, signed: VerifiedRequest<General>) -> ApiResult {
    let seconds = parse_advance(&signed.body)?;
    let partner_id = signed.caller.partner_id();
    let AdvancedClock { advances, webhooks } =
        service.store.sandbox_clocks.advance(partner_id, seconds).await?;
    let body = SandboxClockBody::of(&advances, service.clock.now());
    service.sandbox_clocks.put(partner_id, advances);
    service.engine.forget_responses();
    for webhook_id in webhooks {
        service.deliveries.release(webhook_id).await;
    }
    Ok(HttpResponse::Ok().json(body))
}
