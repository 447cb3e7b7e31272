//! Progress of stock claims over their rounds, and their arrays for the SQL functions.

use time::Date;
use time::macros::date;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest, UnclaimableStock};

#[derive(sqlx::FromRow)]
pub(super) struct ChunkRow {
    pub(super) chunk_id: i64,
    pub(super) first_stock_id: i64,
    pub(super) last_stock_id: i64,
}

/// Progress of a claim over its rounds.
pub(super) struct Claim {
    pub(super) request: StockRequest,
    /// Chunks that the shelf has already, or that earlier rounds have claimed.
    pub(super) loaded: Vec<i64>,
    /// Number of vouchers still needed.
    pub(super) shortfall: usize,
    /// Whether another round may find more.
    pub(super) can_continue: bool,
    pub(super) claimed: ClaimedStock,
}

impl Claim {
    pub(super) fn of(request: StockRequest) -> Self {
        Self {
            loaded: request.loaded_chunks.iter().map(|chunk| chunk.0).collect(),
            shortfall: request.target_quantity,
            can_continue: true,
            claimed: ClaimedStock::default(),
            request,
        }
    }

    /// Whether the deployment has no stock for the request.
    pub(super) fn is_refused(&self) -> bool {
        let claimed = &self.claimed;
        claimed.chunks.is_empty()
            && claimed.next_expiry.is_none()
            && claimed.unclaimable != UnclaimableStock::OwnedByOtherNode
    }

    pub(super) fn has_satisfied_demand(&self) -> bool {
        let vouchers: usize = self.claimed.chunks.iter().map(|chunk| chunk.vouchers.len()).sum();
        self.request.demanded > 0 && vouchers >= self.request.demanded
    }
}

/// What a claim got in a round.
#[derive(Clone, Copy, Default)]
pub(super) struct ClaimTotal {
    pub(super) chunks: usize,
    /// Vouchers of the chunks, sold ones included.
    pub(super) room: usize,
}

impl ClaimTotal {
    pub(super) fn add(&mut self, chunk: &ChunkRow) {
        self.chunks += 1;
        self.room += usize::try_from(chunk.last_stock_id - chunk.first_stock_id + 1).unwrap_or_default();
    }
}

/// Claims as arrays for the SQL functions. `loaded` concatenates the loaded chunks of all claims; `loaded_to`
/// holds their ends.
#[derive(Default)]
pub(super) struct ClaimColumns<'a> {
    pub(super) products: Vec<&'a str>,
    pub(super) denominations: Vec<i64>,
    pub(super) valid_on: Vec<Date>,
    pub(super) loaded: Vec<i64>,
    pub(super) loaded_to: Vec<i32>,
}

impl<'a> ClaimColumns<'a> {
    pub(super) fn of(claims: impl Iterator<Item = &'a Claim>) -> Self {
        let mut columns = Self::default();
        for Claim { request, loaded, .. } in claims {
            columns.products.push(request.sku.product_id.as_str());
            columns.denominations.push(request.sku.denomination.minor());
            columns.valid_on.push(earliest_valid_date(request));
            columns.loaded.extend(loaded);
            columns
                .loaded_to
                .push(i32::try_from(columns.loaded.len()).unwrap_or(i32::MAX));
        }
        columns
    }
}

/// The first usable day; year 1 if the request excludes nothing.
pub(super) fn earliest_valid_date(request: &StockRequest) -> Date {
    request.not_before.date().unwrap_or(date!(0001 - 01 - 01))
}
