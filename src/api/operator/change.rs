//! Changes that may need a second operator: carried out at once, or stored until
//! `/requests/{request_id}/confirm`.

use std::collections::BTreeMap;
use std::future::Future;

use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, web};
use secrecy::zeroize::Zeroizing;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use time::Duration;
use vouchsafe_domain::change_request::{ChangeKind, ChangePreview, ChangeRequest};
use vouchsafe_domain::ids::{ChangeRequestId, PartnerId};
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_store::AuditActor;
use vouchsafe_store::change_requests::NewChangeRequest;
use vouchsafe_wire::error_code::Code;

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;

/// Time to find a second operator, also over a night.
const VALIDITY: Duration = Duration::hours(24);

/// A validated change. It is stored as encrypted JSON.
pub(super) trait Change: Serialize + DeserializeOwned {
    /// Describes the change to the second operator. Rejects a change that cannot be carried out now.
    fn describe(&self, service: &OperatorState) -> impl Future<Output = Result<ChangeDescription, ApiError>>;

    /// What the change finds and leaves; `None` if it replaces nothing.
    fn preview(self, _: &OperatorState) -> impl Future<Output = Result<Option<ChangePreview>, ApiError>> {
        std::future::ready(Ok(None))
    }

    /// Carries the change out. A repetition changes nothing more.
    fn carry_out(self, execution: Execution<'_>) -> impl Future<Output = ApiResult>;
}

/// A change that is carried out now.
pub(super) struct Execution<'a> {
    pub(super) service: &'a web::Data<OperatorState>,
    /// Who requested the change.
    pub(super) actor: AuditActor,
    /// The confirmed request. A credential gets its UUID, so that a second confirmation creates no second
    /// one.
    pub(super) request_id: Option<ChangeRequestId>,
}

/// A change as it is encrypted: with what the row has in plain text, so that who writes to the database can
/// neither confirm a request of their own nor show another change to the second operator.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedChange<C> {
    pub(super) kind: ChangeKind,
    #[serde(deserialize_with = "parse_stored_name")]
    pub(super) requested_by: OperatorName,
    object: String,
    details: String,
    /// Hash of the token of the settings, if it is the requester.
    settings_token: Option<[u8; 32]>,
    change: C,
}

fn parse_stored_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OperatorName, D::Error> {
    let text = String::deserialize(deserializer)?;
    OperatorName::from_stored(&text).map_err(D::Error::custom)
}

impl SealedChange<IgnoredAny> {
    /// Replaces what the row says by what was encrypted: the second operator decides by it.
    pub(super) fn describe(self, request: &mut ChangeRequest) {
        request.kind = self.kind;
        request.requested_by = self.requested_by;
        request.object = self.object;
        request.details = self.details;
    }

    /// Whether the requester is the token that the settings have now.
    pub(super) fn is_of_settings_token(&self, current: Option<&OperatorTokenHash>) -> bool {
        let requester = self.settings_token.map(OperatorTokenHash::from_bytes);
        current
            .zip(requester)
            .is_some_and(|(current, requester)| current.matches(&requester))
    }
}

impl<C: DeserializeOwned> SealedChange<C> {
    /// # Errors
    /// `INTERNAL_ERROR`.
    pub(super) fn parse(json: &[u8]) -> Result<Self, ApiError> {
        serde_json::from_slice(json).map_err(|error| unreadable(&error))
    }

    /// The change, if it belongs to this request.
    ///
    /// # Errors
    /// `INTERNAL_ERROR`.
    pub(super) fn into_change(self, request: &ChangeRequest) -> Result<C, ApiError> {
        if self.kind == request.kind
            && self.requested_by == request.requested_by
            && self.object == request.object
            && is_same_json(&self.details, &request.details)
        {
            return Ok(self.change);
        }
        tracing::error!(request.id = %request.request_id, "change request was altered in the database");
        let message = "the request was altered in the database; decline it, and see the service log";
        Err(ApiError::new(Code::InternalError, message))
    }
}

/// Postgres stores JSON with other spaces and another order.
fn is_same_json(left: &str, right: &str) -> bool {
    let parse = serde_json::from_str::<serde_json::Value>;
    matches!((parse(left), parse(right)), (Ok(left), Ok(right)) if left == right)
}

/// What the second operator sees of a change.
pub(super) struct ChangeDescription {
    /// ID of the changed object, or name of the operator.
    object: String,
    /// Whom the change concerns; `None` for an operator's account.
    partner_id: Option<PartnerId>,
    /// JSON object without codes and secrets.
    details: String,
}

/// What a change needs besides the role of its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Safeguard {
    /// It is urgent, or gives no access and no money.
    None,
    /// A recent authentication, if a session sends it (step-up).
    StepUp,
    /// A second operator must confirm it.
    SecondOperator,
}

impl Safeguard {
    /// Protects a change that could move money, or let its operator do so, unless it `is_harmless`.
    pub(super) fn of_change(service: &OperatorState, is_harmless: bool) -> Self {
        match (is_harmless, service.four_eyes.is_on()) {
            (true, _) => Self::None,
            (false, false) => Self::StepUp,
            (false, true) => Self::SecondOperator,
        }
    }
}

/// Carries out a change, or stores it for a second operator if the settings require one.
pub(super) async fn submit(
    service: &web::Data<OperatorState>,
    operator: &Operator,
    kind: ChangeKind,
    change: impl Change,
) -> ApiResult {
    submit_with(
        Safeguard::of_change(service, false),
        service,
        operator,
        kind,
        change,
    )
    .await
}

/// Submits a change whose content decides what it needs.
pub(super) async fn submit_with(
    safeguard: Safeguard,
    service: &web::Data<OperatorState>,
    operator: &Operator,
    kind: ChangeKind,
    change: impl Change,
) -> ApiResult {
    if safeguard != Safeguard::None {
        operator.check_recent_authentication(service.clock.now())?;
    }
    if safeguard != Safeguard::SecondOperator {
        let execution = Execution {
            service,
            actor: operator.audit_actor(),
            request_id: None,
        };
        return change.carry_out(execution).await;
    }
    let ChangeDescription {
        object,
        partner_id,
        details,
    } = change.describe(service).await?;
    let request_id = ChangeRequestId::generate();
    let sealed = SealedChange {
        kind,
        requested_by: operator.name().clone(),
        object: object.clone(),
        details: details.clone(),
        settings_token: service
            .operator_token
            .filter(|_| operator.is_from_settings())
            .map(|hash| *hash.as_bytes()),
        change,
    };
    let json = Zeroizing::new(serde_json::to_vec(&sealed).map_err(|error| unreadable(&error))?);
    let new = NewChangeRequest {
        request_id,
        kind,
        object,
        partner_id,
        details,
        sealed: seal(service, request_id, &json).await?,
        requested_by: operator.name().clone(),
        expires_at: service.clock.now() + VALIDITY,
    };
    let vault = service.keyring.vault();
    // A request that another node has encrypted under a new key counts as different.
    let is_same = move |request_id: ChangeRequestId, sealed: &[u8]| {
        let change = vault.open_change(request_id.as_uuid(), sealed);
        change.is_some_and(|change| *change == *json)
    };
    let requests = &service.store.change_requests;
    let request = requests.create(new, is_same, operator.audit_actor()).await?;
    let location = format!("/admin/v1/requests/{}", request.request_id);
    Ok(HttpResponse::Accepted()
        .insert_header((LOCATION, location))
        .json(request))
}

/// The request and what it is about, as text: a `Value` would convert amounts to floats.
pub(super) fn to_description(
    object: impl ToString,
    partner_id: impl Into<Option<PartnerId>>,
    details: &impl Serialize,
) -> Result<ChangeDescription, ApiError> {
    Ok(ChangeDescription {
        object: object.to_string(),
        partner_id: partner_id.into(),
        details: serde_json::to_string(details).map_err(|error| unreadable(&error))?,
    })
}

/// The fields that differ between an object and what the change leaves of it. As texts: a `Value` would
/// convert amounts to floats.
pub(super) fn to_preview<T: Serialize>(before: &T, after: &T) -> Result<Option<ChangePreview>, ApiError> {
    type Fields = BTreeMap<String, Box<RawValue>>;
    let fields = |object: &T| -> Result<Fields, serde_json::Error> {
        serde_json::from_str(&serde_json::to_string(object)?)
    };
    let compare = || -> Result<ChangePreview, serde_json::Error> {
        let (mut before, mut after) = (fields(before)?, fields(after)?);
        before.retain(|name, value| after.get(name).is_none_or(|other| other.get() != value.get()));
        after.retain(|name, _| before.contains_key(name));
        Ok(ChangePreview {
            before: serde_json::to_string(&before)?,
            after: serde_json::to_string(&after)?,
        })
    };
    compare().map(Some).map_err(|error| unreadable(&error))
}

async fn seal(
    service: &OperatorState,
    request_id: ChangeRequestId,
    json: &[u8],
) -> Result<Vec<u8>, ApiError> {
    let vault = service.keyring.sealing_vault().await.map_err(|error| {
        tracing::error!(error.message = %error, "no data key for a change request");
        ApiError::unavailable()
    })?;
    vault.seal_change(request_id.as_uuid(), json).map_err(|error| {
        tracing::error!(error.message = %error, "cannot encrypt a change request");
        ApiError::new(
            Code::InternalError,
            "cannot encrypt the request; nothing was changed",
        )
    })
}

/// The text of the error is not logged: it may quote a code.
fn unreadable(error: &serde_json::Error) -> ApiError {
    tracing::error!(error.line = error.line(), "cannot convert a change request");
    ApiError::new(
        Code::InternalError,
        "cannot convert the request; decline it and request the change again",
    )
}
