//! The authenticated operator of a request, and what the operator may do.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use time::OffsetDateTime;
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_domain::operator_session::{STEP_UP_MINUTES, SessionAuthentication};
use vouchsafe_store::AuditActor;
use vouchsafe_store::operators::SessionSpan;
use vouchsafe_telemetry::trace;
use vouchsafe_wire::error_code::Code;

use super::{forbidden, unauthorized};
use crate::api::error::ApiError;

/// The authenticated operator of a request.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(super) name: OperatorName,
    pub(super) role: Role,
    /// The session of a browser, or the one that issued the bearer token: what the operator issues for the
    /// own account must not outlast it.
    pub(super) session: Option<SessionSpan>,
    /// Authentication of the same session. A token that a session has issued is as old as that.
    pub(super) authentication: Option<SessionAuthentication>,
}

impl Operator {
    /// Whether the operator may do more than the route requires.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.role >= role
    }

    /// Rejects the operator if the object of the request requires a higher role than the route.
    ///
    /// # Errors
    /// `FORBIDDEN`.
    pub(crate) fn check_role(&self, needed: Role) -> Result<(), ApiError> {
        if self.has_role(needed) {
            return Ok(());
        }
        Err(forbidden(needed, self.role))
    }

    /// Rejects a session without a recent authentication at the identity provider. A token that no session
    /// has issued has none.
    ///
    /// # Errors
    /// `STEP_UP_REQUIRED`.
    pub(crate) fn check_recent_authentication(&self, now: OffsetDateTime) -> Result<(), ApiError> {
        if self
            .authentication
            .is_none_or(|authentication| authentication.is_recent(now))
        {
            return Ok(());
        }
        let message = format!(
            "this needs a sign-in at the identity provider within the last {STEP_UP_MINUTES} minutes; open \
             /sign-in/oidc?step_up=true and send the request again"
        );
        Err(ApiError::new(Code::StepUpRequired, message))
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    pub(crate) const fn session(&self) -> Option<SessionSpan> {
        self.session
    }

    pub(crate) const fn name(&self) -> &OperatorName {
        &self.name
    }

    /// Whether the operator is the token of the settings, which belongs to no account.
    pub(crate) fn is_from_settings(&self) -> bool {
        self.name == OperatorName::settings_token()
    }

    pub(crate) fn is_named(&self, name: &OperatorName) -> bool {
        self.name == *name
    }

    /// The actor of a write. The route has checked the role.
    pub(crate) fn audit_actor(&self) -> AuditActor {
        audit_actor(&self.name)
    }
}

/// An operator as the actor of a write in the current request.
pub(crate) fn audit_actor(name: &OperatorName) -> AuditActor {
    AuditActor {
        operator: name.to_string(),
        trace_id: Some(trace::current_trace_id()).filter(|id| !id.is_empty()),
    }
}

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(
            request
                .extensions()
                .get::<Self>()
                .cloned()
                .ok_or_else(unauthorized),
        )
    }
}
