//! Ledger cursor, and the merge of several wallets into a page. Pure functions.

use std::collections::BTreeMap;
use std::collections::vec_deque::VecDeque;
use std::fmt;
use std::str::FromStr;

use super::transaction::Transaction;
use crate::money::Currency;

/// Pagination cursor: per wallet, the sequence number below which the next page continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerCursor(BTreeMap<Currency, i64>);

/// The text is not a ledger cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidLedgerCursor;

impl LedgerCursor {
    /// Currency and sequence number per wallet.
    pub fn by_wallet(&self) -> impl Iterator<Item = (String, i64)> {
        self.0
            .iter()
            .map(|(currency, next)| (currency.to_string(), *next))
    }
}

impl fmt::Display for LedgerCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (currency, next) in &self.0 {
            write!(f, "{separator}{currency}{next}")?;
            separator = " ";
        }
        Ok(())
    }
}

impl FromStr for LedgerCursor {
    type Err = InvalidLedgerCursor;

    fn from_str(text: &str) -> Result<Self, InvalidLedgerCursor> {
        let mut cursor = Self::default();
        for wallet in text.split(' ') {
            let (currency, next) = wallet.split_at_checked(3).ok_or(InvalidLedgerCursor)?;
            let currency = currency.parse().map_err(|_| InvalidLedgerCursor)?;
            let next = next
                .parse()
                .ok()
                .filter(|next| *next > 0)
                .ok_or(InvalidLedgerCursor)?;
            if cursor.0.insert(currency, next).is_some() {
                return Err(InvalidLedgerCursor);
            }
        }
        Ok(cursor)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPage {
    /// Newest first; entries of a wallet in descending sequence.
    pub entries: Vec<Transaction>,
    /// Cursor of the next page, if there is one.
    pub next: Option<LedgerCursor>,
}

impl LedgerPage {
    /// Selects the newest `limit` entries. The input has the entries of each wallet in descending sequence.
    pub fn merge_newest(entries: Vec<Transaction>, limit: usize) -> Self {
        let mut wallets: BTreeMap<Currency, VecDeque<Transaction>> = BTreeMap::new();
        for entry in entries {
            wallets.entry(entry.currency).or_default().push_back(entry);
        }
        let heads = wallets
            .iter()
            .filter_map(|(currency, wallet)| Some((*currency, wallet.front()?)));
        let mut cursor = LedgerCursor(
            heads
                .map(|(currency, head)| (currency, head.sequence + 1))
                .collect(),
        );
        let mut entries = Vec::with_capacity(limit);
        while entries.len() < limit
            && let Some(entry) = pop_newest(&mut wallets)
        {
            cursor.0.insert(entry.currency, entry.sequence);
            entries.push(entry);
        }
        let has_more = wallets.values().any(|wallet| !wallet.is_empty());
        Self {
            entries,
            next: has_more.then_some(cursor),
        }
    }
}

fn pop_newest(wallets: &mut BTreeMap<Currency, VecDeque<Transaction>>) -> Option<Transaction> {
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

    use super::*;
    use crate::ids::TransactionId;
    use crate::ledger::LedgerKind;
    use crate::money::Amount;

    fn entry(currency: &str, sequence: i64, second: i64) -> Transaction {
        let currency = currency.parse().unwrap();
        Transaction {
            transaction_id: TransactionId::generate(),
            kind: LedgerKind::TopUp,
            amount: Amount::ZERO.of(currency),
            currency,
            balance_after: Amount::ZERO.of(currency),
            sequence,
            order_id: None,
            payout_id: None,
            reference: None,
            created_at: OffsetDateTime::UNIX_EPOCH + Duration::seconds(second),
        }
    }

    /// Stands in for the database: up to `limit + 1` entries below the cursor per wallet.
    fn fetch(ledger: &[Transaction], after: Option<&LedgerCursor>, limit: usize) -> Vec<Transaction> {
        let mut wallets: BTreeMap<Currency, Vec<Transaction>> = BTreeMap::new();
        for entry in ledger.iter().rev() {
            let next = after.map_or(Some(i64::MAX), |cursor| cursor.0.get(&entry.currency).copied());
            if next.is_some_and(|next| entry.sequence < next) {
                wallets.entry(entry.currency).or_default().push(entry.clone());
            }
        }
        wallets
            .into_values()
            .flat_map(|wallet| wallet.into_iter().take(limit + 1))
            .collect()
    }

    fn labels(page: &LedgerPage) -> Vec<String> {
        let entries = page.entries.iter();
        entries
            .map(|entry| format!("{}{}", entry.currency, entry.sequence))
            .collect()
    }

    #[test]
    fn page_has_the_newest_entries_of_all_wallets() {
        let ledger = [
            entry("USD", 1, 0),
            entry("EUR", 1, 5),
            entry("USD", 2, 7),
            entry("USD", 3, 9),
        ];
        let first = LedgerPage::merge_newest(fetch(&ledger, None, 2), 2);
        assert_eq!(labels(&first), ["USD3", "USD2"]);
        let cursor = first.next.unwrap();
        assert_eq!(cursor.to_string(), "EUR2 USD2");
        let last = LedgerPage::merge_newest(fetch(&ledger, Some(&cursor), 2), 2);
        assert_eq!(
            (labels(&last), last.next),
            (vec!["EUR1".to_owned(), "USD1".to_owned()], None)
        );
    }

    #[test]
    fn entry_posted_after_the_first_page_is_left_out() {
        let mut ledger = vec![entry("EUR", 1, 0), entry("USD", 1, 1), entry("USD", 2, 2)];
        let cursor = LedgerPage::merge_newest(fetch(&ledger, None, 1), 1).next.unwrap();
        ledger.extend([entry("EUR", 2, 3), entry("USD", 3, 4), entry("JPY", 1, 5)]);
        let rest = LedgerPage::merge_newest(fetch(&ledger, Some(&cursor), 9), 9);
        assert_eq!(labels(&rest), ["USD1", "EUR1"]);
    }

    #[test]
    fn malformed_cursor_is_rejected() {
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
            assert_eq!(text.parse::<LedgerCursor>(), Err(InvalidLedgerCursor), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn pagination_returns_each_entry_once_and_each_wallet_in_order(
            posted in proptest::collection::vec((0..3_usize, -3..20_i64), 0..60),
            limit in 1..8_usize,
        ) {
            // Clocks advance, and sometimes jump back.
            let (mut numbers, mut second) = ([0_i64; 3], 0);
            let ledger: Vec<_> = posted.iter().map(|(wallet, step)| {
                numbers[*wallet] += 1;
                second += step;
                entry(["EUR", "JPY", "USD"][*wallet], numbers[*wallet], second)
            }).collect();
            let (mut read, mut after) = (Vec::new(), None);
            loop {
                let page = LedgerPage::merge_newest(fetch(&ledger, after.as_ref(), limit), limit);
                prop_assert!(page.entries.len() <= limit);
                read.extend(page.entries);
                let Some(next) = page.next else { break };
                prop_assert_eq!(next.to_string().parse(), Ok(next.clone()));
                after = Some(next);
            }
            prop_assert_eq!(read.len(), ledger.len());
            for (currency, count) in ["EUR", "JPY", "USD"].iter().zip(numbers) {
                let of_wallet = read.iter().filter(|entry| entry.currency.as_str() == *currency);
                let sequences: Vec<_> = of_wallet.map(|entry| entry.sequence).collect();
                prop_assert_eq!(sequences, (1..=count).rev().collect::<Vec<_>>());
            }
            if posted.iter().all(|(_, step)| *step >= 0) {
                prop_assert!(read.is_sorted_by(|newer, older| newer.created_at >= older.created_at));
            }
        }

        #[test]
        fn parsed_cursor_round_trips(text in "([A-Z]{3}[0-9]{1,20} ?){0,3}|\\PC{0,20}") {
            if let Ok(cursor) = text.parse::<LedgerCursor>() {
                prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        }
    }
}
