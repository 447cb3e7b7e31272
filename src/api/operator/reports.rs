//! Store for lists and statistics: the standby of `VOUCHSAFE_REPLICA_URL` while it is little behind, else the
//! primary.

use std::future::{Ready, ready};
use std::ops::Deref;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage as _, HttpRequest, web};
use time::OffsetDateTime;
use vouchsafe_store::PgStore;

use crate::api::error::ApiError;
use crate::api::operator::OperatorState;

/// Seconds by which a response may be behind the database.
const REPLICA_LAG: HeaderName = HeaderName::from_static("vouchsafe-replica-lag");

/// The lag of the standby when the request chose it.
#[derive(Debug, Clone, Copy)]
struct ChosenLag(Duration);

/// Store for lists and statistics of operators.
pub(super) struct Reports {
    state: web::Data<OperatorState>,
    is_of_replica: bool,
}

impl Reports {
    pub(super) fn now(&self) -> OffsetDateTime {
        self.state.clock.now()
    }
}

impl Deref for Reports {
    type Target = PgStore;

    fn deref(&self) -> &PgStore {
        match &self.state.replica {
            Some(replica) if self.is_of_replica => replica.store(),
            _ => &self.state.store,
        }
    }
}

impl FromRequest for Reports {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let Some(state) = request.app_data::<web::Data<OperatorState>>() else {
            return ready(Err(ApiError::unavailable().into()));
        };
        let lag = state.replica.as_ref().and_then(|replica| replica.lag());
        if let Some(lag) = lag {
            request.extensions_mut().insert(ChosenLag(lag));
        }
        ready(Ok(Self {
            state: state.clone(),
            is_of_replica: lag.is_some(),
        }))
    }
}

/// Adds the header `Vouchsafe-Replica-Lag` to responses that the standby has served.
pub(super) async fn show_replica_lag(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut response = next.call(request).await?;
    let lag = response.request().extensions().get::<ChosenLag>().copied();
    if let Some(ChosenLag(lag)) = lag
        && let Ok(value) = HeaderValue::from_str(&format!("{:.3}", lag.as_secs_f64()))
    {
        response.headers_mut().insert(REPLICA_LAG, value);
    }
    Ok(response)
}
