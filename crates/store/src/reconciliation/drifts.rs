//! Drifts: differences between our vouchers and the vendor's records, and their resolution by operators.

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use time::{Date, OffsetDateTime};
use uuid::Uuid;
use vouchsafe_domain::ids::{DriftId, OrderId, PartnerId, VoucherId};
use vouchsafe_domain::reconciliation::DriftKind;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftFilter, DriftResolution, ResolveDriftRequest};

use super::row::VoucherTermsRow;
use crate::audit::{self, AuditAction, AuditActor, to_bigint};
use crate::database::Database;

#[derive(sqlx::FromRow)]
pub(super) struct DriftRow {
    drift_id: Uuid,
    vendor: String,
    day: Date,
    reference: String,
    kind: String,
    partner_id: Option<Uuid>,
    order_id: Option<Uuid>,
    voucher_id: Option<Uuid>,
    ours: Option<Json<VoucherTermsRow>>,
    theirs: Option<Json<VoucherTermsRow>>,
    detected_at: OffsetDateTime,
    resolution: String,
    reason: Option<String>,
    resolved_at: Option<OffsetDateTime>,
}

/// Audited state of a drift.
#[derive(Serialize)]
struct DriftAuditState<'a> {
    resolution: DriftResolution,
    reason: Option<&'a str>,
}

/// Differences that reconciliations found.
#[derive(Debug, Clone)]
pub struct Drifts(pub(crate) Database);

impl Drifts {
    /// Lists up to `limit` drifts older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        filter: DriftFilter,
        before: Option<DriftId>,
        limit: usize,
    ) -> Result<Vec<Drift>, sqlx::Error> {
        let found: Vec<DriftRow> = self
            .0
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT *
                       FROM drifts
                      WHERE ($1::date IS NULL OR day = $1)
                        AND ($2::text IS NULL OR vendor = $2)
                        AND ($3::text IS NULL OR kind = $3)
                        AND ($4::text IS NULL OR resolution = $4)
                        AND ($5::uuid IS NULL OR drift_id < $5)
                      ORDER BY drift_id DESC
                      LIMIT $6",
                )
                .bind(filter.day)
                .bind(filter.vendor)
                .bind(filter.kind.map(DriftKind::as_str))
                .bind(filter.resolution.map(DriftResolution::as_str))
                .bind(before.map(DriftId::as_uuid))
                .bind(to_bigint(limit))
                .fetch_all(&pool)
                .await
            })
            .await?;
        found.into_iter().map(Drift::try_from).collect()
    }

    /// Sets the resolution of a drift and writes an audit entry. `None` if the drift does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn resolve(
        &self,
        request: ResolveDriftRequest,
        actor: AuditActor,
    ) -> Result<Option<Drift>, sqlx::Error> {
        self.0
            .run(move |pool| async move { resolve(&pool, &request, &actor).await })
            .await
    }
}

async fn resolve(
    pool: &PgPool,
    request: &ResolveDriftRequest,
    actor: &AuditActor,
) -> Result<Option<Drift>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(before) = lock(&mut transaction, request.drift_id).await? else {
        return Ok(None);
    };
    let after: DriftRow = sqlx::query_as(
        "UPDATE drifts
            SET resolution = $2,
                reason = $3,
                resolved_at = now()
          WHERE drift_id = $1
         RETURNING *",
    )
    .bind(request.drift_id.as_uuid())
    .bind(request.resolution.as_str())
    .bind(&request.reason)
    .fetch_one(&mut *transaction)
    .await?;
    let after = Drift::try_from(after)?;
    let subject = request.drift_id.to_string();
    let action = AuditAction {
        name: "drift.resolve",
        subject: &subject,
    };
    audit::write(
        &mut transaction,
        actor,
        action,
        Some(&audit_state(&before)),
        Some(&audit_state(&after)),
    )
    .await?;
    transaction.commit().await?;
    Ok(Some(after))
}

/// Loads a drift and locks its row.
async fn lock(connection: &mut PgConnection, drift_id: DriftId) -> Result<Option<Drift>, sqlx::Error> {
    let row: Option<DriftRow> = sqlx::query_as("SELECT * FROM drifts WHERE drift_id = $1 FOR UPDATE")
        .bind(drift_id.as_uuid())
        .fetch_optional(connection)
        .await?;
    row.map(Drift::try_from).transpose()
}

fn audit_state(drift: &Drift) -> DriftAuditState<'_> {
    DriftAuditState {
        resolution: drift.resolution,
        reason: drift.reason.as_deref(),
    }
}

impl TryFrom<DriftRow> for Drift {
    type Error = sqlx::Error;

    fn try_from(row: DriftRow) -> Result<Self, sqlx::Error> {
        let drift_id = DriftId::from_uuid(row.drift_id);
        let invalid =
            |column: &str| sqlx::Error::Decode(format!("drift {drift_id} has an invalid {column}").into());
        let resolution = DriftResolution::ALL
            .into_iter()
            .find(|resolution| resolution.as_str() == row.resolution);
        let parse = |terms: Option<Json<VoucherTermsRow>>| {
            terms.map(|Json(terms)| terms.parse(&row.reference)).transpose()
        };
        let (ours, theirs) = (parse(row.ours)?, parse(row.theirs)?);
        let order = row.partner_id.zip(row.order_id);
        Ok(Self {
            drift_id,
            vendor: row.vendor,
            day: row.day,
            kind: DriftKind::from_label(&row.kind).ok_or_else(|| invalid("kind"))?,
            order: order.map(|(partner_id, order_id)| {
                (PartnerId::from_uuid(partner_id), OrderId::from_uuid(order_id))
            }),
            voucher_id: row.voucher_id.map(VoucherId::from_uuid),
            ours,
            theirs,
            detected_at: row.detected_at,
            resolution: resolution.ok_or_else(|| invalid("resolution"))?,
            reason: row.reason,
            resolved_at: row.resolved_at,
            reference: row.reference,
        })
    }
}
