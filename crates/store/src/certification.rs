//! Certification observations: sandbox behaviour of partners that the certification checks evaluate.
//!
//! Per partner and check, only the newest rows are stored, at most [`MAX_OBSERVATIONS`].

use sqlx::PgConnection;
use sqlx::PgPool;
use sqlx::types::Json;
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::certification::observation::{Observation, ObservationKind};
use vouchsafe_domain::ids::{OrderId, PartnerId};

use vouchsafe_database::database::Database;

/// Room for a hundred attempts of a partner at one check, of which the newest decided one counts.
const MAX_OBSERVATIONS: usize = 200;

/// Key of the advisory lock of writers: two that delete the same rows could deadlock. Any otherwise unused
/// number.
const WRITERS_LOCK: i64 = 0x5653_6365_7274_6900;

/// `check_name` of observations that belong to no check.
const CERTIFICATION: &str = "CERTIFICATION";

/// Bounds one poll over all partners. Hundreds of times the rows written per second.
const MAX_POLL_ROWS: usize = 10_000;

/// Audited state of a certification restart.
#[derive(serde::Serialize)]
struct DeletedObservations {
    observations: u64,
}

/// Observations of partners for their certification.
#[derive(Debug, Clone)]
pub struct Observations(pub(super) Database);

impl Observations {
    /// Stores observations and deletes the oldest.
    ///
    /// # Errors
    /// The write may have happened; repeating it is safe.
    #[boxed]
    pub async fn write(&self, observations: Vec<(PartnerId, Observation)>) -> Result<(), StoreError> {
        transaction!(self.0, "observation.write", async |transaction| {
            write(transaction, &observations).await
        })
    }

    /// Lists the observations of a partner, oldest first, followed by the deliveries of orders whose codes it
    /// fetched in part.
    #[boxed]
    pub async fn list(&self, partner_id: PartnerId) -> Result<Vec<Observation>, StoreError> {
        self.0
            .run(move |pool| async move {
                let mut observations = load_observations(&pool, partner_id).await?;
                // Writes with an unknown outcome are repeated and leave duplicates.
                observations.dedup();
                let deliveries = load_deliveries(&pool, partner_id, &observations).await?;
                observations.extend(deliveries);
                Ok(observations)
            })
            .await
    }

    /// Lists the observations of all partners since a timestamp, oldest first.
    #[boxed]
    pub async fn list_since(
        &self,
        since: OffsetDateTime,
    ) -> Result<Vec<(PartnerId, Observation)>, StoreError> {
        let statement = sqlx::query!(
            r#"SELECT partner_id AS "partner_id: PartnerId", at, observation AS "kind: Json<ObservationKind>"
               FROM certification_observations
              WHERE at > $1
              ORDER BY at, observation_id
              LIMIT $2"#,
            since,
            to_bigint(MAX_POLL_ROWS),
        );
        let observations = statement.map(|row| {
            let Json(kind) = row.kind;
            (row.partner_id, Observation { at: row.at, kind })
        });
        self.0.fetch_all(observations).await
    }

    /// Deletes the observations of a partner. Returns `false` if the partner does not exist.
    #[boxed]
    pub async fn delete(&self, partner_id: PartnerId, actor: AuditActor) -> Result<bool, StoreError> {
        transaction!(self.0, "certification.restart", async |transaction| {
            delete_observations(transaction, partner_id, &actor).await
        })
    }
}

async fn load_observations(pool: &PgPool, partner_id: PartnerId) -> Result<Vec<Observation>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT at, observation AS "kind: Json<ObservationKind>"
           FROM certification_observations
          WHERE partner_id = $1
          ORDER BY at, observation_id"#,
        partner_id as _,
    )
    .map(|row| Observation {
        at: row.at,
        kind: row.kind.0,
    })
    .fetch_all(pool)
    .await
}

async fn load_deliveries(
    pool: &PgPool,
    partner_id: PartnerId,
    observations: &[Observation],
) -> Result<Vec<Observation>, sqlx::Error> {
    let partial = observations
        .iter()
        .filter_map(|observation| match observation.kind {
            ObservationKind::PartialCodesFetched { order_id } => Some(order_id),
            _ => None,
        });
    sqlx::query!(
        r#"SELECT o.order_id AS "order_id: OrderId", (m ->> 'at')::timestamptz AS "at!"
           FROM orders AS o
          CROSS JOIN jsonb_array_elements(order_timeline_v1(o)) AS m
          WHERE o.partner_id = $1
            AND o.order_id = ANY ($2)
            AND m ->> 'status' = 'DELIVERED'"#,
        partner_id as _,
        partial.collect::<Vec<_>>() as _,
    )
    .map(|row| {
        let order_id = row.order_id;
        Observation {
            at: row.at,
            kind: ObservationKind::OrderDelivered { order_id },
        }
    })
    .fetch_all(pool)
    .await
}

async fn write(
    transaction: &mut PgConnection,
    observations: &[(PartnerId, Observation)],
) -> Result<(), sqlx::Error> {
    let partners: Vec<PartnerId> = observations.iter().map(|(partner_id, _)| *partner_id).collect();
    let all = || observations.iter().map(|(_, observation)| observation);
    let check_name = |kind: &ObservationKind| kind.check().map_or(CERTIFICATION, |check| check.into_str());
    let checks: Vec<&str> = all().map(|observation| check_name(&observation.kind)).collect();
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", WRITERS_LOCK)
        .execute(&mut *transaction)
        .await?;
    sqlx::query!(
        "INSERT INTO certification_observations (partner_id, check_name, at, observation)
         SELECT n.partner_id, n.check_name, n.at, n.observation
           FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::jsonb[])
                WITH ORDINALITY AS n (partner_id, check_name, at, observation, position)
          ORDER BY n.position",
        &partners as _,
        &checks as _,
        &all().map(|observation| observation.at).collect::<Vec<_>>(),
        all()
            .map(|observation| Json(&observation.kind))
            .collect::<Vec<_>>() as _,
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "DELETE FROM certification_observations AS o
          USING (
                SELECT n.partner_id, n.check_name, k.observation_id
                  FROM (
                        SELECT DISTINCT n.partner_id, n.check_name
                          FROM unnest($1::uuid[], $2::text[]) AS n (partner_id, check_name)
                       ) AS n
                 CROSS JOIN LATERAL (
                        SELECT k.observation_id
                          FROM certification_observations AS k
                         WHERE k.partner_id = n.partner_id AND k.check_name = n.check_name
                         ORDER BY k.observation_id DESC
                        OFFSET $3
                         LIMIT 1
                       ) AS k
                ) AS newest_deleted
          WHERE o.partner_id = newest_deleted.partner_id
            AND o.check_name = newest_deleted.check_name
            AND o.observation_id <= newest_deleted.observation_id",
        &partners as _,
        &checks as _,
        to_bigint(MAX_OBSERVATIONS),
    )
    .execute(&mut *transaction)
    .await?;
    Ok(())
}

async fn delete_observations(
    transaction: &mut PgConnection,
    partner_id: PartnerId,
    actor: &AuditActor,
) -> Result<bool, sqlx::Error> {
    let known = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM partners WHERE partner_id = $1) AS "exists!""#,
        partner_id as _,
    );
    if !known.fetch_one(&mut *transaction).await? {
        return Ok(false);
    }
    let deleted = sqlx::query!(
        "DELETE FROM certification_observations WHERE partner_id = $1",
        partner_id as _,
    );
    let deleted = deleted.execute(&mut *transaction).await?;
    let before = DeletedObservations {
        observations: deleted.rows_affected(),
    };
    audit::write_of_partner(
        transaction,
        actor,
        partner_id,
        AuditAction::RestartCertification,
        &partner_id,
        Some(&before),
        NO_STATE,
    )
    .await?;
    Ok(true)
}
