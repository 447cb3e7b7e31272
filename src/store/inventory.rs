//! Stock as actors claim it: chunks for this node, and the vouchers in them that are free.
//!
//! | statement | |
//! |---|---|
//! | `take_chunks` | chunks become this node's, those that a commit stands on are passed over |
//! | `free_of_chunks` | what is free in them; those with nothing are marked, and others are taken in their place |
//! | `next_to_claim` | when what is left to be claimed begins to expire |
//! | `free_elsewhere` | where there is something, if there is nothing for this node |
//!
//! Each but the last is one for all claims that are made together ([`super::claims`]).
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

/// Most chunks that a claim takes in a round: bounds how much stock a node that dies leaves until its lease ends.
const MAX_CHUNKS: usize = 32;

/// Most chunks that claims made together take in a round: bounds its time and its memory.
const MAX_CHUNKS_TOGETHER: usize = 256;

/// How often a claim looks again when the chunks it got were empty.
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

/// Claims chunks for each request until it has enough, earliest expiry first. The requests are of different SKUs; what
/// comes is in their order.
pub(super) async fn claim(
    pool: &PgPool,
    node: &NodeIdentity,
    requests: &[StockRequest],
) -> Result<Vec<ClaimedStock>, sqlx::Error> {
    let mut claimed = vec![ClaimedStock::default(); requests.len()];
    let mut missing: Vec<usize> = requests.iter().map(|request| request.enough).collect();
    let mut loaded: Vec<i64> = requests
        .iter()
        .flat_map(|request| &request.loaded)
        .map(|chunk| chunk.0)
        .collect();
    let mut open: Vec<usize> = (0..requests.len()).collect();
    for _ in 0..MAX_ROUNDS {
        let share = (MAX_CHUNKS_TOGETHER / open.len().max(1)).clamp(1, MAX_CHUNKS);
        let looking = open.iter().map(|place| {
            let limit = missing[*place].div_ceil(CHUNK_VOUCHERS).clamp(1, share);
            (&requests[*place], limit)
        });
        let (chunks, owners) = take(pool, node, looking, &loaded).await?;
        let owners: Vec<usize> = owners.into_iter().map(|owner| open[owner]).collect();
        loaded.extend(chunks.iter().map(|chunk| chunk.chunk_id));
        let free = free_of(pool, &chunks).await?;
        let mut empty: Vec<i64> = Vec::new();
        let mut free = free.into_iter().peekable();
        // In the order in which they were taken; a chunk with nothing has no row.
        for (chunk, place) in chunks.iter().zip(&owners) {
            let Some(free) = free.next_if(|free| free.chunk_id == chunk.chunk_id) else {
                empty.push(chunk.chunk_id);
                continue;
            };
            let chunk = free.valid_on(requests[*place].not_before);
            missing[*place] = missing[*place].saturating_sub(chunk.vouchers.len());
            claimed[*place].chunks.push(chunk);
        }
        if !empty.is_empty() {
            mark_emptied(pool, empty).await?;
        }
        // For whom there was no chunk there is none in the next round, either.
        open.retain(|place| missing[*place] > 0 && owners.contains(place));
        if open.is_empty() {
            break;
        }
    }
    for (place, first) in next_expiries(pool, node, requests, &loaded).await? {
        claimed[place].next = Some(first);
    }
    for (claimed, request) in claimed.iter_mut().zip(requests) {
        if claimed.chunks.is_empty() && claimed.next.is_none() {
            claimed.elsewhere = free_elsewhere(pool, node, request).await?;
        }
    }
    Ok(claimed)
}

/// Takes chunks that nobody owns, that this node owned before, or whose owner's lease has run out: for each request up to
/// its limit, and beside each chunk for which of them, from 0. Chunks that a commit holds right now are passed over;
/// `next_expiries` sees them still, so that nothing is thought to be sold out.
async fn take<'a>(
    pool: &PgPool,
    node: &NodeIdentity,
    looking: impl Iterator<Item = (&'a StockRequest, usize)>,
    loaded: &[i64],
) -> Result<(Vec<ChunkRow>, Vec<usize>), sqlx::Error> {
    let (requests, limits): (Vec<_>, Vec<_>) = looking.unzip();
    let columns = Columns::of(requests);
    let taken: Vec<TakenRow> = sqlx::query_as(
        "SELECT t.request, t.chunk_id, t.first_stock_id, t.last_stock_id
           FROM take_chunks($1, $2, $3, $4, $5, $6, $7) AS t",
    )
    .bind(&node.name)
    .bind(node.incarnation)
    .bind(columns.products)
    .bind(columns.denominations)
    .bind(columns.valid_on)
    .bind(limits.into_iter().map(rows).collect::<Vec<_>>())
    .bind(loaded)
    .fetch_all(pool)
    .await?;
    taken
        .into_iter()
        .map(|taken| Ok((taken.chunk, place(taken.request)?)))
        .collect()
}

/// Requests as the functions take them, an element each.
#[derive(Default)]
struct Columns<'a> {
    products: Vec<&'a str>,
    denominations: Vec<i64>,
    valid_on: Vec<Date>,
}

impl<'a> Columns<'a> {
    fn of(requests: impl IntoIterator<Item = &'a StockRequest>) -> Self {
        let mut columns = Self::default();
        for request in requests {
            columns.products.push(request.sku.product_id.as_str());
            columns.denominations.push(request.sku.denomination.minor());
            columns.valid_on.push(earliest(request));
        }
        columns
    }
}

/// Which request a number of the server's means, which counts from 1.
fn place(number: i32) -> Result<usize, sqlx::Error> {
    let place = usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1));
    place.ok_or_else(|| sqlx::Error::Decode(format!("{number} is no request").into()))
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

/// The earliest expiry in a chunk that could still be claimed and has something to sell, beside the request that it is
/// for, from 0.
async fn next_expiries(
    pool: &PgPool,
    node: &NodeIdentity,
    requests: &[StockRequest],
    loaded: &[i64],
) -> Result<Vec<(usize, Expiry)>, sqlx::Error> {
    let columns = Columns::of(requests);
    let next: Vec<(i32, Option<Date>)> =
        sqlx::query_as("SELECT n.request, n.first_expiry FROM next_to_claim($1, $2, $3, $4, $5) AS n")
            .bind(&node.name)
            .bind(columns.products)
            .bind(columns.denominations)
            .bind(columns.valid_on)
            .bind(loaded)
            .fetch_all(pool)
            .await?;
    next.into_iter()
        .map(|(number, day)| Ok((place(number)?, Expiry::from_date(day))))
        .collect()
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
