//! What the sandbox saw of partners, as far as their certification asks for it.
//!
//! Rule: of each partner and point the newest rows are kept, and no more than a few hundred.

use sqlx::PgPool;
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};

use super::PgStore;
use super::audit::{self, By, Deed, NOTHING, rows};
use crate::certification::{Observation, Seen};

/// How many rows of a partner and point are kept: a hundred trials, of which the newest that is decided counts.
const KEPT: usize = 200;

/// Taken by whoever writes: two that let the same rows go would wait for each other. Any number that nothing else uses.
const WRITERS_TURN: i64 = 0x5653_6365_7274_6900;

/// Most rows that one look at all partners reads: hundreds of times what a second brings.
const READ_AT_ONCE: usize = 10_000;

/// What the trail says of a new beginning.
#[derive(serde::Serialize)]
struct Forgotten {
    observations: u64,
}

impl PgStore {
    /// Writes down what was seen, and lets the oldest go.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; then nobody can say whether it is written, and it may be again.
    pub async fn write_observations(
        &self,
        observations: Vec<(PartnerId, Observation)>,
    ) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move { write(&pool, &observations).await })
            .await
    }

    /// What was seen of a partner, oldest first; then when the orders were delivered whose codes were fetched in part.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn observations_of(&self, partner_id: PartnerId) -> Result<Vec<Observation>, sqlx::Error> {
        self.run(move |pool| async move {
            let mut observations = written(&pool, partner_id).await?;
            // A write whose outcome was unknown was repeated.
            observations.dedup();
            let deliveries = deliveries(&pool, partner_id, &observations).await?;
            observations.extend(deliveries);
            Ok(observations)
        })
        .await
    }

    /// What was seen of all partners since then, oldest first.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn observations_since(
        &self,
        since: OffsetDateTime,
    ) -> Result<Vec<(PartnerId, Observation)>, sqlx::Error> {
        let found: Vec<(Uuid, OffsetDateTime, Json<Seen>)> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT partner_id, at, seen
                       FROM certification_observations
                      WHERE at > $1
                      ORDER BY at, observation_id
                      LIMIT $2",
                )
                .bind(since)
                .bind(rows(READ_AT_ONCE))
                .fetch_all(&pool)
                .await
            })
            .await?;
        let observation =
            |(partner_id, at, Json(seen))| (PartnerId::from_uuid(partner_id), Observation { at, seen });
        Ok(found.into_iter().map(observation).collect())
    }

    /// Forgets what was seen of a partner. `false`: there is no such partner.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn forget_observations(&self, partner_id: PartnerId, by: By) -> Result<bool, sqlx::Error> {
        self.run(move |pool| async move { forget(&pool, partner_id, &by).await })
            .await
    }
}

async fn written(pool: &PgPool, partner_id: PartnerId) -> Result<Vec<Observation>, sqlx::Error> {
    let found: Vec<(OffsetDateTime, Json<Seen>)> = sqlx::query_as(
        "SELECT at, seen
           FROM certification_observations
          WHERE partner_id = $1
          ORDER BY at, observation_id",
    )
    .bind(partner_id.as_uuid())
    .fetch_all(pool)
    .await?;
    let observation = |(at, Json(seen))| Observation { at, seen };
    Ok(found.into_iter().map(observation).collect())
}

async fn deliveries(
    pool: &PgPool,
    partner_id: PartnerId,
    observations: &[Observation],
) -> Result<Vec<Observation>, sqlx::Error> {
    let in_part = observations.iter().filter_map(|one| match one.seen {
        Seen::CodesInPart { order_id } => Some(order_id.as_uuid()),
        _ => None,
    });
    let found: Vec<(Uuid, OffsetDateTime)> = sqlx::query_as(
        "SELECT o.order_id, (m ->> 'at')::timestamptz
           FROM orders AS o
          CROSS JOIN jsonb_array_elements(timeline_of(o)) AS m
          WHERE o.partner_id = $1
            AND o.order_id = ANY ($2)
            AND m ->> 'status' = 'DELIVERED'",
    )
    .bind(partner_id.as_uuid())
    .bind(in_part.collect::<Vec<_>>())
    .fetch_all(pool)
    .await?;
    let delivery = |(order_id, at)| Observation {
        at,
        seen: Seen::OrderDelivered {
            order_id: OrderId::from_uuid(order_id),
        },
    };
    Ok(found.into_iter().map(delivery).collect())
}

async fn write(pool: &PgPool, observations: &[(PartnerId, Observation)]) -> Result<(), sqlx::Error> {
    let partners: Vec<Uuid> = observations
        .iter()
        .map(|(partner_id, _)| partner_id.as_uuid())
        .collect();
    let all = || observations.iter().map(|(_, observation)| observation);
    let points: Vec<&str> = all().map(|one| one.seen.point().as_str()).collect();
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(WRITERS_TURN)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "INSERT INTO certification_observations (partner_id, point, at, seen)
         SELECT n.partner_id, n.point, n.at, n.seen
           FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::jsonb[])
                WITH ORDINALITY AS n (partner_id, point, at, seen, place)
          ORDER BY n.place",
    )
    .bind(&partners)
    .bind(&points)
    .bind(all().map(|one| one.at).collect::<Vec<_>>())
    .bind(all().map(|one| Json(&one.seen)).collect::<Vec<_>>())
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "DELETE FROM certification_observations AS o
          USING (
                SELECT n.partner_id, n.point, k.observation_id
                  FROM (
                        SELECT DISTINCT n.partner_id, n.point
                          FROM unnest($1::uuid[], $2::text[]) AS n (partner_id, point)
                       ) AS n
                 CROSS JOIN LATERAL (
                        SELECT k.observation_id
                          FROM certification_observations AS k
                         WHERE k.partner_id = n.partner_id AND k.point = n.point
                         ORDER BY k.observation_id DESC
                        OFFSET $3
                         LIMIT 1
                       ) AS k
                ) AS newest_gone
          WHERE o.partner_id = newest_gone.partner_id
            AND o.point = newest_gone.point
            AND o.observation_id <= newest_gone.observation_id",
    )
    .bind(&partners)
    .bind(&points)
    .bind(rows(KEPT))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await
}

async fn forget(pool: &PgPool, partner_id: PartnerId, by: &By) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM partners WHERE partner_id = $1)")
        .bind(partner_id.as_uuid())
        .fetch_one(&mut *transaction)
        .await?;
    if !known {
        return Ok(false);
    }
    let forgotten = sqlx::query("DELETE FROM certification_observations WHERE partner_id = $1")
        .bind(partner_id.as_uuid())
        .execute(&mut *transaction)
        .await?;
    let subject = partner_id.to_string();
    let deed = Deed {
        action: "certification.restart",
        subject: &subject,
    };
    let before = Forgotten {
        observations: forgotten.rows_affected(),
    };
    audit::write(&mut transaction, by, deed, Some(&before), NOTHING).await?;
    transaction.commit().await?;
    Ok(true)
}
