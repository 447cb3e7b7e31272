//! Partner accounts: name, allowlist, limits, approval rule, catalogue scope and certification.

use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::{InvalidMac, StoreError};
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::Limits;
use vouchsafe_domain::partner::approval_rule::ApprovalRule;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_domain::partner::{Partner, PartnerFilter};
use vouchsafe_domain::scope::Scope;
use vouchsafe_domain::stored::StoredText;
use vouchsafe_security::vault::grant_key::{Grant, PartnerTerms};

use super::cap_usage;
use vouchsafe_database::database::{Database, Statement};
use vouchsafe_operators::grants::{Grants, StoredGrant};

/// Selects partners with the rest of a statement.
macro_rules! select_partners {
    ($rest:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            r#"SELECT partner_id AS "partner_id: PartnerId", name, allowlist AS "allowlist: Allowlist",
                      limits AS "limits: Json<StoredText<Limits>>", ceilings AS "ceilings: Json<StoredText<Limits>>", suspended,
                      codes_blocked, approval_rule AS "approval_rule: Json<StoredText<ApprovalRule>>",
                      caps AS "caps: Json<StoredText<PartnerCaps>>", catalogue AS "catalogue: Json<StoredText<Scope>>", cancel_window_s, certified_at, agreement_signed_at, created_at,
                      updated_at, mac
                 FROM partners "# + $rest
            $(, $argument)*
        )
        .map(|row| {
            let terms = PartnerTerms {
                limits: row.limits.text.get(),
                ceilings: row.ceilings.text.get(),
                approval_rule: row.approval_rule.as_ref().map(|json| json.text.get()),
                caps: row.caps.as_ref().map(|json| json.text.get()),
                catalogue: row.catalogue.as_ref().map(|json| json.text.get()),
            };
            let partner = Partner {
            partner_id: row.partner_id,
            name: row.name,
            allowlist: row.allowlist,
            limits: row.limits.value,
            ceilings: row.ceilings.value,
            suspended: row.suspended,
            codes_blocked: row.codes_blocked,
            approval_rule: row.approval_rule.as_ref().map(|rule| rule.value.clone()),
            caps: row.caps.as_ref().map(|caps| caps.value.clone()),
            catalogue: row.catalogue.as_ref().map(|scope| scope.value.clone()),
            cancel_window_s: row.cancel_window_s.cast_unsigned(),
            certified_at: row.certified_at,
            agreement_signed_at: row.agreement_signed_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
            let stored = StoredGrant {
                table: "partners",
                id: partner.partner_id.to_string(),
                partner_id: Some(partner.partner_id),
                grant: Grant::of_partner(&partner, &terms),
                mac: row.mac,
            };
            (partner, stored)
        })
    };
}

/// A statement with a partner's id and changeable values as its first twelve arguments.
macro_rules! write_partner {
    ($sql:literal, $partner:expr $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            $sql,
            $partner.partner_id as _,
            $partner.name,
            &$partner.allowlist as _,
            Json($partner.limits) as _,
            $partner.suspended,
            $partner.approval_rule.as_ref().map(Json) as _,
            $partner.catalogue.as_ref().map(Json) as _,
            $partner.cancel_window_s.cast_signed(),
            $partner.certified_at,
            $partner.agreement_signed_at,
            $partner.codes_blocked,
            Json($partner.ceilings) as _,
            $partner.caps.as_ref().map(Json) as _
            $(, $argument)*
        )
    };
}

/// Changes a partner in place.
pub type PartnerChange = Box<dyn FnOnce(&mut Partner) + Send>;

/// Accounts of the partners.
#[derive(Debug, Clone)]
pub struct Partners(pub(super) Database, pub(super) Grants);

impl Partners {
    /// Finds a partner.
    #[boxed]
    pub async fn find(&self, partner_id: PartnerId) -> Result<Option<Partner>, StoreError> {
        let statement = select_partners!("WHERE partner_id = $1", partner_id as _);
        let found = self.0.fetch_optional(statement).await?;
        Ok(found.map(|(partner, _)| partner))
    }

    /// Lists up to `limit` partners older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        filter: PartnerFilter,
        before: Option<PartnerId>,
        limit: usize,
    ) -> Result<Vec<Partner>, StoreError> {
        let partner_ids = filter
            .partner_id
            .map(|ids| ids.iter().map(|id| id.as_uuid()).collect::<Vec<_>>());
        let statement = select_partners!(
            "WHERE ($1::text IS NULL OR strpos(lower(name), lower($1)) > 0)
               AND ($2::uuid IS NULL OR partner_id < $2)
               AND ($4::uuid[] IS NULL OR partner_id = ANY ($4))
               AND ($5::uuid IS NULL
                    OR partner_id = (SELECT c.partner_id FROM credentials AS c WHERE c.credential_id = $5))
             ORDER BY partner_id DESC
             LIMIT $3",
            filter.name as _,
            before as _,
            to_bigint(limit),
            partner_ids.as_deref() as _,
            filter.credential_id as _,
        );
        let listed = self.0.fetch_all(statement).await?;
        Ok(listed.into_iter().map(|(partner, _)| partner).collect())
    }

    /// Changes a partner and returns its new state, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or the row has no valid HMAC.
    #[boxed]
    pub async fn change(
        &self,
        partner_id: PartnerId,
        new: PartnerChange,
        actor: AuditActor,
    ) -> Result<Option<Partner>, StoreError> {
        let grants = self.1.clone();
        let changed = transaction!(self.0, "partner.change", async |transaction| {
            change(transaction, &grants, partner_id, new, &actor).await
        });
        Ok(changed?.map_err(sqlx::Error::from)?)
    }
}

impl Partners {
    /// Removes counters of daily caps that are no longer needed.
    #[boxed]
    pub async fn purge_usage(&self) -> Result<(), StoreError> {
        self.0
            .run(|pool| async move { cap_usage::purge(&pool).await })
            .await
    }
}

/// Inserts the row of a new partner in an open transaction.
pub(super) async fn insert(
    connection: &mut PgConnection,
    grants: &Grants,
    partner: &Partner,
) -> Result<(), sqlx::Error> {
    write_partner!(
        "INSERT INTO partners (partner_id, name, allowlist, limits, suspended, approval_rule, catalogue,
                               cancel_window_s, certified_at, agreement_signed_at, codes_blocked, ceilings, caps, created_at,
                               updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        partner,
        partner.created_at,
        partner.updated_at,
    )
    .execute(&mut *connection)
    .await?;
    write_mac(connection, grants, partner.partner_id).await
}

/// Computes the HMAC of a row as it is stored, after each change of it.
async fn write_mac(
    connection: &mut PgConnection,
    grants: &Grants,
    partner_id: PartnerId,
) -> Result<(), sqlx::Error> {
    let stored = find_all(&[partner_id]);
    let (_, stored) = stored.fetch_one(&mut *connection).await?;
    sqlx::query!(
        "UPDATE partners SET mac = $2 WHERE partner_id = $1",
        partner_id as _,
        grants.mac(&stored.grant)?,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Locks the row of a partner.
pub(super) async fn lock(
    connection: &mut PgConnection,
    partner_id: PartnerId,
) -> Result<Option<(Partner, StoredGrant)>, sqlx::Error> {
    select_partners!("WHERE partner_id = $1 FOR NO KEY UPDATE", partner_id as _)
        .fetch_optional(connection)
        .await
}

/// Loads a partner and locks its row, which must have a valid HMAC.
pub(super) async fn lock_valid(
    connection: &mut PgConnection,
    grants: &Grants,
    partner_id: PartnerId,
) -> Result<Option<Partner>, sqlx::Error> {
    let Some((partner, stored)) = lock(connection, partner_id).await? else {
        return Ok(None);
    };
    grants.check(&stored)?;
    Ok(Some(partner))
}

/// All partners.
pub(super) fn all()
-> Statement<impl FnMut(PgRow) -> Result<(Partner, StoredGrant), sqlx::Error> + Send + use<>> {
    select_partners!("")
}

/// The partners with these ids.
pub(super) fn find_all(
    partners: &[PartnerId],
) -> Statement<impl FnMut(PgRow) -> Result<(Partner, StoredGrant), sqlx::Error> + Send + use<>> {
    let ids: Vec<Uuid> = partners.iter().map(|id| id.as_uuid()).collect();
    select_partners!("WHERE partner_id = ANY ($1)", &ids)
}

async fn change(
    transaction: &mut PgConnection,
    grants: &Grants,
    partner_id: PartnerId,
    change: PartnerChange,
    actor: &AuditActor,
) -> Result<Result<Option<Partner>, InvalidMac>, sqlx::Error> {
    let Some((before, stored)) = lock(transaction, partner_id).await? else {
        return Ok(Ok(None));
    };
    if let Err(invalid) = grants.check(&stored) {
        // All nodes hear of the partner by the entry, and suspend it: they may have loaded it before its row
        // was changed.
        let action = AuditAction::RejectPartnerRow;
        audit::write_of_partner(
            transaction,
            actor,
            partner_id,
            action,
            &partner_id,
            NO_STATE,
            NO_STATE,
        )
        .await?;
        return Ok(Err(invalid));
    }
    let mut after = before.clone();
    change(&mut after);
    if after == before {
        return Ok(Ok(Some(before)));
    }
    let rate = |partner: &Partner| partner.caps.as_ref().and_then(|caps| caps.approval_over.clone());
    if rate(&after).is_some() && rate(&after) != rate(&before) {
        cap_usage::record_order_totals(transaction, partner_id).await?;
    }
    after.updated_at = update(transaction, grants, &after).await?;
    audit::write_of_partner(
        transaction,
        actor,
        partner_id,
        AuditAction::ChangePartner,
        &partner_id,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(Ok(Some(after)))
}

async fn update(
    connection: &mut PgConnection,
    grants: &Grants,
    partner: &Partner,
) -> Result<OffsetDateTime, sqlx::Error> {
    let updated_at = write_partner!(
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
                codes_blocked = $11,
                ceilings = $12,
                caps = $13,
                updated_at = now()
          WHERE partner_id = $1
         RETURNING updated_at",
        partner,
    )
    .map(|row| row.updated_at)
    .fetch_one(&mut *connection)
    .await?;
    write_mac(connection, grants, partner.partner_id).await?;
    Ok(updated_at)
}
