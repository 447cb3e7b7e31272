//! `/bulk-jobs`: one action on many objects, each carried out by the operation of that action.
//!
//! | step | on disk |
//! |---|---|
//! | an operator starts a job; validate it | the job and its objects, an audit entry |
//! | call the operation for an object, in the operator's name and with the trace id of the job | the change or its request, its own audit entry |
//! | keep the result | the object's result |
//!
//! The node that receives the request carries the job out. If it stops, the job is interrupted after a
//! minute: no other node changes anything in the name of an operator who is not there. Each operation can be
//! repeated, so a new job of the objects without a result continues it.

use std::sync::LazyLock;
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;
use vouchsafe_domain::bulk_job::{BulkAction, BulkItemFilter, BulkJob, BulkResult};
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::{BulkJobId, ChangeRequestId};
use vouchsafe_store::bulk_jobs::{ItemOutcome, NewBulkJob};
use vouchsafe_telemetry::trace::{REQUEST_TRACE, RequestTrace};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::operator::bulk_jobs::{self, BulkJobRequest, BulkOperation, bulk_operation};

use super::body::Json;
use super::inner_api::{InnerApi, InnerRequest};
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::path_id::{Id, PathId as _};

/// Jobs that a node carries out at once: each has one request at a time.
const MAX_RUNNING: usize = 4;

/// Attempts to change an object while the service or its database is overloaded.
const MAX_ATTEMPTS: u32 = 5;

const RETRY_DELAY: Duration = Duration::from_millis(500);

static RUNNING: LazyLock<std::sync::Arc<Semaphore>> =
    LazyLock::new(|| std::sync::Arc::new(Semaphore::new(MAX_RUNNING)));

pub(super) fn endpoints() -> [Endpoint; bulk_jobs::OPERATIONS.len()] {
    [
        bind(bulk_jobs::LIST_BULK_JOBS, list),
        bind(bulk_jobs::START_BULK_JOB, start),
        bind(bulk_jobs::GET_BULK_JOB, get),
        bind(bulk_jobs::LIST_BULK_ITEMS, list_items),
    ]
}

/// `GET /bulk-jobs`: newest first.
async fn list(
    service: web::Data<OperatorState>,
    ListRequest {
        page,
        filter: NoFilter {},
    }: ListRequest,
) -> ApiResult {
    let jobs = service.store.bulk_jobs.list(page.after()?, page.fetch_limit());
    list_response(&page, jobs.await?, |job| job.job_id)
}

/// `GET /bulk-jobs/{job_id}`.
async fn get(service: web::Data<OperatorState>, job_id: Id<BulkJobId>) -> ApiResult {
    Ok(HttpResponse::Ok().json(find(&service, &job_id).await?))
}

/// `GET /bulk-jobs/{job_id}/items`.
async fn list_items(
    service: web::Data<OperatorState>,
    job_id: Id<BulkJobId>,
    ListRequest { page, filter }: ListRequest<BulkItemFilter>,
) -> ApiResult {
    let job = find(&service, &job_id).await?;
    let items = &service.store.bulk_jobs;
    let items = items.list_items(job.job_id, filter, page.after()?, page.fetch_limit());
    list_response(&page, items.await?, |item| item.position)
}

async fn find(service: &OperatorState, job_id: &Id<BulkJobId>) -> Result<BulkJob, ApiError> {
    let job = service.store.bulk_jobs.find(job_id.parse()?).await?;
    job.ok_or_else(BulkJobId::not_found)
}

/// `POST /bulk-jobs`.
async fn start(
    service: web::Data<OperatorState>,
    operator: Operator,
    request: HttpRequest,
    Json(new): Json<BulkJobRequest>,
) -> ApiResult {
    new.check()?;
    operator.check_role(bulk_operation(new.action).operation.access.role)?;
    let permit = RUNNING.clone().try_acquire_owned().map_err(|_| {
        let message =
            format!("this node carries out {MAX_RUNNING} bulk jobs; start this one when one has ended");
        ApiError::new(Code::ServiceUnavailable, message)
    })?;
    let api = InnerApi::of(&request)?;
    let job_id = BulkJobId::generate();
    let reason: Option<String> = new.reason.map(Into::into);
    let mut actor = operator.audit_actor();
    actor.trace_id = Some(job_id.trace_id());
    let stored = NewBulkJob {
        job_id,
        action: new.action,
        reason: reason.clone(),
        operator: operator.name().clone(),
        object_ids: new.ids.clone(),
    };
    let job = service.store.bulk_jobs.create(stored, actor).await?;
    let runner = Runner {
        service,
        api,
        operator,
        job_id,
        action: new.action,
        reason,
    };
    #[allow(
        clippy::disallowed_methods,
        reason = "it goes on when the client has its response, and ends with the process"
    )]
    actix_web::rt::spawn(runner.run(new.ids, permit).in_current_span());
    Ok(HttpResponse::Created().json(job))
}

/// Carries a job out.
struct Runner {
    service: web::Data<OperatorState>,
    api: InnerApi,
    operator: Operator,
    job_id: BulkJobId,
    action: BulkAction,
    reason: Option<String>,
}

impl Runner {
    async fn run(self, object_ids: Vec<String>, _permit: OwnedSemaphorePermit) {
        let body = bulk_operation(self.action).body(self.reason.as_deref());
        for (position, object_id) in (1..).zip(object_ids) {
            let change = self.change(&object_id, body.as_deref());
            let trace = RequestTrace::start(self.job_id.trace_id());
            let outcome = REQUEST_TRACE.scope(trace, change).await;
            let outcome =
                outcome.unwrap_or_else(|error| ItemOutcome::refused(error.code.as_str(), error.message));
            let jobs = &self.service.store.bulk_jobs;
            if let Err(error) = jobs.finish(self.job_id, position, outcome).await {
                // The job is interrupted: the object has no result, and is part of the job that continues it.
                tracing::warn!(job.id = %self.job_id, error.message = %error, "cannot keep a result of a bulk job");
                return;
            }
        }
    }

    /// Changes an object, unless the operator may no longer do so.
    async fn change(&self, object_id: &str, body: Option<&str>) -> Result<ItemOutcome, ApiError> {
        let operation = bulk_operation(self.action);
        self.check_operator(&operation).await?;
        if self.action == BulkAction::RequestConfirm {
            self.check_without_secret(object_id).await?;
        }
        let mut attempt = 1;
        loop {
            let request = InnerRequest::new(Method::POST, operation.path(object_id));
            let request = match body {
                Some(body) => request.json(body.to_owned()),
                None => request,
            };
            let response = self.api.call(self.operator.clone(), request).await?;
            let status = response.status();
            let body = to_bytes(response.into_body()).await.unwrap_or_default();
            let outcome = to_outcome(status, &body);
            if status != StatusCode::SERVICE_UNAVAILABLE || attempt == MAX_ATTEMPTS {
                return Ok(outcome);
            }
            attempt += 1;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// A job outlasts the request that started it: the account may be disabled meanwhile.
    async fn check_operator(&self, operation: &BulkOperation) -> Result<(), ApiError> {
        if self.operator.is_from_settings() {
            return Ok(());
        }
        let account = self
            .service
            .store
            .operators
            .find(self.operator.name().clone())
            .await?;
        let needed = operation.operation.access.role;
        if account.is_some_and(|account| !account.disabled && account.role >= needed) {
            return Ok(());
        }
        let message = "the operator of the job is disabled or no longer has the role for this";
        Err(ApiError::new(Code::Forbidden, message))
    }

    /// A secret is in the response to the confirmation only, which a job does not show.
    async fn check_without_secret(&self, object_id: &str) -> Result<(), ApiError> {
        let Ok(request_id) = object_id.parse::<ChangeRequestId>() else {
            return Ok(());
        };
        let stored = self.service.store.change_requests.find(request_id).await?;
        if stored.is_some_and(|stored| ChangeKind::has_secret(stored.request.kind)) {
            let message = "the confirmation shows a secret once, which a bulk job does not; confirm it alone";
            return Err(ApiError::invalid_field("ids", message));
        }
        Ok(())
    }
}

/// What a job needs of a response.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseFields {
    request_id: Option<ChangeRequestId>,
    error: ErrorFields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorFields {
    code: String,
    message: String,
}

fn to_outcome(status: StatusCode, body: &[u8]) -> ItemOutcome {
    let fields: ResponseFields = serde_json::from_slice(body).unwrap_or_default();
    let ErrorFields { code, message } = fields.error;
    match fields.request_id {
        Some(request_id) if status == StatusCode::ACCEPTED => ItemOutcome {
            request_id: Some(request_id),
            ..ItemOutcome::of(BulkResult::Requested)
        },
        _ if status.is_success() => ItemOutcome::of(BulkResult::Done),
        _ if status.is_client_error() => ItemOutcome::refused(&code, message),
        _ => ItemOutcome {
            result: BulkResult::Failed,
            ..ItemOutcome::refused(&code, message)
        },
    }
}
