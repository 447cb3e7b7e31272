//! The steps that every request of a listener takes before its route, outermost first.
//!
//! The steps of a listener are one middleware of actix, which boxes the service and the future of each
//! middleware for each request.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

use super::address_limit::limit_address;
use super::listener_peers::refuse_foreign_peer;
use super::load_shedding::shed_load;
use super::rate_limit_headers::write_headers;
use super::readiness_gate::serve_if_ready;
use super::response_delivery::{DeliveredBody, deliver};
use super::sandbox_observer::observe_request;
use super::security_headers::set_security_headers;
use super::trace::trace_request;
use crate::metrics::{OPERATOR_LISTENER, PARTNER_LISTENER};

/// Middleware of the partner listener.
pub(crate) async fn serve_partner<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<DeliveredBody>, actix_web::Error> {
    let route = async |request| next.call(request).await;
    let measured = async |request| write_headers(request, route).await;
    let observed = async |request| observe_request(request, measured).await;
    let ready = async |request| serve_if_ready(PARTNER_LISTENER, request, observed).await;
    let traced = async |request| trace_request(request, ready).await;
    let shed = async |request| shed_load(request, traced).await;
    let limited = async |request| limit_address(|service| &service.partner_clients, request, shed).await;
    let own = async |request| refuse_foreign_peer(request, limited).await;
    deliver(request, async |request| set_security_headers(request, own).await).await
}

/// Middleware of the operator listener.
pub(crate) async fn serve_operator<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<DeliveredBody>, actix_web::Error> {
    let route = async |request| next.call(request).await;
    let ready = async |request| serve_if_ready(OPERATOR_LISTENER, request, route).await;
    let traced = async |request| trace_request(request, ready).await;
    let limited = async |request| limit_address(|service| &service.operator_clients, request, traced).await;
    let own = async |request| refuse_foreign_peer(request, limited).await;
    deliver(request, async |request| set_security_headers(request, own).await).await
}
