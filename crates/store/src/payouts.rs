//! Payout reads, and the choice of who decides on a payout.

use sqlx::PgExecutor;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::ids::{PartnerId, PayoutId};
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::order::Actor;
use vouchsafe_domain::payout::{Payout, PayoutDestination, PayoutMilestone, PayoutSearch, PayoutStatus};

use vouchsafe_database::database::{Database, Statement};

/// Reads the payouts that meet a condition.
macro_rules! select_payouts {
    ($condition:literal, $($argument:expr),+) => {
        sqlx::query!(
            r#"SELECT partner_id AS "partner_id: PartnerId", payout_id AS "payout_id: PayoutId",
                      status AS "status: PayoutStatus", currency AS "currency: Currency", amount AS "amount: Amount",
                      destination, destination_sealed, reference, timeline AS "timeline: Json<Vec<PayoutMilestone>>",
                      created_at, updated_at
                 FROM payouts "# + $condition,
            $($argument),+
        )
        .map(|row| Payout {
            payout_id: row.payout_id,
            partner_id: row.partner_id,
            status: row.status,
            money: row.amount.of(row.currency),
            destination: PayoutDestination {
                masked: row.destination.into(),
                sealed: row.destination_sealed.into(),
            },
            reference: row.reference,
            timeline: row.timeline.0,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    };
}

/// Payouts of the partners.
#[derive(Debug, Clone)]
pub struct Payouts(pub(super) Database);

impl Payouts {
    /// Finds a payout of this partner.
    #[boxed]
    pub async fn find(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
    ) -> Result<Option<Payout>, StoreError> {
        self.0.fetch_optional(find(partner_id, payout_id)).await
    }

    /// Finds the partner of a payout.
    #[boxed]
    pub async fn find_owner(&self, payout_id: PayoutId) -> Result<Option<PartnerId>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT partner_id AS "partner_id: PartnerId" FROM payouts WHERE payout_id = $1"#,
            payout_id as _,
        )
        .map(|row| row.partner_id);
        self.0.fetch_optional(statement).await
    }

    /// Reserves a pending payout for this decider: an operator who pays it, or the partner who cancels it.
    /// Returns whether that succeeded: the first one keeps it, so that no payout is paid and cancelled.
    #[boxed]
    pub async fn reserve(
        &self,
        partner_id: PartnerId,
        payout_id: PayoutId,
        decider: Actor,
    ) -> Result<bool, StoreError> {
        self.0
            .run(move |pool| async move { reserve(&pool, partner_id, payout_id, decider).await })
            .await
    }

    /// Reserves a payout that is pending for operators, and writes an audit entry: one of them has read its
    /// destination. Returns false if the partner is cancelling the payout; then nothing is written.
    #[boxed]
    pub async fn open_destination(&self, payout: &Payout, actor: AuditActor) -> Result<bool, StoreError> {
        let (partner_id, payout_id) = (payout.partner_id, payout.payout_id);
        let is_pending = payout.status == PayoutStatus::Pending;
        transaction!(self.0, "payout.read", async |transaction| {
            if is_pending && !reserve(&mut **transaction, partner_id, payout_id, Actor::Operator).await? {
                return Ok(false);
            }
            audit::write_of_partner(
                transaction,
                &actor,
                partner_id,
                AuditAction::ReadPayout,
                &payout_id,
                NO_STATE,
                NO_STATE,
            )
            .await?;
            Ok(true)
        })
    }

    /// Lists up to `limit` payouts older than `before`, newest first.
    #[boxed]
    pub async fn list(
        &self,
        search: PayoutSearch,
        before: Option<PayoutId>,
        limit: usize,
    ) -> Result<Vec<Payout>, StoreError> {
        let statement = select_payouts!(
            "WHERE ($1::uuid IS NULL OR partner_id = $1)
               AND ($2::text IS NULL OR status = $2)
               AND ($3::uuid IS NULL OR payout_id < $3)
             ORDER BY payout_id DESC
             LIMIT $4",
            search.partner_id as _,
            search.filter.status as _,
            before as _,
            to_bigint(limit)
        );
        self.0.fetch_all(statement).await
    }
}

async fn reserve(
    connection: impl PgExecutor<'_>,
    partner_id: PartnerId,
    payout_id: PayoutId,
    decider: Actor,
) -> Result<bool, sqlx::Error> {
    let reserved = sqlx::query!(
        "UPDATE payouts
            SET decider = $3
          WHERE partner_id = $1
            AND payout_id = $2
            AND status = 'PENDING'
            AND COALESCE(decider, $3) = $3",
        partner_id as _,
        payout_id as _,
        decider.into_str(),
    );
    Ok(reserved.execute(connection).await?.rows_affected() == 1)
}

/// The payout of this partner with this id.
pub(super) fn find(
    partner_id: PartnerId,
    payout_id: PayoutId,
) -> Statement<impl FnMut(PgRow) -> Result<Payout, sqlx::Error> + Send + use<>> {
    select_payouts!(
        "WHERE partner_id = $1 AND payout_id = $2",
        partner_id as _,
        payout_id as _
    )
}
