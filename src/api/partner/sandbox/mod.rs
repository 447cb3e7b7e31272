//! `/sandbox`: a partner plays operator, vendor and fault for its own orders. Sandbox only; in production
//! these routes are 404.

mod clock;
mod faults;
mod orders;

use actix_web::guard::GuardContext;
use actix_web::web;
use vouchsafe_security::environment::Environment;
use vouchsafe_wire::partner::sandbox;

use crate::api::endpoint::Endpoint;
use crate::api::partner::endpoint::{bind, bind_list};
use crate::service::Service;

/// The endpoints, which [`is_sandbox`] guards.
pub(super) fn endpoints() -> [Endpoint; sandbox::OPERATIONS.len()] {
    [
        bind(sandbox::REQUEST_SANDBOX_FAULT, faults::put),
        bind_list(sandbox::LIST_SANDBOX_FAULTS, faults::list),
        bind(sandbox::CLEAR_SANDBOX_FAULTS, faults::clear),
        bind(sandbox::ADVANCE_SANDBOX_CLOCK, clock::advance),
        bind(sandbox::APPROVE_SANDBOX_ORDER, orders::approve),
        bind(sandbox::REJECT_SANDBOX_ORDER, orders::reject),
        bind(sandbox::ADVANCE_SANDBOX_ORDER, orders::advance),
        bind(sandbox::FAIL_SANDBOX_ORDER, orders::fail),
    ]
}

/// The guard that hides the routes in production.
pub(super) fn is_sandbox(request: &GuardContext<'_>) -> bool {
    let service = request.app_data::<web::Data<Service>>();
    service.is_some_and(|service| service.environment == Environment::Sandbox)
}
