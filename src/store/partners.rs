//! Partners: who they are and what was agreed with them.

mod row;
pub(super) mod terms;

pub(super) use row::{PartnerRow, read_allowlist};

use std::sync::Arc;

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::scope::Scope;

use self::terms::ApprovalRule;
use super::PgStore;
use super::audit::{self, By, Deed, NOTHING, rows};
use super::credentials;
use crate::access::allowlist::Allowlist;
use crate::access::credential::Credential;
use crate::access::limits::Limits;
use crate::access::register::{PartnerAccess, Standing};

/// For how long a partner may cancel, unless it was given another window (contract §4). Seconds.
pub const DEFAULT_CANCEL_WINDOW_S: u32 = 86_400;

/// A partner, as operators and the trail see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Partner {
    /// Its id.
    pub partner_id: PartnerId,
    /// Its name, for people.
    pub name: String,
    /// The networks it calls from.
    pub allowlist: Allowlist,
    /// Limits that differ from the settings.
    pub limits: Limits,
    /// Whether it is stopped.
    pub suspended: bool,
    /// When its orders wait for an operator; without a rule, never.
    #[schema(required)]
    pub approval_rule: Option<ApprovalRule>,
    /// What it may order; without a scope, everything.
    #[schema(required)]
    pub catalogue: Option<Scope>,
    /// For how long it may cancel an order. Seconds.
    pub cancel_window_s: u32,
    /// When it passed the sandbox certification.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub certified_at: Option<OffsetDateTime>,
    /// When it signed the agreement.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    pub agreement_signed_at: Option<OffsetDateTime>,
    /// When it was taken in.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    pub created_at: OffsetDateTime,
    /// When something about it was last changed.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    pub updated_at: OffsetDateTime,
}

impl Partner {
    /// A partner of this moment, with nothing agreed.
    #[must_use]
    pub fn new(name: String, allowlist: Allowlist, now: OffsetDateTime) -> Self {
        Self {
            partner_id: PartnerId::generate(),
            name,
            allowlist,
            limits: Limits::default(),
            suspended: false,
            approval_rule: None,
            catalogue: None,
            cancel_window_s: DEFAULT_CANCEL_WINDOW_S,
            certified_at: None,
            agreement_signed_at: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// What access has to know of it.
    #[must_use]
    pub fn access(&self) -> PartnerAccess {
        PartnerAccess {
            partner_id: self.partner_id,
            name: self.name.clone(),
            allowlist: self.allowlist.clone(),
            scope: self.catalogue.clone().map(Arc::new),
            standing: if self.suspended {
                Standing::Suspended
            } else {
                Standing::Active
            },
            limits: self.limits,
            cancel_window_s: self.cancel_window_s,
            approval_rule: self.approval_rule.as_ref().map(|rule| Arc::new(rule.into())),
        }
    }

    /// Whether live credentials may be issued to it (spec part 5, rule 8).
    #[must_use]
    pub const fn is_certified(&self) -> bool {
        self.certified_at.is_some() && self.agreement_signed_at.is_some()
    }
}

/// A change to a partner: it is given what was, and makes of it what shall be.
pub type Change = Box<dyn FnOnce(&mut Partner) + Send>;

impl PgStore {
    /// Takes a partner in, with its first credential if it gets one.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn create_partner(
        &self,
        partner: Partner,
        credential: Option<Credential>,
        by: By,
    ) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move { create(&pool, &partner, credential.as_ref(), &by).await })
            .await
    }

    /// The partner of this id.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_partner(&self, partner_id: PartnerId) -> Result<Option<Partner>, sqlx::Error> {
        self.run(move |pool| async move {
            let mut connection = pool.acquire().await?;
            find(&mut connection, partner_id).await
        })
        .await
    }

    /// Up to `limit` partners, newest first, older than `before`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_partners(
        &self,
        before: Option<PartnerId>,
        limit: usize,
    ) -> Result<Vec<Partner>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, before, limit).await })
            .await
    }

    /// Changes a partner; `None` if there is no such partner.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn change_partner(
        &self,
        partner_id: PartnerId,
        change: Change,
        by: By,
    ) -> Result<Option<Partner>, sqlx::Error> {
        self.run(move |pool| async move { apply(&pool, partner_id, change, &by).await })
            .await
    }
}

async fn create(
    pool: &PgPool,
    partner: &Partner,
    credential: Option<&Credential>,
    by: &By,
) -> Result<(), sqlx::Error> {
    let subject = partner.partner_id.to_string();
    let mut transaction = pool.begin().await?;
    insert(&mut transaction, partner).await?;
    let deed = Deed {
        action: "partner.create",
        subject: &subject,
    };
    audit::write(&mut transaction, by, deed, NOTHING, Some(partner)).await?;
    if let Some(credential) = credential {
        credentials::insert(&mut transaction, credential, by).await?;
    }
    transaction.commit().await
}

async fn insert(connection: &mut PgConnection, partner: &Partner) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO partners (partner_id, name, allowlist, limits, suspended, approval_rule, catalogue,
                               cancel_window_s, certified_at, agreement_signed_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(partner.partner_id.as_uuid())
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
        .bind(partner_id.as_uuid())
        .fetch_optional(connection)
        .await?;
    row.map(Partner::try_from).transpose()
}

/// The partner's row stays locked until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    partner_id: PartnerId,
) -> Result<Option<Partner>, sqlx::Error> {
    let row: Option<PartnerRow> =
        sqlx::query_as("SELECT * FROM partners WHERE partner_id = $1 FOR NO KEY UPDATE")
            .bind(partner_id.as_uuid())
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
    .bind(before.map(PartnerId::as_uuid))
    .bind(rows(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(Partner::try_from).collect()
}

async fn apply(
    pool: &PgPool,
    partner_id: PartnerId,
    change: Change,
    by: &By,
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
    let subject = partner_id.to_string();
    let deed = Deed {
        action: "partner.change",
        subject: &subject,
    };
    audit::write(&mut transaction, by, deed, Some(&before), Some(&after)).await?;
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
    .bind(partner.partner_id.as_uuid())
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
