//! Stock as actors claim it: chunks for this node, and the vouchers in them that are free.
//!
//! | statement | |
//! |---|---|
//! | `take_chunks` | chunks become this node's, those that a commit stands on are passed over |
//! | `free_of_chunks` | what is free in them; those with nothing are marked, and others are taken in their place |
//! | `next_to_claim` | when what is left to be claimed begins to expire |
//! | `free_elsewhere` | where there is something, if there is nothing for this node |
//!
//! Each but the last is one for all claims that go together ([`super::claims`]).
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

use super::audit::rows;
use super::nodes::NodeIdentity;
use super::together::place;

/// Most chunks that a claim takes in a round: bounds its time.
const MAX_CHUNKS: usize = 32;

/// Most chunks that claims made together take in a round: bounds its time and its memory.
const MAX_CHUNKS_TOGETHER: usize = 256;

/// How often a claim looks again when what it got is not enough.
const MAX_ROUNDS: usize = 64;

/// A chunk that was taken.
#[derive(sqlx::FromRow)]
struct TakenRow {
    /// For whom, from 1.
    request: i32,
    #[sqlx(flatten)]
    chunk: ChunkRow,
}

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

    /// Without what expires earlier: a chunk all of whose vouchers have lapsed is not empty.
    fn valid_on(&self, day: Expiry) -> ClaimedChunk {
        ClaimedChunk {
            chunk_id: ChunkId(self.chunk_id),
            vouchers: self.vouchers().filter(|(_, expiry)| *expiry >= day).collect(),
        }
    }
}

/// Claims chunks until there is enough, earliest expiry first.
pub(super) async fn claim(
    pool: &PgPool,
    node: &NodeIdentity,
    request: StockRequest,
) -> Result<ClaimedStock, sqlx::Error> {
    let mut claims = [Claim::of(request)];
    for _ in 0..MAX_ROUNDS {
        take_round(pool, node, &mut claims).await?;
        if !claims[0].goes_on {
            break;
        }
    }
    announce_next(pool, node, &mut claims).await?;
    let [mut claim] = claims;
    if claim.claimed.chunks.is_empty() && claim.claimed.next.is_none() {
        claim.claimed.elsewhere = free_elsewhere(pool, node, &claim.request).await?;
    }
    Ok(claim.claimed)
}

/// One round of claims for several SKUs, in the order of the requests: what each got for whom that was all, and `None` for
/// whom it takes more rounds, or who got nothing.
pub(super) async fn claim_in_one_round(
    pool: &PgPool,
    node: &NodeIdentity,
    requests: Vec<StockRequest>,
) -> Result<Vec<Option<ClaimedStock>>, sqlx::Error> {
    let mut claims: Vec<Claim> = requests.into_iter().map(Claim::of).collect();
    take_round(pool, node, &mut claims).await?;
    announce_next(pool, node, &mut claims).await?;
    let in_one_round = claims
        .into_iter()
        .map(|claim| (!claim.goes_on && !claim.claimed.chunks.is_empty()).then_some(claim.claimed));
    Ok(in_one_round.collect())
}

/// A claim on its way.
struct Claim {
    request: StockRequest,
    /// The chunks that are its already.
    loaded: Vec<i64>,
    /// How many vouchers would be enough now.
    missing: usize,
    /// Whether another round may bring more.
    goes_on: bool,
    claimed: ClaimedStock,
}

impl Claim {
    fn of(request: StockRequest) -> Self {
        Self {
            loaded: request.loaded.iter().map(|chunk| chunk.0).collect(),
            missing: request.enough,
            goes_on: true,
            claimed: ClaimedStock::default(),
            request,
        }
    }
}

/// Takes chunks that nobody owns, that this node owned before, or whose owner's lease has run out, and what is free in them.
/// Chunks that a commit holds right now are passed over; `announce_next` sees them still, so that nothing is thought to be
/// sold out.
async fn take_round(pool: &PgPool, node: &NodeIdentity, claims: &mut [Claim]) -> Result<(), sqlx::Error> {
    let share = (MAX_CHUNKS_TOGETHER / claims.len().max(1)).clamp(1, MAX_CHUNKS);
    let limit = |claim: &Claim| claim.missing.div_ceil(CHUNK_VOUCHERS).clamp(1, share);
    let limits: Vec<usize> = claims.iter().map(limit).collect();
    let columns = Columns::of(claims);
    let taken: Vec<TakenRow> = sqlx::query_as(
        "SELECT t.request, t.chunk_id, t.first_stock_id, t.last_stock_id
           FROM take_chunks($1, $2, $3, $4, $5, $6, $7, $8) AS t",
    )
    .bind(&node.name)
    .bind(node.incarnation)
    .bind(columns.products)
    .bind(columns.denominations)
    .bind(columns.valid_on)
    .bind(limits.iter().copied().map(rows).collect::<Vec<_>>())
    .bind(columns.loaded)
    .bind(columns.loaded_to)
    .fetch_all(pool)
    .await?;
    let (owners, chunks): (Vec<i32>, Vec<ChunkRow>) = taken
        .into_iter()
        .map(|taken| (taken.request, taken.chunk))
        .unzip();
    let mut free = free_of(pool, &chunks).await?.into_iter().peekable();
    let mut empty: Vec<i64> = Vec::new();
    let mut got = vec![0_usize; claims.len()];
    // In the order in which they were taken; a chunk with nothing has no row.
    for (chunk, owner) in chunks.iter().zip(owners) {
        let place = place(owner)?;
        let claim = &mut claims[place];
        got[place] += 1;
        claim.loaded.push(chunk.chunk_id);
        let Some(free) = free.next_if(|free| free.chunk_id == chunk.chunk_id) else {
            empty.push(chunk.chunk_id);
            continue;
        };
        let chunk = free.valid_on(claim.request.not_before);
        claim.missing = claim.missing.saturating_sub(chunk.vouchers.len());
        claim.claimed.chunks.push(chunk);
    }
    for ((claim, got), limit) in claims.iter_mut().zip(got).zip(limits) {
        claim.goes_on = claim.missing > 0 && got == limit;
    }
    if !empty.is_empty() {
        mark_emptied(pool, empty).await?;
    }
    Ok(())
}

/// Notes the earliest expiry in a chunk that could still be claimed and has something to sell.
async fn announce_next(pool: &PgPool, node: &NodeIdentity, claims: &mut [Claim]) -> Result<(), sqlx::Error> {
    let columns = Columns::of(claims);
    let next: Vec<(i32, Option<Date>)> =
        sqlx::query_as("SELECT n.request, n.first_expiry FROM next_to_claim($1, $2, $3, $4, $5, $6) AS n")
            .bind(&node.name)
            .bind(columns.products)
            .bind(columns.denominations)
            .bind(columns.valid_on)
            .bind(columns.loaded)
            .bind(columns.loaded_to)
            .fetch_all(pool)
            .await?;
    for (owner, day) in next {
        claims[place(owner)?].claimed.next = Some(Expiry::from_date(day));
    }
    Ok(())
}

/// Claims as the functions take them, an element each; what they have loaded, one after the other, and where that of each ends.
#[derive(Default)]
struct Columns<'a> {
    products: Vec<&'a str>,
    denominations: Vec<i64>,
    valid_on: Vec<Date>,
    loaded: Vec<i64>,
    loaded_to: Vec<i32>,
}

impl<'a> Columns<'a> {
    fn of(claims: &'a [Claim]) -> Self {
        let mut columns = Self::default();
        for Claim { request, loaded, .. } in claims {
            columns.products.push(request.sku.product_id.as_str());
            columns.denominations.push(request.sku.denomination.minor());
            columns.valid_on.push(earliest(request));
            columns.loaded.extend(loaded);
            columns
                .loaded_to
                .push(i32::try_from(columns.loaded.len()).unwrap_or(i32::MAX));
        }
        columns
    }
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
