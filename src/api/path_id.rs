//! IDs of objects in paths. A malformed ID is reported as an unknown object.

use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::{Error, FromRequest, HttpRequest, web};
use vouchsafe_domain::ids::{
    ChangeRequestId, CredentialId, DeliveryId, DriftId, OperatorSessionId, OperatorTokenId, OrderId,
    PartnerId, PayoutId, WebhookId,
};
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_wire::error_code::Code;

use super::error::ApiError;

/// The ID in a path with one placeholder. It is parsed by the handler, after the caller and the body were checked.
pub(crate) struct Id<T> {
    text: String,
    kind: PhantomData<fn() -> T>,
}

impl<T: PathId> Id<T> {
    /// # Errors
    /// The error of an unknown object: no object has an ID of another form.
    pub(crate) fn parse(&self) -> Result<T, ApiError> {
        self.text.parse().map_err(|_| T::not_found())
    }
}

impl<T> FromRequest for Id<T> {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let path = web::Path::<String>::from_request(request, payload).into_inner();
        ready(path.map(|text| Self {
            text: text.into_inner(),
            kind: PhantomData,
        }))
    }
}

/// Code and message of the error.
type NotFound = (Code, &'static str);

/// An ID whose object may be unknown.
pub(crate) trait PathId: FromStr {
    const NOT_FOUND: NotFound;

    fn not_found() -> ApiError {
        let (code, message) = Self::NOT_FOUND;
        ApiError::new(code, message)
    }
}

impl PathId for PartnerId {
    const NOT_FOUND: NotFound = (
        Code::PartnerNotFound,
        "no such partner; GET /admin/v1/partners lists all",
    );
}

impl PathId for CredentialId {
    const NOT_FOUND: NotFound = (
        Code::CredentialNotFound,
        "no such credential; GET /admin/v1/partners/{partner_id}/credentials lists those of a partner",
    );
}

impl PathId for OrderId {
    const NOT_FOUND: NotFound = (Code::OrderNotFound, "no such order; check the id");
}

impl PathId for PayoutId {
    const NOT_FOUND: NotFound = (Code::PayoutNotFound, "no such payout");
}

impl PathId for WebhookId {
    const NOT_FOUND: NotFound = (
        Code::WebhookNotFound,
        "no such webhook endpoint; GET /webhooks lists yours",
    );
}

impl PathId for DeliveryId {
    const NOT_FOUND: NotFound = (Code::DeliveryNotFound, "no such delivery");
}

impl PathId for DriftId {
    const NOT_FOUND: NotFound = (Code::DriftNotFound, "no such drift");
}

impl PathId for ChangeRequestId {
    const NOT_FOUND: NotFound = (
        Code::ChangeRequestNotFound,
        "no such request; GET /admin/v1/requests lists all",
    );
}

impl PathId for OperatorName {
    const NOT_FOUND: NotFound = (
        Code::OperatorNotFound,
        "no such operator; GET /admin/v1/operators lists all operators",
    );
}

impl PathId for OperatorTokenId {
    const NOT_FOUND: NotFound = (
        Code::OperatorTokenNotFound,
        "no such token; GET /admin/v1/operators/{name}/tokens lists those of an operator",
    );
}

impl PathId for OperatorSessionId {
    const NOT_FOUND: NotFound = (
        Code::OperatorSessionNotFound,
        "no such session; GET /admin/v1/sessions lists those of the last 30 days",
    );
}
