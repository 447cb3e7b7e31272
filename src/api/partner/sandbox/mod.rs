//! `/sandbox`: a partner plays operator, vendor and fault for its own orders. Sandbox only; in production these routes are 404.

mod faults;
mod orders;

use actix_web::guard::GuardContext;
use actix_web::web;
use vouchsafe_domain::api_scope::ApiScope::{Orders, Read};
use vouchsafe_security::environment::Environment;

use crate::api::partner::endpoint::{PartnerEndpoint, partner_endpoints};
use crate::service::Service;
use vouchsafe_api_docs::partner::sandbox as docs;

/// The endpoints, which [`is_sandbox`] guards.
pub(super) fn endpoints() -> Vec<PartnerEndpoint> {
    partner_endpoints! {
        POST "/sandbox/faults" Orders => faults::put, docs::put_fault;
        GET "/sandbox/faults" Read => faults::list, docs::list_faults;
        DELETE "/sandbox/faults" Orders => faults::clear, docs::clear_faults;
        POST "/sandbox/orders/{order_id}/approve" Orders => orders::approve, docs::approve_order;
        POST "/sandbox/orders/{order_id}/reject" Orders => orders::reject, docs::reject_order;
        POST "/sandbox/orders/{order_id}/advance" Orders => orders::advance, docs::advance_order;
        POST "/sandbox/orders/{order_id}/fail" Orders => orders::fail, docs::fail_order;
    }
}

/// The guard that hides the routes in production.
pub(super) fn is_sandbox(request: &GuardContext<'_>) -> bool {
    let service = request.app_data::<web::Data<Service>>();
    service.is_some_and(|service| service.environment == Environment::Sandbox)
}
