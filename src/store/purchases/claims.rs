//! Who asks about a purchase, and when is it asked about again?
//!
//! Rule: a purchase is asked about by one node at a time, under its claim; a claim that its node does not give back ends by
//! itself. What has ended stays so, whoever notes what afterwards.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId};
use vouchsafe_actors::domain::order::Source;
use vouchsafe_actors::flows::Delivery;
use vouchsafe_actors::procurement::{ClaimedPurchase, Due};

use crate::store::PgStore;
use crate::store::audit::rows;

/// How long a node may ask about a purchase before another one does. Longer than a vendor is waited for. Seconds.
const CLAIM_S: i32 = 120;

impl PgStore {
    /// Up to `limit` purchases of a vendor that are due and that nobody asks about: the first of each order before the second
    /// of any.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn due_purchases(&self, vendor: String, limit: usize) -> Result<Vec<Due>, sqlx::Error> {
        let due: Vec<(Uuid, Uuid)> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "SELECT d.purchase_id, d.order_id
                       FROM (
                            SELECT p.purchase_id, p.order_id, p.next_at,
                                   row_number() OVER (PARTITION BY p.order_id ORDER BY p.next_at, p.line) AS place
                              FROM purchases AS p
                             WHERE p.vendor = $1
                               AND NOT p.ended
                               AND p.next_at <= clock_timestamp()
                               AND (p.claimed_until IS NULL OR p.claimed_until < clock_timestamp())
                            ) AS d
                      ORDER BY d.place, d.next_at, d.purchase_id
                      LIMIT $2",
                )
                .bind(vendor)
                .bind(rows(limit))
                .fetch_all(&pool)
                .await
            })
            .await?;
        let due = due.into_iter().map(|(purchase_id, order_id)| Due {
            purchase_id,
            order_id: OrderId::from_uuid(order_id),
        });
        Ok(due.collect())
    }

    /// Claims a purchase that is due; from here on its vendor may have heard of it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn claim_purchase(
        &self,
        node: String,
        purchase_id: Uuid,
    ) -> Result<Option<ClaimedPurchase>, sqlx::Error> {
        let claimed: Option<(Uuid, Uuid, i16, OffsetDateTime, bool)> = self
            .run(move |pool| async move {
                sqlx::query_as(
                    "WITH due AS MATERIALIZED (
                        SELECT p.purchase_id, p.asked
                          FROM purchases AS p
                         WHERE p.purchase_id = $1
                           AND NOT p.ended
                           AND p.next_at <= clock_timestamp()
                           AND (p.claimed_until IS NULL OR p.claimed_until < clock_timestamp())
                           FOR UPDATE SKIP LOCKED
                     )
                     UPDATE purchases AS p
                        SET asked = true,
                            claimed_by = $3,
                            claimed_until = clock_timestamp() + make_interval(secs => $2)
                       FROM due AS d
                      WHERE p.purchase_id = d.purchase_id
                     RETURNING p.partner_id, p.order_id, p.line, p.requested_at, d.asked",
                )
                .bind(purchase_id)
                .bind(f64::from(CLAIM_S))
                .bind(node)
                .fetch_optional(&pool)
                .await
            })
            .await?;
        Ok(claimed.map(
            |(partner_id, order_id, line, requested_at, asked)| ClaimedPurchase {
                delivery: Delivery {
                    kept_id: purchase_id,
                    source: Source::Vendor,
                    partner_id: PartnerId::from_uuid(partner_id),
                    order_id: OrderId::from_uuid(order_id),
                    line: line.cast_unsigned(),
                },
                requested_at,
                asked,
            },
        ))
    }

    /// Gives back what an earlier incarnation on this node has claimed of a vendor's purchases.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn free_purchases(&self, node: String, vendor: String) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query(
                "UPDATE purchases
                    SET claimed_until = NULL
                  WHERE NOT ended AND vendor = $2 AND claimed_by = $1",
            )
            .bind(node)
            .bind(vendor)
            .execute(&pool)
            .await
            .map(drop)
        })
        .await
    }

    /// Gives a claim back. The purchase is due again after so long; with no time it has ended. What has ended stays so.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn note_purchase(&self, purchase_id: Uuid, after: Option<Duration>) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query(
                "UPDATE purchases
                    SET ended = ended OR $2::double precision IS NULL,
                        next_at = clock_timestamp() + make_interval(secs => COALESCE($2, 0)),
                        claimed_until = NULL
                  WHERE purchase_id = $1",
            )
            .bind(purchase_id)
            .bind(after.map(|after| after.as_secs_f64()))
            .execute(&pool)
            .await
            .map(drop)
        })
        .await
    }

    /// A purchase is due at once.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn hurry_purchase(&self, purchase_id: Uuid) -> Result<(), sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query(
                "UPDATE purchases SET next_at = clock_timestamp() WHERE purchase_id = $1 AND NOT ended",
            )
            .bind(purchase_id)
            .execute(&pool)
            .await
            .map(drop)
        })
        .await
    }
}
