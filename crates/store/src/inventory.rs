//! Stock claims: takes chunks for this node and reads their free vouchers.
//!
//! | SQL function | purpose |
//! |---|---|
//! | `claim_chunks_v1` | assigns chunks to this node, except those that a commit has locked |
//! | `list_free_stock_v1` | lists their free vouchers; empty chunks are marked, and the next round replaces them |
//! | `next_claimable_expiry_v1` | earliest expiry of the stock that remains claimable |
//! | `unclaimable_stock_v1` | why the remaining stock is not claimable |
//!
//! Each statement but the last serves all claims of a batch ([`super::stock_claims`]).
//!
//! Free vouchers are read by a statement after the one that took the chunk: an earlier snapshot misses the
//! last commits of the previous owner. The statements are SQL functions because functions can fix their plans
//! whatever the table sizes. Calls of these functions are not checked at compile time: the macros take each
//! column of a function's result for nullable.

mod claim;

use sqlx::PgPool;
use time::Date;
use uuid::Uuid;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::ids::{ChunkId, StockId};
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{CHUNK_VOUCHERS, ClaimedChunk, ClaimedStock, StockRequest, UnclaimableStock};
use vouchsafe_domain::voucher::{Expiry, StockVoucher};

use self::claim::{ChunkRow, Claim, ClaimColumns, ClaimTotal, earliest_valid_date};
use super::node_identity::NodeIdentity;
use super::stock_demands::{self, demand_validity};
use vouchsafe_database::batcher::request_index;

/// Bounds the time of one claim in a round.
const MAX_CHUNKS: usize = 32;

/// Bounds the time and the memory of a batch in a round.
const MAX_CHUNKS_PER_BATCH: usize = 256;

/// Bounds the repetition of a claim that does not have enough vouchers.
const MAX_ROUNDS: usize = 64;

/// Rounds of a batch: the first finds the chunk that the shelf has sold out, which only now is marked. A
/// claim that needs more rounds goes on alone, so that the others of its batch do not wait for it.
const MAX_BATCH_ROUNDS: usize = 3;

#[derive(sqlx::FromRow)]
struct ClaimedChunkRow {
    /// Number of the request, from 1.
    request: i32,
    #[sqlx(flatten)]
    chunk: ChunkRow,
}

/// Free vouchers of a chunk: parallel arrays of ids and last valid days.
#[derive(sqlx::FromRow)]
struct FreeStockRow {
    chunk_id: i64,
    stock_ids: Vec<i64>,
    expiries: Vec<Option<Date>>,
}

impl FreeStockRow {
    fn vouchers(&self) -> impl Iterator<Item = (StockId, Expiry)> {
        let days = self.expiries.iter().map(|day| Expiry::from_date(*day));
        self.stock_ids.iter().map(|stock_id| StockId(*stock_id)).zip(days)
    }

    /// Leaves out vouchers that are no longer valid on `day`. They do not make the chunk empty.
    fn valid_on(&self, day: Expiry) -> ClaimedChunk {
        ClaimedChunk {
            chunk_id: ChunkId(self.chunk_id),
            vouchers: self.vouchers().filter(|(_, expiry)| *expiry >= day).collect(),
        }
    }
}

/// Claims chunks until the request is satisfied, earliest expiry first.
pub(super) async fn claim(
    pool: &PgPool,
    node: &NodeIdentity,
    request: StockRequest,
) -> Result<ClaimedStock, sqlx::Error> {
    let mut claims = [Claim::of(request)];
    claim_rounds(pool, node, &mut claims, Takeover::No, MAX_ROUNDS).await?;
    load_next_expiry(pool, node, &mut claims).await?;
    let [claim] = &mut claims;
    if claim.claimed.chunks.is_empty() && claim.claimed.next_expiry.is_none() {
        claim.claimed.unclaimable = find_unclaimable_stock(pool, claim).await?;
    }
    let is_owned = claim.claimed.unclaimable == UnclaimableStock::OwnedByOtherNode;
    if is_owned && claim.request.demanded > 0 && stock_demands::renew(pool, node, &claim.request).await? {
        claims[0].can_continue = true;
        claim_rounds(pool, node, &mut claims, Takeover::Yes, MAX_ROUNDS).await?;
    }
    end_satisfied_demands(pool, node, &claims).await?;
    let [claim] = claims;
    if claim.is_refused() && claim.request.demanded > 0 {
        // No stock can come of the demand; it would hold off other nodes until it ends.
        stock_demands::end(pool, node, &[&claim.request.sku]).await?;
    }
    Ok(claim.claimed)
}

/// Claims until the requests are satisfied or nothing more is found, in at most `rounds` rounds.
async fn claim_rounds(
    pool: &PgPool,
    node: &NodeIdentity,
    claims: &mut [Claim],
    takeover: Takeover,
    rounds: usize,
) -> Result<(), sqlx::Error> {
    for _ in 0..rounds {
        let mut open: Vec<&mut Claim> = claims.iter_mut().filter(|claim| claim.can_continue).collect();
        if open.is_empty() {
            break;
        }
        claim_round(pool, node, &mut open, takeover).await?;
    }
    Ok(())
}

/// Deletes the demands of claims that brought enough: other nodes come next, and a later demand of this node
/// comes after theirs.
async fn end_satisfied_demands(
    pool: &PgPool,
    node: &NodeIdentity,
    claims: &[Claim],
) -> Result<(), sqlx::Error> {
    let satisfied = claims.iter().filter(|claim| claim.has_satisfied_demand());
    let skus: Vec<&Sku> = satisfied.map(|claim| &claim.request.sku).collect();
    if skus.is_empty() {
        return Ok(());
    }
    stock_demands::end(pool, node, &skus).await
}

/// Claims chunks for several SKUs. Returns `None` for a request that needs more rounds or got nothing.
pub(super) async fn claim_batch(
    pool: &PgPool,
    node: &NodeIdentity,
    requests: Vec<StockRequest>,
) -> Result<Vec<Option<ClaimedStock>>, sqlx::Error> {
    let mut claims: Vec<Claim> = requests.into_iter().map(Claim::of).collect();
    claim_rounds(pool, node, &mut claims, Takeover::No, MAX_BATCH_ROUNDS).await?;
    load_next_expiry(pool, node, &mut claims).await?;
    end_satisfied_demands(pool, node, &claims).await?;
    let in_few_rounds = claims
        .into_iter()
        .map(|claim| (!claim.can_continue && !claim.claimed.chunks.is_empty()).then_some(claim.claimed));
    Ok(in_few_rounds.collect())
}

/// Whether a claim takes chunks of live nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takeover {
    No,
    /// The owners were asked to release stock and did not.
    Yes,
}

/// Takes chunks without an owner, of ended incarnations, or of nodes whose lease has expired, and reads their
/// free vouchers. Skips chunks that a commit has locked; `load_next_expiry` still sees these, so the SKU is
/// not taken for sold out.
async fn claim_round(
    pool: &PgPool,
    node: &NodeIdentity,
    claims: &mut [&mut Claim],
    takeover: Takeover,
) -> Result<(), sqlx::Error> {
    let limit = (MAX_CHUNKS_PER_BATCH / claims.len().max(1)).clamp(1, MAX_CHUNKS);
    let wanted: Vec<usize> = claims.iter().map(|claim| claim.shortfall).collect();
    let columns = ClaimColumns::of(claims.iter().map(|claim| &**claim));
    let claimed: Vec<ClaimedChunkRow> = sqlx::query_as(
        "SELECT t.request, t.chunk_id, t.first_stock_id, t.last_stock_id
           FROM claim_chunks_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS t",
    )
    .bind(&node.name)
    .bind(node.incarnation)
    .bind(columns.products)
    .bind(columns.denominations)
    .bind(columns.valid_on)
    .bind(wanted.iter().copied().map(to_bigint).collect::<Vec<_>>())
    .bind(to_bigint(CHUNK_VOUCHERS))
    .bind(to_bigint(limit))
    .bind(columns.loaded)
    .bind(columns.loaded_to)
    .bind(takeover == Takeover::Yes)
    .bind(demand_validity())
    .fetch_all(pool)
    .await?;
    let (requests, chunks): (Vec<i32>, Vec<ChunkRow>) = claimed
        .into_iter()
        .map(|claimed| (claimed.request, claimed.chunk))
        .unzip();
    let mut free = load_free_stock(pool, &chunks).await?.into_iter().peekable();
    let mut empty: Vec<i64> = Vec::new();
    let mut totals = vec![ClaimTotal::default(); claims.len()];
    // Rows come in the order of the chunks; an empty chunk has no row.
    for (chunk, request) in chunks.iter().zip(requests) {
        let index = request_index(request)?;
        let claim = &mut claims[index];
        totals[index].add(chunk);
        claim.loaded.push(chunk.chunk_id);
        let Some(free) = free.next_if(|free| free.chunk_id == chunk.chunk_id) else {
            empty.push(chunk.chunk_id);
            continue;
        };
        let chunk = free.valid_on(claim.request.not_before);
        claim.shortfall = claim.shortfall.saturating_sub(chunk.vouchers.len());
        claim.claimed.chunks.push(chunk);
    }
    for ((claim, total), wanted) in claims.iter_mut().zip(totals).zip(wanted) {
        claim.can_continue = claim.shortfall > 0 && (total.chunks == limit || total.room >= wanted);
    }
    if !empty.is_empty() {
        mark_emptied(pool, empty).await?;
    }
    Ok(())
}

/// Loads the earliest expiry of the chunks that remain claimable and have free vouchers.
async fn load_next_expiry(
    pool: &PgPool,
    node: &NodeIdentity,
    claims: &mut [Claim],
) -> Result<(), sqlx::Error> {
    let columns = ClaimColumns::of(claims.iter());
    let next: Vec<(i32, Option<Date>)> = sqlx::query_as(
        "SELECT n.request, n.first_expiry FROM next_claimable_expiry_v1($1, $2, $3, $4, $5, $6) AS n",
    )
    .bind(&node.name)
    .bind(columns.products)
    .bind(columns.denominations)
    .bind(columns.valid_on)
    .bind(columns.loaded)
    .bind(columns.loaded_to)
    .fetch_all(pool)
    .await?;
    for (request, day) in next {
        claims[request_index(request)?].claimed.next_expiry = Some(Expiry::from_date(day));
    }
    Ok(())
}

/// Takes the stock that is reserved for the order of a purchase, whichever node owned it before. Locks the
/// chunks in the order of their ids, as commits do.
pub(super) async fn claim_reserved(
    pool: &PgPool,
    node: &NodeIdentity,
    purchase_id: Uuid,
) -> Result<Vec<StockVoucher>, sqlx::Error> {
    let chunks = sqlx::query_as!(
        ChunkRow,
        "WITH reserved AS MATERIALIZED (
            SELECT c.chunk_id
              FROM chunks AS c
             WHERE c.reservation_id = $1
               AND c.cleared_epoch = (SELECT quarantine_epoch_v1())
               AND EXISTS (SELECT FROM nodes AS me WHERE me.node = $2 AND me.incarnation = $3)
             ORDER BY c.chunk_id
               FOR NO KEY UPDATE
         )
         UPDATE chunks AS c
            SET node = $2, incarnation = $3
          WHERE c.chunk_id = ANY (ARRAY(SELECT r.chunk_id FROM reserved AS r))
         RETURNING c.chunk_id, c.first_stock_id, c.last_stock_id",
        purchase_id,
        node.name,
        node.incarnation,
    );
    let chunks = chunks.fetch_all(pool).await?;
    let mut reserved: Vec<StockVoucher> = Vec::new();
    for free in load_free_stock(pool, &chunks).await? {
        let chunk_id = ChunkId(free.chunk_id);
        reserved.extend(free.vouchers().map(|(stock_id, expiry)| StockVoucher {
            expiry,
            stock_id,
            chunk_id,
        }));
    }
    reserved.sort_unstable();
    Ok(reserved)
}

/// Loads the free vouchers of chunks whatever their expiry, in the order of the chunks; empty chunks have no
/// row.
async fn load_free_stock(pool: &PgPool, chunks: &[ChunkRow]) -> Result<Vec<FreeStockRow>, sqlx::Error> {
    let column = |of: fn(&ChunkRow) -> i64| chunks.iter().map(of).collect::<Vec<_>>();
    sqlx::query_as("SELECT f.chunk_id, f.stock_ids, f.expiries FROM list_free_stock_v1($1, $2, $3) AS f")
        .bind(column(|chunk| chunk.chunk_id))
        .bind(column(|chunk| chunk.first_stock_id))
        .bind(column(|chunk| chunk.last_stock_id))
        .fetch_all(pool)
        .await
}

/// Excludes empty chunks from later claims. Skips chunks that a commit has locked: waiting for several locks
/// without an order could deadlock.
async fn mark_emptied(pool: &PgPool, chunks: Vec<i64>) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE chunks
            SET emptied = true
          WHERE chunk_id IN (
                SELECT c.chunk_id FROM chunks AS c WHERE c.chunk_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
                )",
        &chunks,
    )
    .execute(pool)
    .await
    .map(drop)
}

/// Finds out why the remaining stock of a SKU cannot be claimed now.
async fn find_unclaimable_stock(pool: &PgPool, claim: &Claim) -> Result<UnclaimableStock, sqlx::Error> {
    let Claim { request, loaded, .. } = claim;
    let found: Option<String> = sqlx::query_scalar!(
        "SELECT unclaimable_stock_v1($1, $2, $3, $4)",
        request.sku.product_id.as_str(),
        request.sku.denomination.minor(),
        earliest_valid_date(request),
        loaded,
    )
    .fetch_one(pool)
    .await?;
    match found.as_deref() {
        None => Ok(UnclaimableStock::None),
        Some("owned") => Ok(UnclaimableStock::OwnedByOtherNode),
        Some("reserved") => Ok(UnclaimableStock::Reserved),
        Some("quarantined") => Ok(UnclaimableStock::Quarantined),
        Some(other) => Err(sqlx::Error::Decode(
            format!("unclaimable_stock_v1 returned {other}").into(),
        )),
    }
}
