//! IDs of objects in paths. A malformed ID is reported as an unknown object.

use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::{Error, FromRequest, HttpRequest, web};
use vouchsafe_domain::ids::{
    BulkJobId, ChangeRequestId, CredentialId, DeliveryId, DriftId, EventId, OperatorSessionId,
    OperatorTokenId, OrderId, PartnerId, PayoutId, TransactionId, WebhookId,
};
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_wire::error_code::Code;

use super::error::ApiError;

/// The ID in a path with one placeholder. It is parsed by the handler, after the caller and the body were
/// checked.
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

/// Lists the IDs in paths, each with the code and message of its unknown objects.
macro_rules! path_ids {
    ($($id:ty => $code:ident, $message:literal;)+) => {
        $(
            impl PathId for $id {
                const NOT_FOUND: NotFound = (Code::$code, $message);
            }
        )+
    };
}

path_ids! {
    PartnerId => PartnerNotFound, "no such partner; GET /admin/v1/partners lists all";
    CredentialId => CredentialNotFound, "no such credential; GET \
        /admin/v1/partners/{partner_id}/credentials lists those of a partner";
    OrderId => OrderNotFound, "no such order; check the id";
    PayoutId => PayoutNotFound, "no such payout";
    TransactionId => TransactionNotFound, "no such transaction; GET /transactions lists yours";
    EventId => EventNotFound, "no such event in your feed of the last 30 days; GET /events lists them";
    WebhookId => WebhookNotFound, "no such webhook endpoint; GET /webhooks lists yours";
    DeliveryId => DeliveryNotFound, "no such delivery";
    DriftId => DriftNotFound, "no such drift";
    BulkJobId => BulkJobNotFound, "no such bulk job; GET /admin/v1/bulk-jobs lists all";
    ChangeRequestId => ChangeRequestNotFound, "no such request; GET /admin/v1/requests lists all";
    OperatorName => OperatorNotFound, "no such operator; GET /admin/v1/operators lists all operators";
    OperatorTokenId => OperatorTokenNotFound, "no such token; GET /admin/v1/operators/{name}/tokens lists those of an operator";
    OperatorSessionId => OperatorSessionNotFound, "no such session; GET /admin/v1/sessions lists those of the last 30 days";
}
