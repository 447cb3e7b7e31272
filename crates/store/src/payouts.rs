//! Payout reads.

use sqlx::PgPool;
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::payout::{Payout, PayoutDestination, PayoutFilter, PayoutMilestone, PayoutStatus};

use super::audit::{self, AuditAction, AuditActor, NO_STATE, to_bigint};
use super::database::Database;

#[derive(sqlx::FromRow)]
struct PayoutRow {
    partner_id: Uuid,
    payout_id: Uuid,
    status: String,
    currency: String,
    amount: i64,
    destination: String,
    destination_sealed: Vec<u8>,
    reference: Option<String>,
    timeline: Json<Vec<PayoutMilestone>>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
}

/// Payouts of the partners.
#[derive(Debug, Clone)]
pub struct Payouts(pub(super) Database);

impl Payouts {
    /// Finds a payout of this partner.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> Result<Option<Payout>, sqlx::Error> {
        self.0
            .run(move |pool| async move { find(&pool, partner_id, payout_id).await })
            .await
    }

    /// Finds the partner of a payout.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_owner(&self, payout_id: PayoutId) -> Result<Option<PartnerId>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let partner: Option<Uuid> =
                    sqlx::query_scalar("SELECT partner_id FROM payouts WHERE payout_id = $1")
                        .bind(payout_id.as_uuid())
                        .fetch_optional(&pool)
                        .await?;
                Ok(partner.map(PartnerId::from_uuid))
            })
            .await
    }

    /// Writes an audit entry: an operator has read the destination of a payout.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn audit_destination_read(
        &self,
        payout_id: PayoutId,
        actor: AuditActor,
    ) -> Result<(), sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let subject = payout_id.to_string();
                let action = AuditAction {
                    name: "payout.read",
                    subject: &subject,
                };
                audit::write(&mut transaction, &actor, action, NO_STATE, NO_STATE).await?;
                transaction.commit().await
            })
            .await
    }

    /// Lists up to `limit` payouts older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(
        &self,
        filter: PayoutFilter,
        before: Option<PayoutId>,
        limit: usize,
    ) -> Result<Vec<Payout>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let found: Vec<PayoutRow> = sqlx::query_as(
                    "SELECT *
                   FROM payouts
                  WHERE ($1::uuid IS NULL OR partner_id = $1)
                    AND ($2::text IS NULL OR status = $2)
                    AND ($3::uuid IS NULL OR payout_id < $3)
                  ORDER BY payout_id DESC
                  LIMIT $4",
                )
                .bind(filter.partner_id.map(PartnerId::as_uuid))
                .bind(filter.status.map(PayoutStatus::as_str))
                .bind(before.map(PayoutId::as_uuid))
                .bind(to_bigint(limit))
                .fetch_all(&pool)
                .await?;
                found.into_iter().map(Payout::try_from).collect()
            })
            .await
    }
}

/// Finds a payout of this partner.
pub(super) async fn find(
    pool: &PgPool,
    partner_id: PartnerId,
    payout_id: PayoutId,
) -> Result<Option<Payout>, sqlx::Error> {
    let row: Option<PayoutRow> =
        sqlx::query_as("SELECT * FROM payouts WHERE partner_id = $1 AND payout_id = $2")
            .bind(partner_id.as_uuid())
            .bind(payout_id.as_uuid())
            .fetch_optional(pool)
            .await?;
    row.map(Payout::try_from).transpose()
}

impl TryFrom<PayoutRow> for Payout {
    type Error = sqlx::Error;

    fn try_from(row: PayoutRow) -> Result<Self, sqlx::Error> {
        let payout_id = PayoutId::from_uuid(row.payout_id);
        let invalid =
            |column: &str| sqlx::Error::Decode(format!("payout {payout_id} has an invalid {column}").into());
        let currency = row.currency.parse().map_err(|_| invalid("currency"))?;
        Ok(Self {
            payout_id,
            partner_id: PartnerId::from_uuid(row.partner_id),
            status: PayoutStatus::from_label(&row.status).ok_or_else(|| invalid("status"))?,
            money: Amount::from_minor(row.amount).of(currency),
            destination: PayoutDestination {
                masked: row.destination.into(),
                sealed: row.destination_sealed.into(),
            },
            reference: row.reference,
            timeline: row.timeline.0,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}
