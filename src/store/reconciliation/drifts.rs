//! Drifts, as operators look at them, and what they say of them.

use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{DriftId, OrderId, PartnerId, VoucherId};

use super::row::SaidRow;
use crate::reconciliation::{DriftKind, VoucherTerms};
use crate::store::PgStore;
use crate::store::audit::{self, AuditActor, AuditAction, to_bigint};

/// What was said of a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    as = DriftResolution,
    description = "What was said of a drift: `pending` (nothing yet), `resolved` (it is settled) or `escalated` (the vendor \
                   was asked)."
)]
pub enum DriftResolution {
    Pending,
    Resolved,
    /// The vendor was asked.
    Escalated,
}

/// A place where both sides do not say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Its id: the same for as long as both sides say the same.
    pub drift_id: DriftId,
    pub vendor: String,
    /// On which day (UTC).
    pub day: Date,
    /// The vendor's name of the voucher.
    pub reference: String,
    pub kind: DriftKind,
    /// The order that the voucher was bought for, and whose it is.
    pub order: Option<(PartnerId, OrderId)>,
    /// The voucher as that order holds it.
    pub voucher_id: Option<VoucherId>,
    /// What we say of it.
    pub ours: Option<VoucherTerms>,
    /// What the vendor says of it.
    pub theirs: Option<VoucherTerms>,
    /// When it was found.
    pub detected_at: OffsetDateTime,
    /// What was said of it.
    pub resolution: DriftResolution,
    pub reason: Option<String>,
    pub resolved_at: Option<OffsetDateTime>,
}

/// Which drifts are asked for; `None` is any.
#[derive(Debug, Clone, Default)]
pub struct DriftFilter {
    pub day: Option<Date>,
    pub vendor: Option<String>,
    pub kind: Option<DriftKind>,
    /// Of which this was said.
    pub resolution: Option<DriftResolution>,
}

/// What is said of a drift.
#[derive(Debug, Clone)]
pub struct ResolveDriftRequest {
    pub drift_id: DriftId,
    pub resolution: DriftResolution,
    pub reason: String,
}

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
    ours: Option<Json<SaidRow>>,
    theirs: Option<Json<SaidRow>>,
    detected_at: OffsetDateTime,
    resolution: String,
    reason: Option<String>,
    resolved_at: Option<OffsetDateTime>,
}

/// What the trail says of a drift.
#[derive(Serialize)]
struct DriftAuditState<'a> {
    resolution: DriftResolution,
    reason: Option<&'a str>,
}

impl DriftResolution {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Resolved, Self::Escalated];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resolved => "resolved",
            Self::Escalated => "escalated",
        }
    }
}

impl PgStore {
    /// Up to `limit` drifts, newest first, of those before `before`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_drifts(
        &self,
        filter: DriftFilter,
        before: Option<DriftId>,
        limit: usize,
    ) -> Result<Vec<Drift>, sqlx::Error> {
        let found: Vec<DriftRow> = self
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

    /// Says something of a drift, and tells the trail. `None`: there is no such drift.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn resolve_drift(&self, resolved: ResolveDriftRequest, by: AuditActor) -> Result<Option<Drift>, sqlx::Error> {
        self.run(move |pool| async move { resolve(&pool, &resolved, &by).await })
            .await
    }
}

async fn resolve(pool: &PgPool, resolved: &ResolveDriftRequest, by: &AuditActor) -> Result<Option<Drift>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(before) = lock(&mut transaction, resolved.drift_id).await? else {
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
    .bind(resolved.drift_id.as_uuid())
    .bind(resolved.resolution.as_str())
    .bind(&resolved.reason)
    .fetch_one(&mut *transaction)
    .await?;
    let after = Drift::try_from(after)?;
    let subject = resolved.drift_id.to_string();
    let deed = AuditAction {
        name: "drift.resolve",
        subject: &subject,
    };
    audit::write(
        &mut transaction,
        by,
        deed,
        Some(&before.audit_state()),
        Some(&after.audit_state()),
    )
    .await?;
    transaction.commit().await?;
    Ok(Some(after))
}

/// The drift, which stays as it is until the transaction ends.
async fn lock(connection: &mut PgConnection, drift_id: DriftId) -> Result<Option<Drift>, sqlx::Error> {
    let row: Option<DriftRow> = sqlx::query_as("SELECT * FROM drifts WHERE drift_id = $1 FOR UPDATE")
        .bind(drift_id.as_uuid())
        .fetch_optional(connection)
        .await?;
    row.map(Drift::try_from).transpose()
}

impl Drift {
    fn audit_state(&self) -> DriftAuditState<'_> {
        DriftAuditState {
            resolution: self.resolution,
            reason: self.reason.as_deref(),
        }
    }
}

impl TryFrom<DriftRow> for Drift {
    type Error = sqlx::Error;

    fn try_from(row: DriftRow) -> Result<Self, sqlx::Error> {
        let drift_id = DriftId::from_uuid(row.drift_id);
        let impossible =
            |column: &str| sqlx::Error::Decode(format!("drift {drift_id} has an impossible {column}").into());
        let resolution = DriftResolution::ALL
            .into_iter()
            .find(|one| one.as_str() == row.resolution);
        let read = |said: Option<Json<SaidRow>>| said.map(|Json(said)| said.read(&row.reference)).transpose();
        let (ours, theirs) = (read(row.ours)?, read(row.theirs)?);
        let order = row.partner_id.zip(row.order_id);
        Ok(Self {
            drift_id,
            vendor: row.vendor,
            day: row.day,
            kind: DriftKind::from_label(&row.kind).ok_or_else(|| impossible("kind"))?,
            order: order.map(|(partner_id, order_id)| {
                (PartnerId::from_uuid(partner_id), OrderId::from_uuid(order_id))
            }),
            voucher_id: row.voucher_id.map(VoucherId::from_uuid),
            ours,
            theirs,
            detected_at: row.detected_at,
            resolution: resolution.ok_or_else(|| impossible("resolution"))?,
            reason: row.reason,
            resolved_at: row.resolved_at,
            reference: row.reference,
        })
    }
}
