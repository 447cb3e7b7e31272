//! State of an inventory actor's stock claims. Pure.
//!
//! ```text
//! Never ──► InFlight ──► Answered | Exhausted ──► InFlight ──► …
//!   ▲          │ no request waits, and the store does not respond
//!   └──────────┘ (Answered, if a claim was answered before)
//! ```

use vouchsafe_domain::stock::UnclaimableStock;

/// The last claim of stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimState {
    /// No claim was answered: nothing is known of the SKU, and nothing is decided.
    Never,
    /// A claim is in flight or scheduled.
    InFlight {
        /// No claim was answered before.
        first: bool,
    },
    /// The last claim brought vouchers or was abandoned. The stock of other nodes is unknown.
    Answered,
    /// The last claim brought nothing: the deployment has no other stock for sale.
    Exhausted(UnclaimableStock),
}

impl ClaimState {
    /// Whether the shelf reflects the store.
    pub(super) const fn is_shelf_known(self) -> bool {
        !matches!(self, Self::Never | Self::InFlight { first: true })
    }

    /// Starts a claim unless one is in flight; returns whether it did.
    pub(super) const fn start(&mut self) -> bool {
        if matches!(self, Self::InFlight { .. }) {
            return false;
        }
        *self = Self::InFlight {
            first: !self.is_shelf_known(),
        };
        true
    }

    /// Abandons the claim in flight.
    pub(super) const fn abandon(&mut self) {
        *self = if self.is_shelf_known() {
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
    fn one_claim_is_in_flight_and_shelf_is_unknown_before_the_first_response() {
        let exhausted = ClaimState::Exhausted(UnclaimableStock::None);
        // State before; whether the shelf is known; whether a claim may start; state after the start; state
        // after it was abandoned.
        let table = [
            (
                ClaimState::Never,
                false,
                true,
                ClaimState::InFlight { first: true },
                ClaimState::Never,
            ),
            (
                ClaimState::Answered,
                true,
                true,
                ClaimState::InFlight { first: false },
                ClaimState::Answered,
            ),
            (
                exhausted,
                true,
                true,
                ClaimState::InFlight { first: false },
                ClaimState::Answered,
            ),
            (
                ClaimState::InFlight { first: true },
                false,
                false,
                ClaimState::InFlight { first: true },
                ClaimState::Never,
            ),
        ];
        for (before, is_known, can_start, in_flight, abandoned) in table {
            let mut claim = before;
            assert_eq!(
                (claim.is_shelf_known(), claim.start()),
                (is_known, can_start),
                "{before:?}"
            );
            assert_eq!(
                (claim, claim.is_shelf_known()),
                (in_flight, is_known),
                "{before:?}"
            );
            claim.abandon();
            assert_eq!(claim, abandoned, "{before:?}");
        }
    }
}
