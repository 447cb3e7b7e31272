//! Payouts as they are read.

use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{PartnerId, PayoutId};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::payout::{Destination, Payout, PayoutMilestone, PayoutStatus};

use super::PgStore;
use super::audit::{self, By, Deed, NOTHING, rows};

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

/// Which payouts a list shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PayoutFilter {
    /// Of whom; everybody's without it.
    pub partner_id: Option<PartnerId>,
    pub status: Option<PayoutStatus>,
}

impl PgStore {
    /// The payout of this partner.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_payout(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> Result<Option<Payout>, sqlx::Error> {
        self.run(move |pool| async move {
            let row: Option<PayoutRow> =
                sqlx::query_as("SELECT * FROM payouts WHERE partner_id = $1 AND payout_id = $2")
                    .bind(partner_id.as_uuid())
                    .bind(payout_id.as_uuid())
                    .fetch_optional(&pool)
                    .await?;
            row.map(Payout::try_from).transpose()
        })
        .await
    }

    /// Whose payout this is.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_payout_owner(&self, payout_id: PayoutId) -> Result<Option<PartnerId>, sqlx::Error> {
        self.run(move |pool| async move {
            let owner: Option<Uuid> =
                sqlx::query_scalar("SELECT partner_id FROM payouts WHERE payout_id = $1")
                    .bind(payout_id.as_uuid())
                    .fetch_optional(&pool)
                    .await?;
            Ok(owner.map(PartnerId::from_uuid))
        })
        .await
    }

    /// Writes into the trail that an operator has read where a payout goes.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn note_destination_read(&self, payout_id: PayoutId, by: By) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            let mut transaction = pool.begin().await?;
            let subject = payout_id.to_string();
            let deed = Deed {
                action: "payout.read",
                subject: &subject,
            };
            audit::write(&mut transaction, &by, deed, NOTHING, NOTHING).await?;
            transaction.commit().await
        })
        .await
    }

    /// Up to `limit` payouts, newest first, of those before `before`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_payouts(
        &self,
        filter: PayoutFilter,
        before: Option<PayoutId>,
        limit: usize,
    ) -> Result<Vec<Payout>, sqlx::Error> {
        self.run(move |pool| async move {
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
            .bind(rows(limit))
            .fetch_all(&pool)
            .await?;
            found.into_iter().map(Payout::try_from).collect()
        })
        .await
    }
}

impl TryFrom<PayoutRow> for Payout {
    type Error = sqlx::Error;

    fn try_from(row: PayoutRow) -> Result<Self, sqlx::Error> {
        let payout_id = PayoutId::from_uuid(row.payout_id);
        let impossible = |column: &str| {
            sqlx::Error::Decode(format!("payout {payout_id} has an impossible {column}").into())
        };
        let currency = row.currency.parse().map_err(|_| impossible("currency"))?;
        Ok(Self {
            payout_id,
            partner_id: PartnerId::from_uuid(row.partner_id),
            status: PayoutStatus::from_word(&row.status).ok_or_else(|| impossible("status"))?,
            money: Amount::from_minor(row.amount).of(currency),
            destination: Destination {
                shown: row.destination.into(),
                sealed: row.destination_sealed.into(),
            },
            reference: row.reference,
            timeline: row.timeline.0,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}
