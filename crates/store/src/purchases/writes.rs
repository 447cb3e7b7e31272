//! Writes of the steps of a purchase: those of many purchases in one transaction and one commit.
//!
//! | Write | Row |
//! |---|---|
//! | create | a purchase of an order line, unless the line has one |
//! | claim | one node at a time contacts the vendor; a claim that its node does not release expires |
//! | record | the result of a request to the vendor, unless the purchase was ended meanwhile |
//! | release | the claim, and when the purchase is due again; an ended purchase stays ended |

use std::collections::HashMap;
use std::time::Duration;

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;
use vouchsafe_actors::ports::vendors::{ClaimedPurchase, ReservedDelivery};
use vouchsafe_database::boxed;
use vouchsafe_database::error::describe;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::order::FulfilmentSource;
use vouchsafe_domain::store_error::Unavailable;

use super::NewPurchase;
use super::answers::PurchaseUpdate;
use super::claims::CLAIM_S;
use vouchsafe_database::batcher::{BatchOp, BatchResponse, Batcher};

/// Writes the steps of purchases for a node.
#[derive(Debug, Clone)]
pub struct PurchaseWrites(pub(super) Batcher<WritePurchases>);

impl PurchaseWrites {
    /// Creates purchases for an order. A line that has a purchase keeps it.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer; what was created stays.
    #[boxed]
    pub async fn create(
        &self,
        partner_id: PartnerId,
        order_id: OrderId,
        purchases: Vec<NewPurchase>,
    ) -> Result<(), Unavailable> {
        let created = purchases
            .into_iter()
            .map(|purchase| (partner_id, order_id, purchase));
        self.0
            .submit(PurchaseWrite::Create(created.collect()))
            .await
            .map(drop)
    }

    /// Claims a due purchase and marks its request as sent, since the vendor may know it from now on. `None`
    /// if it is claimed or not due.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn claim(&self, purchase_id: Uuid) -> Result<Option<ClaimedPurchase>, Unavailable> {
        self.0.submit(PurchaseWrite::Claim(purchase_id)).await
    }

    /// Stores the result of a request, unless the purchase was ended meanwhile.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn record(&self, update: PurchaseUpdate) -> Result<(), Unavailable> {
        self.0.submit(PurchaseWrite::Record(update)).await.map(drop)
    }

    /// Releases a claim. The purchase is due for a retry after this time; `None` ends it. An ended purchase
    /// stays ended.
    ///
    /// # Errors
    /// [`Unavailable`] when the database does not answer.
    #[boxed]
    pub async fn release(&self, purchase_id: Uuid, after: Option<Duration>) -> Result<(), Unavailable> {
        self.0
            .submit(PurchaseWrite::Release(purchase_id, after))
            .await
            .map(drop)
    }
}

/// A row to create.
type NewRow = (PartnerId, OrderId, NewPurchase);

#[derive(Debug, Clone)]
pub(super) enum PurchaseWrite {
    Create(Vec<NewRow>),
    Claim(Uuid),
    Record(PurchaseUpdate),
    Release(Uuid, Option<Duration>),
}

#[derive(Debug, Clone)]
pub(super) struct WritePurchases {
    pub(super) node: String,
}

impl BatchOp for WritePurchases {
    type Request = PurchaseWrite;
    /// The purchase that was claimed.
    type Response = Option<ClaimedPurchase>;

    const MAX_BATCH: usize = 64;

    async fn execute_batch(
        self,
        pool: PgPool,
        requests: Vec<PurchaseWrite>,
    ) -> Result<BatchResponse<Self::Response>, sqlx::Error> {
        let (mut created, mut claims) = (Vec::new(), Vec::new());
        let (mut updates, mut releases) = (Vec::new(), Vec::new());
        for request in &requests {
            match request {
                PurchaseWrite::Create(rows) => created.extend(rows),
                PurchaseWrite::Claim(purchase_id) => claims.push(*purchase_id),
                PurchaseWrite::Record(update) => updates.push(update),
                PurchaseWrite::Release(purchase_id, after) => releases.push((*purchase_id, *after)),
            }
        }
        let mut transaction = pool.begin().await?;
        if !created.is_empty() {
            insert(&mut transaction, created).await?;
        }
        let mut claimed = HashMap::new();
        if !claims.is_empty() {
            claimed = claim(&mut transaction, &self.node, &claims).await?;
        }
        if !updates.is_empty() {
            record(&mut transaction, &updates).await?;
        }
        if !releases.is_empty() {
            release(&mut transaction, &releases).await?;
        }
        let committed = transaction.commit().await;
        let respond = |request| match (request, &committed) {
            (PurchaseWrite::Claim(purchase_id), Ok(())) => Some(Ok(claimed.remove(&purchase_id))),
            // Repeated, a claim that was committed would find the purchase claimed, and leave it until the
            // claim expires. After an error the actor releases the claims of its node.
            (PurchaseWrite::Claim(_), Err(error)) => Some(Err(sqlx::Error::Protocol(format!(
                "the commit of a claim was not confirmed: {}",
                describe(error)
            )))),
            (_, Ok(())) => Some(Ok(None)),
            // The others change nothing more when they are repeated alone.
            (_, Err(_)) => None,
        };
        Ok(requests.into_iter().map(respond).collect())
    }
}

async fn insert(connection: &mut PgConnection, mut rows: Vec<&NewRow>) -> Result<(), sqlx::Error> {
    // Another node that creates the same purchases waits for this one, and not each for the other.
    rows.sort_unstable_by_key(|(partner_id, order_id, purchase)| (*partner_id, *order_id, purchase.line));
    sqlx::query!(
        "INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination,
                                currency, quantity, expiry_policy, requested_at)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::text[], $6::text[], $7::bigint[],
                              $8::text[], $9::integer[], $10::jsonb[], $11::timestamptz[])
         ON CONFLICT (partner_id, order_id, line) DO NOTHING",
        column(&rows, |(_, _, purchase)| purchase.request.key) as _,
        column(&rows, |(partner_id, ..)| *partner_id) as _,
        column(&rows, |(_, order_id, _)| *order_id) as _,
        &column(&rows, |(_, _, purchase)| purchase.line.cast_signed()),
        &column(&rows, |(_, _, purchase)| purchase.vendor.clone()),
        column(&rows, |(_, _, purchase)| purchase.request.product_id.clone()) as _,
        column(&rows, |(_, _, purchase)| purchase.request.denomination.amount) as _,
        column(&rows, |(_, _, purchase)| purchase.request.denomination.currency) as _,
        &column(&rows, |(_, _, purchase)| purchase.request.quantity.cast_signed()),
        column(&rows, |(_, _, purchase)| Json(purchase.request.expiry_policy.clone())) as _,
        &column(&rows, |(_, _, purchase)| purchase.request.requested_at),
    )
    .execute(connection)
    .await
    .map(drop)
}

fn column<R, T>(rows: &[R], value: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

async fn claim(
    connection: &mut PgConnection,
    node: &str,
    purchases: &[Uuid],
) -> Result<HashMap<Uuid, ClaimedPurchase>, sqlx::Error> {
    let claimed = sqlx::query!(
        r#"WITH due AS MATERIALIZED (
            SELECT p.purchase_id, p.sent
              FROM purchases AS p
             WHERE p.purchase_id = ANY ($1)
               AND NOT p.ended
               AND p.next_at <= clock_timestamp()
               AND (p.claimed_until IS NULL OR p.claimed_until < clock_timestamp())
             ORDER BY p.purchase_id
               FOR UPDATE SKIP LOCKED
         )
         UPDATE purchases AS p
            SET sent = true,
                claimed_by = $3,
                claimed_until = clock_timestamp() + make_interval(secs => $2)
           FROM due AS d
          WHERE p.purchase_id = d.purchase_id
         RETURNING p.purchase_id, p.partner_id AS "partner_id: PartnerId", p.order_id AS "order_id: OrderId", p.line,
                   p.requested_at, d.sent"#,
        purchases,
        f64::from(CLAIM_S),
        node,
    )
    .map(|row| {
        let claimed = ClaimedPurchase {
            delivery: ReservedDelivery {
                reservation_id: row.purchase_id,
                source: FulfilmentSource::Vendor,
                partner_id: row.partner_id,
                order_id: row.order_id,
                line: row.line.cast_unsigned(),
            },
            requested_at: row.requested_at,
            was_requested: row.sent,
        };
        (row.purchase_id, claimed)
    });
    Ok(claimed.fetch_all(connection).await?.into_iter().collect())
}

async fn record(connection: &mut PgConnection, updates: &[&PurchaseUpdate]) -> Result<(), sqlx::Error> {
    let quarantined = column(updates, |update| Json(&update.quarantined));
    sqlx::query!(
        "WITH locked AS MATERIALIZED (
            SELECT p.purchase_id
              FROM purchases AS p
             WHERE p.purchase_id = ANY ($1)
             ORDER BY p.purchase_id
               FOR NO KEY UPDATE
         )
         UPDATE purchases AS p
            SET last_response = u.last_response,
                last_response_at = clock_timestamp(),
                last_message = u.last_message,
                sold = GREATEST(p.sold, u.sold), -- what was sold stays sold
                quarantined = CASE
                    WHEN u.sold IS NULL THEN p.quarantined
                    ELSE ARRAY(SELECT jsonb_array_elements_text(u.quarantined))
                END
           FROM unnest($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::jsonb[])
                AS u (purchase_id, last_response, last_message, sold, quarantined)
           JOIN locked AS l ON l.purchase_id = u.purchase_id
          WHERE p.purchase_id = u.purchase_id AND NOT p.ended",
        &column(updates, |update| update.key.0),
        column(updates, |update| update.last_response) as _,
        column(updates, |update| update.last_message.clone()) as _,
        column(updates, |update| update.sold.map(u32::cast_signed)) as _,
        quarantined as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

async fn release(
    connection: &mut PgConnection,
    releases: &[(Uuid, Option<Duration>)],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "WITH locked AS MATERIALIZED (
            SELECT p.purchase_id
              FROM purchases AS p
             WHERE p.purchase_id = ANY ($1)
             ORDER BY p.purchase_id
               FOR NO KEY UPDATE
         )
         UPDATE purchases AS p
            SET ended = p.ended OR r.after_s IS NULL,
                next_at = clock_timestamp() + make_interval(secs => COALESCE(r.after_s, 0)),
                claimed_until = NULL
           FROM unnest($1::uuid[], $2::double precision[]) AS r (purchase_id, after_s)
           JOIN locked AS l ON l.purchase_id = r.purchase_id
          WHERE p.purchase_id = r.purchase_id",
        &column(releases, |(purchase_id, _)| *purchase_id),
        column(releases, |(_, after)| after.map(|after| after.as_secs_f64())) as _,
    )
    .execute(connection)
    .await
    .map(drop)
}
