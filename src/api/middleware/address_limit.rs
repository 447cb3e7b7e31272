//! Limit of requests in flight per client address, before anything of a request is read.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::{HttpMessage as _, ResponseError as _, web};
use vouchsafe_security::auth_failures::ClientPrefix;
use vouchsafe_security::concurrency_limit::{LimitReached, Permit};
use vouchsafe_telemetry::refusal_log::RefusalKey;
use vouchsafe_wire::error_code::Code;

use super::listener_peers::client_address;
use super::{refusals, trace};
use crate::api::error::ApiError;
use crate::connections::ClientLimits;
use crate::service::Service;

/// The permit of a request's client address, in its extensions until its response is written.
pub(super) struct AddressPermit(#[allow(dead_code, reason = "held until it is dropped")] Permit);

/// A step of both listeners.
pub(super) async fn limit_address<B: MessageBody>(
    limits: fn(&Service) -> &ClientLimits,
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let service: &web::Data<Service> = request.app_data().ok_or_else(ApiError::unavailable)?;
    let client = ClientPrefix::of(client_address(request.request())?.accountable_ip());
    match limits(service).requests.try_enter(client) {
        Ok(permit) => {
            request.extensions_mut().insert(AddressPermit(permit));
            next(request).await.map(ServiceResponse::map_into_left_body)
        }
        Err(LimitReached { max }) => {
            let key = RefusalKey {
                partner_id: None,
                code: Code::TooManyRequestsInFlight,
            };
            refusals::count(service, key, None);
            let response = trace::respond_without_span(request.headers(), || {
                let message = format!(
                    "the client address has {max} requests in flight; read their responses, then send this request again"
                );
                ApiError::new(Code::TooManyRequestsInFlight, message).error_response()
            });
            Ok(request.into_response(response).map_into_right_body())
        }
    }
}
