//! Reads of lists and statistics: from the standby of `VOUCHSAFE_REPLICA_URL` while it is little behind and
//! answers, else from the primary.

use std::future::{Ready, ready};
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage as _, HttpRequest, web};
use time::OffsetDateTime;
use vouchsafe_store::{PgStore, StoreError};

use crate::api::error::ApiError;
use crate::api::operator::OperatorState;

/// Seconds by which a response may be behind the database.
pub(in crate::api) const REPLICA_LAG: HeaderName = HeaderName::from_static("vouchsafe-replica-lag");

/// The lag of the standby when the request read from it.
#[derive(Debug, Clone, Copy)]
struct ReadLag(Duration);

/// Reads of lists and statistics of operators.
pub(super) struct Reports {
    state: web::Data<OperatorState>,
    request: HttpRequest,
}

impl Reports {
    pub(super) fn now(&self) -> OffsetDateTime {
        self.state.clock.now()
    }

    /// Reads from the standby, or from the primary while there is none to read. A standby that dies or is
    /// found to hang meanwhile costs a second read and no error. One that takes too long for the read is an
    /// error: the primary is not to do such work.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) async fn read<T>(
        &self,
        read: impl AsyncFn(&PgStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let standby = self.state.replica.as_ref();
        if let Some((replica, lag)) = standby.and_then(|replica| Some((replica, replica.lag()?))) {
            let outcome = tokio::select! {
                outcome = read(replica.store()) => Some(outcome),
                () = replica.given_up() => None,
            };
            match outcome {
                Some(Err(error)) if error.is_disconnected() || error.is_conflict() => replica.give_up(),
                Some(outcome) => {
                    self.request.extensions_mut().insert(ReadLag(lag));
                    return outcome;
                }
                None => {}
            }
        }
        read(&self.state.store).await
    }
}

impl FromRequest for Reports {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let Some(state) = request.app_data::<web::Data<OperatorState>>() else {
            return ready(Err(ApiError::unavailable().into()));
        };
        ready(Ok(Self {
            state: state.clone(),
            request: request.clone(),
        }))
    }
}

/// Adds the header `Vouchsafe-Replica-Lag` to responses that the standby has served.
pub(super) async fn show_replica_lag(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut response = next.call(request).await?;
    let lag = response.request().extensions().get::<ReadLag>().copied();
    if let Some(ReadLag(lag)) = lag
        && let Ok(value) = HeaderValue::from_str(&format!("{:.3}", lag.as_secs_f64()))
    {
        response.headers_mut().insert(REPLICA_LAG, value);
    }
    Ok(response)
}
