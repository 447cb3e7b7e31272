//! Where a walk through a partner's ledger stands: the newest entries of several wallets, put together.
//!
//! Pure: entries in, page out.

use std::collections::BTreeMap;
use std::collections::vec_deque::VecDeque;
use std::fmt;
use std::str::FromStr;

use vouchsafe_actors::domain::money::Currency;

use super::Transaction;

/// Up to which number each wallet was walked, from the newest entry down: the walk goes on below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerPlace(BTreeMap<Currency, i64>);

/// A text is no place in a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

impl LedgerPlace {
    /// Currencies, and the number below which the walk goes on.
    pub(super) fn by_wallet(&self) -> impl Iterator<Item = (String, i64)> {
        self.0
            .iter()
            .map(|(currency, next)| (currency.to_string(), *next))
    }
}

impl fmt::Display for LedgerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut joint = "";
        for (currency, next) in &self.0 {
            write!(f, "{joint}{currency}{next}")?;
            joint = " ";
        }
        Ok(())
    }
}

impl FromStr for LedgerPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let mut place = Self::default();
        for wallet in text.split(' ') {
            let (currency, next) = wallet.split_at_checked(3).ok_or(NoPlace)?;
            let currency = currency.parse().map_err(|_| NoPlace)?;
            let next = next.parse().ok().filter(|next| *next > 0).ok_or(NoPlace)?;
            if place.0.insert(currency, next).is_some() {
                return Err(NoPlace);
            }
        }
        Ok(place)
    }
}

/// A page of ledger entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPage {
    /// The entries, newest first; those of a wallet by their numbers.
    pub entries: Vec<Transaction>,
    /// Where the next page begins; `None` where there is none.
    pub next: Option<LedgerPlace>,
}

impl LedgerPage {
    /// The newest of these entries, of which those of a wallet come with the greatest number first.
    pub(super) fn newest(entries: Vec<Transaction>, limit: usize) -> Self {
        let mut wallets: BTreeMap<Currency, VecDeque<Transaction>> = BTreeMap::new();
        for entry in entries {
            wallets.entry(entry.currency).or_default().push_back(entry);
        }
        let heads = wallets
            .iter()
            .filter_map(|(currency, wallet)| Some((*currency, wallet.front()?)));
        let mut place = LedgerPlace(
            heads
                .map(|(currency, head)| (currency, head.sequence + 1))
                .collect(),
        );
        let mut entries = Vec::with_capacity(limit);
        while entries.len() < limit
            && let Some(entry) = take_newest(&mut wallets)
        {
            place.0.insert(entry.currency, entry.sequence);
            entries.push(entry);
        }
        let has_more = wallets.values().any(|wallet| !wallet.is_empty());
        Self {
            entries,
            next: has_more.then_some(place),
        }
    }
}

fn take_newest(wallets: &mut BTreeMap<Currency, VecDeque<Transaction>>) -> Option<Transaction> {
    let newest = wallets
        .values_mut()
        .filter(|wallet| !wallet.is_empty())
        .max_by_key(|wallet| wallet.front().map(|head| head.created_at));
    newest?.pop_front()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::{Duration, OffsetDateTime};
    use vouchsafe_actors::domain::ids::TransactionId;
    use vouchsafe_actors::domain::ledger::LedgerKind;
    use vouchsafe_actors::domain::money::Amount;

    use super::*;

    fn entry(currency: &str, sequence: i64, second: i64) -> Transaction {
        Transaction {
            transaction_id: TransactionId::generate(),
            kind: LedgerKind::TopUp,
            amount: Amount::ZERO,
            currency: currency.parse().unwrap(),
            balance_after: Amount::ZERO,
            sequence,
            order_id: None,
            payout_id: None,
            reference: None,
            created_at: OffsetDateTime::UNIX_EPOCH + Duration::seconds(second),
        }
    }

    /// What the database gives: of each wallet the entries below the place, so many.
    fn fetch(ledger: &[Transaction], after: Option<&LedgerPlace>, limit: usize) -> Vec<Transaction> {
        let mut wallets: BTreeMap<Currency, Vec<Transaction>> = BTreeMap::new();
        for entry in ledger.iter().rev() {
            let next = after.map_or(Some(i64::MAX), |place| place.0.get(&entry.currency).copied());
            if next.is_some_and(|next| entry.sequence < next) {
                wallets.entry(entry.currency).or_default().push(entry.clone());
            }
        }
        wallets
            .into_values()
            .flat_map(|wallet| wallet.into_iter().take(limit + 1))
            .collect()
    }

    fn told(page: &LedgerPage) -> Vec<String> {
        let entries = page.entries.iter();
        entries
            .map(|entry| format!("{}{}", entry.currency, entry.sequence))
            .collect()
    }

    #[test]
    fn the_newest_of_all_wallets_are_the_page() {
        let ledger = [
            entry("USD", 1, 0),
            entry("EUR", 1, 5),
            entry("USD", 2, 7),
            entry("USD", 3, 9),
        ];
        let first = LedgerPage::newest(fetch(&ledger, None, 2), 2);
        assert_eq!(told(&first), ["USD3", "USD2"]);
        let place = first.next.unwrap();
        assert_eq!(place.to_string(), "EUR2 USD2");
        let last = LedgerPage::newest(fetch(&ledger, Some(&place), 2), 2);
        assert_eq!(
            (told(&last), last.next),
            (vec!["EUR1".to_owned(), "USD1".to_owned()], None)
        );
    }

    #[test]
    fn what_is_booked_later_is_not_in_a_walk_that_began() {
        let mut ledger = vec![entry("EUR", 1, 0), entry("USD", 1, 1), entry("USD", 2, 2)];
        let place = LedgerPage::newest(fetch(&ledger, None, 1), 1).next.unwrap();
        ledger.extend([entry("EUR", 2, 3), entry("USD", 3, 4), entry("JPY", 1, 5)]);
        let rest = LedgerPage::newest(fetch(&ledger, Some(&place), 9), 9);
        assert_eq!(told(&rest), ["USD1", "EUR1"]);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "",
            " ",
            "USD",
            "USDx",
            "usd1",
            "USD0",
            "USD-1",
            "USD1 USD2",
            "USD1  EUR1",
            "USD1 ",
            "ÄÖ1",
        ] {
            assert_eq!(text.parse::<LedgerPlace>(), Err(NoPlace), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_walk_gives_every_entry_once_and_each_wallet_in_its_order(
            booked in proptest::collection::vec((0..3_usize, -3..20_i64), 0..60),
            limit in 1..8_usize,
        ) {
            // Clocks run on, and back now and then.
            let (mut numbers, mut second) = ([0_i64; 3], 0);
            let ledger: Vec<_> = booked.iter().map(|(wallet, step)| {
                numbers[*wallet] += 1;
                second += step;
                entry(["EUR", "JPY", "USD"][*wallet], numbers[*wallet], second)
            }).collect();
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = LedgerPage::newest(fetch(&ledger, after.as_ref(), limit), limit);
                prop_assert!(page.entries.len() <= limit);
                seen.extend(page.entries);
                let Some(next) = page.next else { break };
                prop_assert_eq!(next.to_string().parse(), Ok(next.clone()));
                after = Some(next);
            }
            prop_assert_eq!(seen.len(), ledger.len());
            for (currency, count) in ["EUR", "JPY", "USD"].iter().zip(numbers) {
                let of_wallet = seen.iter().filter(|entry| entry.currency.as_str() == *currency);
                let walked: Vec<_> = of_wallet.map(|entry| entry.sequence).collect();
                prop_assert_eq!(walked, (1..=count).rev().collect::<Vec<_>>());
            }
            if booked.iter().all(|(_, step)| *step >= 0) {
                prop_assert!(seen.is_sorted_by(|newer, older| newer.created_at >= older.created_at));
            }
        }

        #[test]
        fn any_text_is_a_place_or_none(text in "([A-Z]{3}[0-9]{1,20} ?){0,3}|\\PC{0,20}") {
            if let Ok(place) = text.parse::<LedgerPlace>() {
                prop_assert_eq!(place.to_string().parse(), Ok(place));
            }
        }
    }
}
