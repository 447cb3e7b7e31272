//! Bulk jobs of operators, and the result for each of their objects.

use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::bulk_job::{BulkAction, BulkItem, BulkItemFilter, BulkJob, BulkJobStatus, BulkResult};
use vouchsafe_domain::ids::{BulkJobId, ChangeRequestId};
use vouchsafe_domain::operator::OperatorName;

/// A job without a result for so long is interrupted. Longer than a change takes.
const RESULT_TIMEOUT_S: f64 = 60.0;

/// Days for which a job stays listed. The audit trail keeps its entries.
const JOB_DAYS: i32 = 366;

/// A job to start.
#[derive(Debug, Clone)]
pub struct NewBulkJob {
    pub job_id: BulkJobId,
    pub action: BulkAction,
    pub reason: Option<String>,
    pub operator: OperatorName,
    pub object_ids: Vec<String>,
}

/// What happened to an object.
#[derive(Debug, Clone)]
pub struct ItemOutcome {
    pub result: BulkResult,
    pub error_code: Option<String>,
    pub message: Option<String>,
    pub request_id: Option<ChangeRequestId>,
}

impl ItemOutcome {
    #[must_use]
    pub const fn of(result: BulkResult) -> Self {
        Self {
            result,
            error_code: None,
            message: None,
            request_id: None,
        }
    }

    #[must_use]
    pub fn refused(code: &str, message: String) -> Self {
        Self {
            error_code: Some(code.to_owned()),
            message: Some(message),
            ..Self::of(BulkResult::Refused)
        }
    }
}

/// Runs a statement that returns jobs.
macro_rules! query_jobs {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            $before
                + r#" job_id AS "job_id: BulkJobId", action AS "action: BulkAction", reason, operator AS "operator: OperatorName",
                      CASE WHEN done + requested + refused + failed = objects THEN 'ENDED'
                           WHEN runs_until > now() THEN 'RUNNING'
                           ELSE 'INTERRUPTED' END AS "status!: BulkJobStatus",
                      objects, done, requested, refused, failed, started_at, ended_at "#
                + $after,
            $($argument),*
        )
        .map(|row| BulkJob {
            job_id: row.job_id,
            action: row.action,
            reason: row.reason,
            operator: row.operator,
            status: row.status,
            objects: row.objects,
            done: row.done,
            requested: row.requested,
            refused: row.refused,
            failed: row.failed,
            started_at: row.started_at,
            ended_at: row.ended_at,
            trace_id: row.job_id.trace_id(),
        })
    };
}

/// Bulk jobs.
#[derive(Debug, Clone)]
pub struct BulkJobs(Database);

impl BulkJobs {
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self(database)
    }

    /// Stores a job with its objects.
    #[boxed]
    pub async fn create(&self, new: NewBulkJob, actor: AuditActor) -> Result<BulkJob, StoreError> {
        transaction!(self.0, "bulk_job.start", async |transaction| {
            let job = query_jobs!(
                "INSERT INTO bulk_jobs (job_id, action, reason, operator, objects, runs_until)
                 VALUES ($1, $2, $3, $4, cardinality($5::text[]), now() + make_interval(secs => $6)) RETURNING",
                "",
                new.job_id as _,
                new.action as _,
                new.reason,
                new.operator as _,
                &new.object_ids,
                RESULT_TIMEOUT_S,
            );
            let job = job.fetch_one(&mut **transaction).await?;
            sqlx::query!(
                "INSERT INTO bulk_items (job_id, position, object_id)
                 SELECT $1, o.position, o.object_id FROM unnest($2::text[]) WITH ORDINALITY AS o (object_id, position)",
                new.job_id as _,
                &new.object_ids,
            )
            .execute(&mut **transaction)
            .await?;
            let action = AuditAction::StartBulkJob;
            audit::write(transaction, &actor, action, &job.job_id, None::<&()>, Some(&job)).await?;
            Ok(job)
        })
    }

    /// Keeps the result for an object; the first one is final.
    #[boxed]
    pub async fn finish(
        &self,
        job_id: BulkJobId,
        position: i32,
        outcome: ItemOutcome,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "WITH item AS (
                 UPDATE bulk_items
                    SET result = $3, error_code = $4, message = $5, request_id = $6, ended_at = now()
                  WHERE job_id = $1 AND position = $2 AND result = 'WAITING'
                 RETURNING result
             )
             UPDATE bulk_jobs AS j
                SET done = j.done + (i.result = 'DONE')::int,
                    requested = j.requested + (i.result = 'REQUESTED')::int,
                    refused = j.refused + (i.result = 'REFUSED')::int,
                    failed = j.failed + (i.result = 'FAILED')::int,
                    ended_at = now(),
                    runs_until = now() + make_interval(secs => $7)
               FROM item AS i
              WHERE j.job_id = $1",
            job_id as _,
            position,
            outcome.result as _,
            outcome.error_code,
            outcome.message,
            outcome.request_id as _,
            RESULT_TIMEOUT_S,
        );
        self.0.execute(statement).await
    }

    #[boxed]
    pub async fn find(&self, job_id: BulkJobId) -> Result<Option<BulkJob>, StoreError> {
        let statement = query_jobs!("SELECT", "FROM bulk_jobs WHERE job_id = $1", job_id as _);
        self.0.fetch_optional(statement).await
    }

    /// Lists up to `limit` jobs older than `before`, newest first.
    #[boxed]
    pub async fn list(&self, before: Option<BulkJobId>, limit: usize) -> Result<Vec<BulkJob>, StoreError> {
        let statement = query_jobs!(
            "SELECT",
            "FROM bulk_jobs WHERE ($1::uuid IS NULL OR job_id < $1) ORDER BY job_id DESC LIMIT $2",
            before as _,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    /// Lists up to `limit` objects of a job after a position.
    #[boxed]
    pub async fn list_items(
        &self,
        job_id: BulkJobId,
        filter: BulkItemFilter,
        after: Option<i32>,
        limit: usize,
    ) -> Result<Vec<BulkItem>, StoreError> {
        let statement = sqlx::query_as!(
            BulkItem,
            r#"SELECT position, object_id, result AS "result: BulkResult", error_code, message,
                      request_id AS "request_id: ChangeRequestId", ended_at
                 FROM bulk_items
                WHERE job_id = $1
                  AND ($2::text IS NULL OR result = $2)
                  AND position > $3
                ORDER BY position
                LIMIT $4"#,
            job_id as _,
            filter.result as _,
            after.unwrap_or_default(),
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    /// Deletes the jobs that were started a year ago, by the database's clock.
    #[boxed]
    pub async fn purge(&self) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "DELETE FROM bulk_jobs WHERE started_at < now() - make_interval(days => $1)",
            JOB_DAYS,
        );
        self.0.execute(statement).await
    }
}
