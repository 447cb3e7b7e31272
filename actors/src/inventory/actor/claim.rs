//! Where an inventory actor stands with the store: what it has asked for, and what the last answer was worth. Pure.
//!
//! ```text
//! Never ──► UnderWay ──► Answered | Exhausted ──► UnderWay ──► …
//!   ▲          │ nobody waits for it, and the store does not answer
//!   └──────────┘ (Answered, where it answered before)
//! ```

use crate::domain::stock::Elsewhere;

/// The last claim of stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// None was answered: nothing is known of the SKU, and nothing is decided.
    Never,
    /// One is under way, or about to be tried again.
    UnderWay {
        /// None was answered before it.
        first: bool,
    },
    /// It brought vouchers, or was given up. What other nodes have is not known.
    Answered,
    /// It brought nothing: all that this node can have of the SKU is here.
    Exhausted(Elsewhere),
}

impl Claim {
    /// Whether the shelf is what the store said.
    pub(super) const fn knows_shelf(self) -> bool {
        !matches!(self, Self::Never | Self::UnderWay { first: true })
    }

    /// One begins, if none is under way.
    pub(super) const fn begin(&mut self) -> bool {
        if matches!(self, Self::UnderWay { .. }) {
            return false;
        }
        *self = Self::UnderWay {
            first: !self.knows_shelf(),
        };
        true
    }

    /// The one under way is not tried again.
    pub(super) const fn give_up(&mut self) {
        *self = if self.knows_shelf() {
            Self::Answered
        } else {
            Self::Never
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_is_under_way_at_a_time_and_nothing_is_known_before_the_first_answer() {
        let exhausted = Claim::Exhausted(Elsewhere::Owned);
        // Before; whether the shelf is known; whether one may begin, what it is then, and what it is once given up.
        let table = [
            (
                Claim::Never,
                false,
                true,
                Claim::UnderWay { first: true },
                Claim::Never,
            ),
            (
                Claim::Answered,
                true,
                true,
                Claim::UnderWay { first: false },
                Claim::Answered,
            ),
            (
                exhausted,
                true,
                true,
                Claim::UnderWay { first: false },
                Claim::Answered,
            ),
            (
                Claim::UnderWay { first: true },
                false,
                false,
                Claim::UnderWay { first: true },
                Claim::Never,
            ),
        ];
        for (before, knows, begins, under_way, given_up) in table {
            let mut claim = before;
            assert_eq!(
                (claim.knows_shelf(), claim.begin()),
                (knows, begins),
                "{before:?}"
            );
            assert_eq!((claim, claim.knows_shelf()), (under_way, knows), "{before:?}");
            claim.give_up();
            assert_eq!(claim, given_up, "{before:?}");
        }
    }
}
