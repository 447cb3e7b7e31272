//! Stock as actors claim it: chunks for this node, and the vouchers in them that are free.
//!
//! | statement | |
//! |---|---|
//! | `take_chunks` | chunks become this node's, those that a commit stands on are passed over |
//! | `free_of_chunks` | what is free in them; those with nothing are marked, and others are taken in their place |
//! | `next_to_claim` | when what is left to be claimed begins to expire |
//! | `free_elsewhere` | where there is something, if there is nothing for this node |
//!
//! Rule: what is free is read by a statement after the one that took the chunk. A snapshot from before misses what its owner
//! committed last. They are functions for the sake of their plans, which no size of a table makes worse.

use sqlx::PgPool;
use time::Date;
use time::macros::date;
use uuid::Uuid;
use vouchsafe_actors::domain::ids::{ChunkId, StockId};
use vouchsafe_actors::domain::stock::{CHUNK_VOUCHERS, ClaimedChunk, ClaimedStock, Elsewhere, StockRequest};
use vouchsafe_actors::domain::voucher::{Expiry, Shelved};

use super::nodes::NodeIdentity;

/// Most chunks that one claim takes: bounds its time, and how much stock a node that dies leaves until its lease ends.
const MAX_CHUNKS: usize = 32;

/// How often a claim looks again when the chunks it got were empty.
const MAX_ROUNDS: usize = 64;

#[derive(sqlx::FromRow)]
struct ChunkRow {
    chunk_id: i64,
    first_stock_id: i64,
    last_stock_id: i64,
}

/// What is free in a chunk: the ids, and beside each its last valid day.
#[derive(sqlx::FromRow)]
struct FreeRow {
    chunk_id: i64,
    stock_ids: Vec<i64>,
    expiries: Vec<Option<Date>>,
}

impl FreeRow {
    fn vouchers(&self) -> impl Iterator<Item = (StockId, Expiry)> {
        let days = self.expiries.iter().map(|day| Expiry::from_date(*day));
        self.stock_ids.iter().map(|stock_id| StockId(*stock_id)).zip(days)
    }
}

/// Claims chunks until there is enough, earliest expiry first.
pub(super) async fn claim(
    pool: &PgPool,
    node: &NodeIdentity,
    request: StockRequest,
) -> Result<ClaimedStock, sqlx::Error> {
    let mut claimed = ClaimedStock::default();
    let mut loaded: Vec<i64> = request.loaded.iter().map(|chunk| chunk.0).collect();
    let mut missing = request.enough;
    for _ in 0..MAX_ROUNDS {
        let chunks = claim_chunks(pool, node, &request, &loaded, missing).await?;
        if chunks.is_empty() {
            break;
        }
        loaded.extend(chunks.iter().map(|chunk| chunk.chunk_id));
        for chunk in free_vouchers(pool, &request, &chunks).await? {
            missing = missing.saturating_sub(chunk.vouchers.len());
            claimed.chunks.push(chunk);
        }
        if missing == 0 {
            break;
        }
    }
    claimed.next = next_expiry(pool, node, &request, &loaded).await?;
    if claimed.chunks.is_empty() && claimed.next.is_none() {
        claimed.elsewhere = free_elsewhere(pool, node, &request).await?;
    }
    Ok(claimed)
}

/// Takes chunks that nobody owns, that this node owned before, or whose owner's lease has run out. Chunks that a commit
/// holds right now are passed over; `next_expiry` sees them still, so that nothing is thought to be sold out.
async fn claim_chunks(
    pool: &PgPool,
    node: &NodeIdentity,
    request: &StockRequest,
    loaded: &[i64],
    missing: usize,
) -> Result<Vec<ChunkRow>, sqlx::Error> {
    let limit = missing.div_ceil(CHUNK_VOUCHERS).clamp(1, MAX_CHUNKS);
    sqlx::query_as(
        "SELECT t.chunk_id, t.first_stock_id, t.last_stock_id
           FROM take_chunks($1, $2, $3, $4, $5, $6, $7) AS t",
    )
    .bind(&node.name)
    .bind(node.incarnation)
    .bind(request.sku.product_id.as_str())
    .bind(request.sku.denomination.minor())
    .bind(earliest(request))
    .bind(loaded)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(pool)
    .await
}

/// Takes what was bought under a purchase and is kept for its order: for this node, whoever had it before and is gone or is
/// this node.
pub(super) async fn claim_bought(
    pool: &PgPool,
    node: &NodeIdentity,
    purchase_id: Uuid,
) -> Result<Vec<Shelved>, sqlx::Error> {
    let chunks: Vec<ChunkRow> = sqlx::query_as(
        "UPDATE chunks AS c
            SET node = $2, incarnation = $3
          WHERE c.purchase_id = $1
            AND EXISTS (SELECT FROM nodes AS me WHERE me.node = $2 AND me.incarnation = $3)
         RETURNING c.chunk_id, c.first_stock_id, c.last_stock_id",
    )
    .bind(purchase_id)
    .bind(&node.name)
    .bind(node.incarnation)
    .fetch_all(pool)
    .await?;
    let mut bought: Vec<Shelved> = Vec::new();
    for free in free_of(pool, &chunks).await? {
        let chunk_id = ChunkId(free.chunk_id);
        bought.extend(free.vouchers().map(|(stock_id, expiry)| Shelved {
            expiry,
            stock_id,
            chunk_id,
        }));
    }
    bought.sort_unstable();
    Ok(bought)
}

/// What is free in chunks that were just claimed. No late commit of an owner before us can change it any more.
async fn free_vouchers(
    pool: &PgPool,
    request: &StockRequest,
    chunks: &[ChunkRow],
) -> Result<Vec<ClaimedChunk>, sqlx::Error> {
    // Of any day: a chunk whose vouchers have lapsed is not empty.
    let free = free_of(pool, chunks).await?;
    let mut empty: Vec<i64> = chunks.iter().map(|chunk| chunk.chunk_id).collect();
    empty.retain(|chunk_id| free.iter().all(|free| free.chunk_id != *chunk_id));
    if !empty.is_empty() {
        mark_emptied(pool, empty).await?;
    }
    let usable = free.into_iter().map(|free| ClaimedChunk {
        chunk_id: ChunkId(free.chunk_id),
        vouchers: free
            .vouchers()
            .filter(|(_, expiry)| *expiry >= request.not_before)
            .collect(),
    });
    Ok(usable.collect())
}

/// What is free in chunks, of any day, in their order; nothing of a chunk that is empty.
async fn free_of(pool: &PgPool, chunks: &[ChunkRow]) -> Result<Vec<FreeRow>, sqlx::Error> {
    let column = |of: fn(&ChunkRow) -> i64| chunks.iter().map(of).collect::<Vec<_>>();
    sqlx::query_as("SELECT f.chunk_id, f.stock_ids, f.expiries FROM free_of_chunks($1, $2, $3) AS f")
        .bind(column(|chunk| chunk.chunk_id))
        .bind(column(|chunk| chunk.first_stock_id))
        .bind(column(|chunk| chunk.last_stock_id))
        .fetch_all(pool)
        .await
}

/// Spares later claims the look into these chunks. One that a commit stands on is left for the next claim: waiting for
/// several would take locks in no order.
async fn mark_emptied(pool: &PgPool, chunks: Vec<i64>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE chunks
            SET emptied = true
          WHERE chunk_id IN (
                SELECT c.chunk_id FROM chunks AS c WHERE c.chunk_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
                )",
    )
    .bind(chunks)
    .execute(pool)
    .await
    .map(drop)
}

/// The earliest expiry in a chunk that could still be claimed and has something to sell.
async fn next_expiry(
    pool: &PgPool,
    node: &NodeIdentity,
    request: &StockRequest,
    loaded: &[i64],
) -> Result<Option<Expiry>, sqlx::Error> {
    let first: Option<(Option<Date>,)> =
        sqlx::query_as("SELECT n.first_expiry FROM next_to_claim($1, $2, $3, $4, $5) AS n")
            .bind(&node.name)
            .bind(request.sku.product_id.as_str())
            .bind(request.sku.denomination.minor())
            .bind(earliest(request))
            .bind(loaded)
            .fetch_optional(pool)
            .await?;
    Ok(first.map(|(day,)| Expiry::from_date(day)))
}

/// Where there is something to sell that this node cannot claim now.
async fn free_elsewhere(
    pool: &PgPool,
    node: &NodeIdentity,
    request: &StockRequest,
) -> Result<Elsewhere, sqlx::Error> {
    let found: Option<String> = sqlx::query_scalar("SELECT free_elsewhere($1, $2, $3, $4)")
        .bind(&node.name)
        .bind(request.sku.product_id.as_str())
        .bind(request.sku.denomination.minor())
        .bind(earliest(request))
        .fetch_one(pool)
        .await?;
    match found.as_deref() {
        None => Ok(Elsewhere::Nowhere),
        Some("owned") => Ok(Elsewhere::Owned),
        Some("kept") => Ok(Elsewhere::Kept),
        Some(other) => Err(sqlx::Error::Decode(format!("stock is free {other}").into())),
    }
}

/// The first usable day as a date; what is before every date leaves nothing out.
fn earliest(request: &StockRequest) -> Date {
    request.not_before.date().unwrap_or(date!(0001 - 01 - 01))
}
