//! Stock as actors claim it: chunks for this node, and the vouchers in them that are free.

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
        for chunk in free_vouchers(pool, &request, chunks).await? {
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
        "WITH claimable AS (
            SELECT c.chunk_id
              FROM chunks AS c
              LEFT JOIN nodes AS n ON n.node = c.node
             WHERE c.product_id = $1
               AND c.denomination = $2
               AND NOT c.emptied
               AND c.purchase_id IS NULL
               AND (c.last_expiry IS NULL OR c.last_expiry >= $3)
               AND NOT c.chunk_id = ANY ($4)
               AND (c.node IS NULL OR c.node = $5 OR n.lease_until < clock_timestamp())
               AND EXISTS (SELECT FROM nodes AS me WHERE me.node = $5 AND me.incarnation = $6)
             ORDER BY c.first_expiry NULLS LAST, c.chunk_id
             LIMIT $7
               FOR NO KEY UPDATE OF c SKIP LOCKED
         )
         UPDATE chunks AS c
            SET node = $5, incarnation = $6
           FROM claimable AS k
          WHERE c.chunk_id = k.chunk_id
         RETURNING c.chunk_id, c.first_stock_id, c.last_stock_id",
    )
    .bind(request.sku.product_id.as_str())
    .bind(request.sku.denomination.minor())
    .bind(earliest(request))
    .bind(loaded)
    .bind(&node.name)
    .bind(node.incarnation)
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
    let mut bought = Vec::new();
    for chunk in chunks {
        let free: Vec<(i64, Option<Date>)> =
            sqlx::query_as("SELECT f.stock_id, f.expiry FROM free_stock($1, $2, '-infinity') AS f")
                .bind(chunk.first_stock_id)
                .bind(chunk.last_stock_id)
                .fetch_all(pool)
                .await?;
        bought.extend(free.into_iter().map(|(stock_id, day)| Shelved {
            expiry: Expiry::from_date(day),
            stock_id: StockId(stock_id),
            chunk_id: ChunkId(chunk.chunk_id),
        }));
    }
    bought.sort_unstable();
    Ok(bought)
}

/// What is free in chunks that were just claimed. No late commit of an owner before us can change it any more.
async fn free_vouchers(
    pool: &PgPool,
    request: &StockRequest,
    chunks: Vec<ChunkRow>,
) -> Result<Vec<ClaimedChunk>, sqlx::Error> {
    let mut claimed = Vec::with_capacity(chunks.len());
    let mut empty = Vec::new();
    for chunk in chunks {
        // Of any day: a chunk whose vouchers have lapsed is not empty.
        let free: Vec<(i64, Option<Date>)> =
            sqlx::query_as("SELECT f.stock_id, f.expiry FROM free_stock($1, $2, '-infinity') AS f")
                .bind(chunk.first_stock_id)
                .bind(chunk.last_stock_id)
                .fetch_all(pool)
                .await?;
        if free.is_empty() {
            empty.push(chunk.chunk_id);
            continue;
        }
        let vouchers = free
            .into_iter()
            .map(|(id, day)| (StockId(id), Expiry::from_date(day)))
            .filter(|(_, expiry)| *expiry >= request.not_before)
            .collect();
        claimed.push(ClaimedChunk {
            chunk_id: ChunkId(chunk.chunk_id),
            vouchers,
        });
    }
    if !empty.is_empty() {
        mark_emptied(pool, empty).await?;
    }
    Ok(claimed)
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
    let first: Option<(Option<Date>,)> = sqlx::query_as(
        "SELECT c.first_expiry
           FROM chunks AS c
           LEFT JOIN nodes AS n ON n.node = c.node
          WHERE c.product_id = $1
            AND c.denomination = $2
            AND NOT c.emptied
            AND c.purchase_id IS NULL
            AND (c.last_expiry IS NULL OR c.last_expiry >= $3)
            AND NOT c.chunk_id = ANY ($4)
            AND (c.node IS NULL OR c.node = $5 OR n.lease_until < clock_timestamp())
            AND EXISTS (SELECT FROM free_stock(c.first_stock_id, c.last_stock_id, $3))
          ORDER BY c.first_expiry NULLS LAST, c.chunk_id
          LIMIT 1",
    )
    .bind(request.sku.product_id.as_str())
    .bind(request.sku.denomination.minor())
    .bind(earliest(request))
    .bind(loaded)
    .bind(&node.name)
    .fetch_optional(pool)
    .await?;
    Ok(first.map(|(day,)| Expiry::from_date(day)))
}

/// Where there is something to sell that this node cannot claim now. What is kept for the order of a purchase that goes on is
/// that order's.
async fn free_elsewhere(
    pool: &PgPool,
    node: &NodeIdentity,
    request: &StockRequest,
) -> Result<Elsewhere, sqlx::Error> {
    let is_kept: Option<bool> = sqlx::query_scalar(
        "SELECT c.purchase_id IS NOT NULL
           FROM chunks AS c
          WHERE c.product_id = $1
            AND c.denomination = $2
            AND NOT c.emptied
            AND (c.last_expiry IS NULL OR c.last_expiry >= $3)
            AND CASE WHEN c.purchase_id IS NULL THEN c.node <> $4
                     ELSE NOT EXISTS (SELECT FROM purchases AS p WHERE p.purchase_id = c.purchase_id AND NOT p.ended)
                END
            AND EXISTS (SELECT FROM free_stock(c.first_stock_id, c.last_stock_id, $3))
          ORDER BY c.purchase_id IS NOT NULL DESC
          LIMIT 1",
    )
    .bind(request.sku.product_id.as_str())
    .bind(request.sku.denomination.minor())
    .bind(earliest(request))
    .bind(&node.name)
    .fetch_optional(pool)
    .await?;
    Ok(match is_kept {
        None => Elsewhere::Nowhere,
        Some(false) => Elsewhere::Owned,
        Some(true) => Elsewhere::Kept,
    })
}

/// The first usable day as a date; what is before every date leaves nothing out.
fn earliest(request: &StockRequest) -> Date {
    request.not_before.date().unwrap_or(date!(0001 - 01 - 01))
}
