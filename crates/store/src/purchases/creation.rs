//! Creation of purchases: those of many waiting orders in one statement and one commit.

use sqlx::PgPool;
use sqlx::types::Json;
use vouchsafe_actors::ports::store::Unavailable;
use vouchsafe_database::boxed;
use vouchsafe_domain::ids::{OrderId, PartnerId};

use super::NewPurchase;
use crate::batcher::{BatchOp, BatchResponse, Batcher};

/// Creates purchases.
#[derive(Debug, Clone)]
pub struct PurchaseCreation(pub(super) Batcher<CreatePurchasesOp>);

impl PurchaseCreation {
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
        self.0.submit((partner_id, order_id, purchases)).await
    }
}

#[derive(Debug, Clone)]
pub(super) struct CreatePurchasesOp;

impl BatchOp for CreatePurchasesOp {
    type Request = (PartnerId, OrderId, Vec<NewPurchase>);
    type Response = ();

    const MAX_BATCH: usize = 64;

    async fn execute_batch(
        self,
        pool: PgPool,
        orders: Vec<Self::Request>,
    ) -> Result<BatchResponse<()>, sqlx::Error> {
        insert(&pool, &orders).await?;
        Ok(orders.iter().map(|_| Some(Ok(()))).collect())
    }
}

/// A row to insert.
type Row<'a> = (PartnerId, OrderId, &'a NewPurchase);

async fn insert(pool: &PgPool, orders: &[(PartnerId, OrderId, Vec<NewPurchase>)]) -> Result<(), sqlx::Error> {
    let rows = orders.iter().flat_map(|(partner_id, order_id, purchases)| {
        purchases
            .iter()
            .map(|purchase| (*partner_id, *order_id, purchase))
    });
    let mut rows: Vec<Row<'_>> = rows.collect();
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
    .execute(pool)
    .await
    .map(drop)
}

fn column<'a, T>(rows: &[Row<'a>], value: impl Fn(&Row<'a>) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
