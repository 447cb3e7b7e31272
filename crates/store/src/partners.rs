//! Partner accounts: name, allowlist, limits, approval rule, catalogue scope and certification.

mod row;

pub(super) use row::{PartnerRow, read_allowlist};

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::partner::Partner;

use super::audit::{self, AuditActor, to_bigint};
use super::database::Database;

/// Changes a partner in place.
pub type PartnerChange = Box<dyn FnOnce(&mut Partner) + Send>;

/// Accounts of the partners.
#[derive(Debug, Clone)]
pub struct Partners(pub(super) Database);

impl Partners {
    /// Finds a partner.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find(&self, partner_id: PartnerId) -> Result<Option<Partner>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut connection = pool.acquire().await?;
                find(&mut connection, partner_id).await
            })
            .await
    }

    /// Lists up to `limit` partners older than `before`, newest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(&self, before: Option<PartnerId>, limit: usize) -> Result<Vec<Partner>, sqlx::Error> {
        self.0
            .run(move |pool| async move { list(&pool, before, limit).await })
            .await
    }

    /// Changes a partner and returns its new state, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn change(
        &self,
        partner_id: PartnerId,
        new: PartnerChange,
        actor: AuditActor,
    ) -> Result<Option<Partner>, sqlx::Error> {
        self.0
            .run(move |pool| async move { change(&pool, partner_id, new, &actor).await })
            .await
    }
}

/// Inserts the row of a new partner in an open transaction.
pub(super) async fn insert(connection: &mut PgConnection, partner: &Partner) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO partners (partner_id, name, allowlist, limits, suspended, approval_rule, catalogue,
                               cancel_window_s, certified_at, agreement_signed_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(partner.partner_id)
    .bind(&partner.name)
    .bind(Vec::from(partner.allowlist.clone()))
    .bind(Json(partner.limits))
    .bind(partner.suspended)
    .bind(partner.approval_rule.as_ref().map(Json))
    .bind(partner.catalogue.as_ref().map(Json))
    .bind(partner.cancel_window_s.cast_signed())
    .bind(partner.certified_at)
    .bind(partner.agreement_signed_at)
    .bind(partner.created_at)
    .bind(partner.updated_at)
    .execute(connection)
    .await
    .map(drop)
}

async fn find(connection: &mut PgConnection, partner_id: PartnerId) -> Result<Option<Partner>, sqlx::Error> {
    let row: Option<PartnerRow> = sqlx::query_as("SELECT * FROM partners WHERE partner_id = $1")
        .bind(partner_id)
        .fetch_optional(connection)
        .await?;
    row.map(Partner::try_from).transpose()
}

/// Loads a partner and locks its row.
pub(super) async fn lock(
    connection: &mut PgConnection,
    partner_id: PartnerId,
) -> Result<Option<Partner>, sqlx::Error> {
    let row: Option<PartnerRow> =
        sqlx::query_as("SELECT * FROM partners WHERE partner_id = $1 FOR NO KEY UPDATE")
            .bind(partner_id)
            .fetch_optional(connection)
            .await?;
    row.map(Partner::try_from).transpose()
}

async fn list(pool: &PgPool, before: Option<PartnerId>, limit: usize) -> Result<Vec<Partner>, sqlx::Error> {
    let found: Vec<PartnerRow> = sqlx::query_as(
        "SELECT *
           FROM partners
          WHERE $1::uuid IS NULL OR partner_id < $1
          ORDER BY partner_id DESC
          LIMIT $2",
    )
    .bind(before)
    .bind(to_bigint(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(Partner::try_from).collect()
}

async fn change(
    pool: &PgPool,
    partner_id: PartnerId,
    change: PartnerChange,
    actor: &AuditActor,
) -> Result<Option<Partner>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let Some(before) = lock(&mut transaction, partner_id).await? else {
        return Ok(None);
    };
    let mut after = before.clone();
    change(&mut after);
    if after == before {
        return Ok(Some(before));
    }
    after.updated_at = update(&mut transaction, &after).await?;
    audit::write(
        &mut transaction,
        actor,
        "partner.change",
        &partner_id,
        Some(&before),
        Some(&after),
    )
    .await?;
    transaction.commit().await?;
    Ok(Some(after))
}

async fn update(connection: &mut PgConnection, partner: &Partner) -> Result<OffsetDateTime, sqlx::Error> {
    sqlx::query_scalar(
        "UPDATE partners
            SET name = $2,
                allowlist = $3,
                limits = $4,
                suspended = $5,
                approval_rule = $6,
                catalogue = $7,
                cancel_window_s = $8,
                certified_at = $9,
                agreement_signed_at = $10,
                updated_at = now()
          WHERE partner_id = $1
         RETURNING updated_at",
    )
    .bind(partner.partner_id)
    .bind(&partner.name)
    .bind(Vec::from(partner.allowlist.clone()))
    .bind(Json(partner.limits))
    .bind(partner.suspended)
    .bind(partner.approval_rule.as_ref().map(Json))
    .bind(partner.catalogue.as_ref().map(Json))
    .bind(partner.cancel_window_s.cast_signed())
    .bind(partner.certified_at)
    .bind(partner.agreement_signed_at)
    .fetch_one(connection)
    .await
}
