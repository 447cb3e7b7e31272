//! Drifts: differences between our vouchers and the vendor's records, and their resolution by operators.

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use time::Date;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{DriftId, OrderId, PartnerId, VoucherId};
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftFilter, DriftResolution, ResolveDriftRequest};

use super::row::StoredTerms;
use vouchsafe_database::database::Database;

/// Runs a statement that returns drifts; `$before` and `$after` enclose the columns.
macro_rules! query_drifts {
    ($before:literal, $after:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            $before
                + r#" drift_id AS "drift_id: DriftId", vendor, day, reference, kind AS "kind: DriftKind",
                      partner_id AS "partner_id: PartnerId", order_id AS "order_id: OrderId",
                      voucher_id AS "voucher_id: VoucherId", ours AS "ours: Json<StoredTerms>",
                      theirs AS "theirs: Json<StoredTerms>", detected_at, resolution AS "resolution: DriftResolution",
                      reason, resolved_at "#
                + $after,
            $($argument),+
        )
        .map(|row| Drift {
            drift_id: row.drift_id,
            vendor: row.vendor,
            day: row.day,
            reference: row.reference,
            kind: row.kind,
            order: row.partner_id.zip(row.order_id),
            voucher_id: row.voucher_id,
            ours: row.ours.map(|Json(terms)| terms.into()),
            theirs: row.theirs.map(|Json(terms)| terms.into()),
            detected_at: row.detected_at,
            resolution: row.resolution,
            reason: row.reason,
            resolved_at: row.resolved_at,
        })
    };
}

/// Audited state of a drift.
#[derive(Serialize)]
struct DriftAuditState {
    resolution: DriftResolution,
    reason: Option<String>,
}

/// Differences that reconciliations found.
#[derive(Debug, Clone)]
pub struct Drifts(pub(crate) Database);

impl Drifts {
    /// Lists up to `limit` drifts older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: DriftFilter,
        before: Option<DriftId>,
        limit: usize,
    ) -> Result<Vec<Drift>, StoreError> {
        let statement = query_drifts!(
            "SELECT",
            "FROM drifts
              WHERE ($1::date IS NULL OR day = $1)
                AND ($2::text IS NULL OR vendor = $2)
                AND ($3::text IS NULL OR kind = $3)
                AND ($4::text IS NULL OR resolution = $4)
                AND ($5::uuid IS NULL OR drift_id < $5)
              ORDER BY drift_id DESC
              LIMIT $6",
            filter.day,
            filter.vendor,
            filter.kind as _,
            filter.resolution as _,
            before as _,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    /// Sets the resolution of a drift and writes an audit entry. `None` if the drift does not exist.
    #[boxed]
    pub async fn resolve(
        &self,
        request: ResolveDriftRequest,
        actor: AuditActor,
    ) -> Result<Option<Drift>, StoreError> {
        transaction!(self.0, "drift.resolve", async |transaction| {
            resolve(transaction, &request, &actor).await
        })
    }
}

async fn resolve(
    transaction: &mut PgConnection,
    request: &ResolveDriftRequest,
    actor: &AuditActor,
) -> Result<Option<Drift>, sqlx::Error> {
    let before = sqlx::query!(
        r#"SELECT resolution AS "resolution: DriftResolution", reason, partner_id AS "partner_id: PartnerId"
             FROM drifts
            WHERE drift_id = $1
              FOR UPDATE"#,
        request.drift_id as _,
    )
    .map(|row| {
        let (resolution, reason) = (row.resolution, row.reason);
        (DriftAuditState { resolution, reason }, row.partner_id)
    });
    let Some((before, partner_id)) = before.fetch_optional(&mut *transaction).await? else {
        return Ok(None);
    };
    let drift = query_drifts!(
        "UPDATE drifts
            SET resolution = $2,
                reason = $3,
                resolved_at = now()
          WHERE drift_id = $1
         RETURNING",
        "",
        request.drift_id as _,
        request.resolution as _,
        request.reason,
    );
    let drift = drift.fetch_one(&mut *transaction).await?;
    let after = DriftAuditState {
        resolution: drift.resolution,
        reason: drift.reason.clone(),
    };
    audit::write_of_partner(
        transaction,
        actor,
        partner_id,
        AuditAction::ResolveDrift,
        &drift.drift_id,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(Some(drift))
}

/// Lists up to `limit` drifts of a partner's orders of a day, oldest first.
pub(super) async fn list_of_partner(
    connection: &mut PgConnection,
    partner_id: PartnerId,
    day: Date,
    limit: usize,
) -> Result<Vec<Drift>, sqlx::Error> {
    query_drifts!(
        "SELECT",
        "FROM drifts
          WHERE partner_id = $1 AND day = $2
          ORDER BY drift_id
          LIMIT $3",
        partner_id as _,
        day,
        to_bigint(limit),
    )
    .fetch_all(connection)
    .await
}
