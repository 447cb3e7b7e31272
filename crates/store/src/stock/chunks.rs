//! Split of new stock rows into chunks: at most 500 rows each, with consecutive ids.
//!
//! Chunks are looked up by their range of stock ids, so ranges must not overlap. A small import makes small
//! chunks: nodes own stock by the chunk, and several nodes can then sell it at once.

use vouchsafe_domain::stock::CHUNK_VOUCHERS;
use vouchsafe_domain::voucher::Expiry;

/// Chunks into which an import of up to 10,000 vouchers is split: enough for each node of a deployment.
const CHUNKS_PER_IMPORT: usize = 20;

/// Minimum length of a full chunk. A commit locks each chunk that it sells from.
const MIN_CHUNK_VOUCHERS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkRange {
    pub(super) first_stock_id: i64,
    pub(super) last_stock_id: i64,
    pub(super) first_expiry: Expiry,
    pub(super) last_expiry: Expiry,
}

impl ChunkRange {
    /// Number of vouchers; the ids have no gap.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.last_stock_id - self.first_stock_id + 1).unwrap_or_default()
    }

    fn accepts(&self, stock_id: i64, max_length: usize) -> bool {
        stock_id == self.last_stock_id + 1 && self.len() < max_length
    }
}

/// Splits vouchers, sorted by id and by expiry, into chunks.
pub(super) fn split_into_chunks(stock_ids: &[i64], expiries: &[Expiry]) -> Vec<ChunkRange> {
    let max_length = stock_ids
        .len()
        .div_ceil(CHUNKS_PER_IMPORT)
        .clamp(MIN_CHUNK_VOUCHERS, CHUNK_VOUCHERS);
    let mut pieces: Vec<ChunkRange> = Vec::new();
    for (&stock_id, &expiry) in stock_ids.iter().zip(expiries) {
        match pieces
            .last_mut()
            .filter(|piece| piece.accepts(stock_id, max_length))
        {
            Some(piece) => {
                piece.last_stock_id = stock_id;
                piece.last_expiry = expiry;
            }
            None => pieces.push(ChunkRange {
                first_stock_id: stock_id,
                last_stock_id: stock_id,
                first_expiry: expiry,
                last_expiry: expiry,
            }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    fn lengths(stock_ids: &[i64]) -> Vec<usize> {
        let expiries = vec![Expiry::NEVER; stock_ids.len()];
        split_into_chunks(stock_ids, &expiries)
            .iter()
            .map(ChunkRange::len)
            .collect()
    }

    #[test]
    fn chunk_has_at_most_500_consecutive_ids() {
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        let large: Vec<i64> = (7..=20_206).collect();
        assert_eq!(lengths(&large), [vec![500; 40], vec![200]].concat());
    }

    #[test]
    fn small_import_is_split_into_small_chunks() {
        assert_eq!(lengths(&(1..=40).collect::<Vec<_>>()), [16, 16, 8]);
        assert_eq!(lengths(&(1..=1_000).collect::<Vec<_>>()), [50; 20]);
        assert_eq!(
            lengths(&(1..=9_999).collect::<Vec<_>>()).len(),
            20,
            "without a remainder"
        );
    }

    #[test]
    fn gap_between_ids_starts_a_new_chunk() {
        assert_eq!(lengths(&[1, 2, 3, 5, 6, 9]), [3, 2, 1]);
    }

    #[test]
    fn chunk_has_first_and_last_expiry() {
        let early = Expiry::on(date!(2027 - 01 - 01));
        let pieces = split_into_chunks(
            &[1, 2, 3],
            &[early, Expiry::on(date!(2027 - 06 - 01)), Expiry::NEVER],
        );
        assert_eq!(
            (pieces[0].first_expiry, pieces[0].last_expiry),
            (early, Expiry::NEVER)
        );
    }
}
