//! Where are new vouchers cut into chunks? After 500, and wherever their ids are no neighbours.
//!
//! Rule: a chunk is found by the range of its stock ids, so no id of another chunk may lie within it.

use vouchsafe_actors::domain::stock::CHUNK_VOUCHERS;
use vouchsafe_actors::domain::voucher::Expiry;

/// A chunk to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first_stock_id: i64,
    pub(super) last_stock_id: i64,
    pub(super) first_expiry: Expiry,
    pub(super) last_expiry: Expiry,
}

impl Piece {
    /// How many vouchers it holds: its ids have no gap.
    pub(super) fn length(&self) -> usize {
        usize::try_from(self.last_stock_id - self.first_stock_id + 1).unwrap_or_default()
    }

    fn takes(&self, stock_id: i64) -> bool {
        stock_id == self.last_stock_id + 1 && self.length() < CHUNK_VOUCHERS
    }
}

/// Cuts vouchers, in the order of their ids and of their expiry, into chunks.
pub(super) fn cut(stock_ids: &[i64], expiries: &[Expiry]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (&stock_id, &expiry) in stock_ids.iter().zip(expiries) {
        match pieces.last_mut().filter(|piece| piece.takes(stock_id)) {
            Some(piece) => {
                piece.last_stock_id = stock_id;
                piece.last_expiry = expiry;
            }
            None => pieces.push(Piece {
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
        cut(stock_ids, &expiries).iter().map(Piece::length).collect()
    }

    #[test]
    fn a_chunk_has_500_neighbours_at_most() {
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        assert_eq!(lengths(&(1..=500).collect::<Vec<_>>()), [500]);
        assert_eq!(lengths(&(7..=1_207).collect::<Vec<_>>()), [500, 500, 201]);
    }

    #[test]
    fn a_gap_between_ids_ends_a_chunk() {
        assert_eq!(lengths(&[1, 2, 3, 5, 6, 9]), [3, 2, 1]);
    }

    #[test]
    fn a_chunk_knows_what_expires_first_and_last() {
        let early = Expiry::on(date!(2027 - 01 - 01));
        let pieces = cut(
            &[1, 2, 3],
            &[early, Expiry::on(date!(2027 - 06 - 01)), Expiry::NEVER],
        );
        assert_eq!(
            (pieces[0].first_expiry, pieces[0].last_expiry),
            (early, Expiry::NEVER)
        );
    }
}
