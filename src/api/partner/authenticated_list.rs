//! Extractor of an authenticated list request.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use vouchsafe_wire::filter::{ListFilter, NoFilter};
use vouchsafe_wire::page::PageRequest;

use crate::api::error::ApiError;
use crate::api::list_request::ListRequest;
use crate::api::middleware::authentication::AuthenticatedCaller;

/// The caller, the requested page of a list, and its filter.
///
/// Two extractors would run side by side: an invalid filter would be refused while the first use of the
/// credential is still being recorded.
pub(super) struct AuthenticatedList<F = NoFilter> {
    pub(super) caller: AuthenticatedCaller,
    pub(super) page: PageRequest,
    pub(super) filter: F,
}

impl<F: ListFilter + 'static> FromRequest for AuthenticatedList<F> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = AuthenticatedCaller::from_request(request, payload);
        let list = ListRequest::from_request(request, payload);
        Box::pin(async move {
            let caller = caller.await?;
            let ListRequest { page, filter } = list.await?;
            Ok(Self { caller, page, filter })
        })
    }
}
