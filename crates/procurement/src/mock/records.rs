//! Sales records of the mock vendor: every purchase, with drifts that the product selects.
//!
//! | Product | Record | Drift |
//! |---|---|---|
//! | `sbx-vendor-timeout` | twice the face value | `DIFFERS` |
//! | `sbx-slow` | none for the first voucher of a purchase | `MISSING` |
//! | `sbx-partial` | also the vouchers that were not delivered | `UNKNOWN` |
//! | any other | as sold | |

use std::collections::VecDeque;

use time::{Date, OffsetDateTime};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::purchase::BuyRequest;
use vouchsafe_domain::reconciliation::day::midnight;
use vouchsafe_store::Purchases;
use vouchsafe_store::StoreError;

use super::{MockBehavior, SLOW_DELAY, voucher_reference};
use crate::{VendorFailure, VendorRecord};

/// Purchases per page, each of at most 1,000 vouchers.
const PAGE_PURCHASES: usize = 100;

/// The records of a day, derived from our purchases: the mock stores none.
pub struct MockRecords {
    pub purchases: Purchases,
    pub vendor: String,
    pub day: Date,
    /// Later sales have not taken place.
    pub now: OffsetDateTime,
    last: Option<BuyRequest>,
    page: VecDeque<VendorRecord>,
}

/// Why the records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MockRecordsError {
    #[error(transparent)]
    Database(#[from] StoreError),
    #[error(transparent)]
    Record(#[from] VendorFailure),
}

impl MockRecords {
    #[must_use]
    pub const fn new(purchases: Purchases, vendor: String, day: Date, now: OffsetDateTime) -> Self {
        Self {
            purchases,
            vendor,
            day,
            now,
            last: None,
            page: VecDeque::new(),
        }
    }

    /// The next record; `None` after the last one.
    ///
    /// # Errors
    /// [`MockRecordsError`] when the database does not answer.
    pub async fn next(&mut self) -> Result<Option<VendorRecord>, MockRecordsError> {
        loop {
            if let Some(record) = self.page.pop_front() {
                return Ok(Some(record));
            }
            let begin = midnight(self.day);
            let after = self.last.as_ref().map(|last| (last.requested_at, last.key.0));
            let requests = self.purchases.list_sent(
                self.vendor.clone(),
                begin - SLOW_DELAY,
                begin.saturating_add(time::Duration::DAY),
                after,
                PAGE_PURCHASES,
            );
            let requests = requests.await?;
            let Some(last) = requests.last() else {
                return Ok(None);
            };
            self.last = Some(last.clone());
            for request in &requests {
                let records = records_of(request)?.into_iter();
                self.page.extend(
                    records.filter(|record| record.sold_at.date() == self.day && record.sold_at <= self.now),
                );
            }
        }
    }
}

/// The records of a purchase.
fn records_of(request: &BuyRequest) -> Result<Vec<VendorRecord>, VendorFailure> {
    let behavior = MockBehavior::of(request.product_id.as_str());
    let numbers = match behavior {
        MockBehavior::NeverSold => 0..0,
        MockBehavior::Half if request.quantity < 2 => 0..0,
        MockBehavior::Delayed(SLOW_DELAY) => 1..request.quantity,
        MockBehavior::Half | MockBehavior::Delayed(_) | MockBehavior::ResponseLost => 0..request.quantity,
    };
    let mut denomination = request.denomination;
    if behavior == MockBehavior::ResponseLost {
        denomination.amount = Amount::from_minor(denomination.amount.minor().saturating_mul(2));
    }
    let record = |number| {
        Ok(VendorRecord {
            reference: voucher_reference(request, number)?,
            key: request.key,
            product_id: request.product_id.clone(),
            denomination,
            sold_at: request.requested_at + behavior.delay(),
        })
    };
    numbers.map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn product_selects_the_drift() {
        for (product_id, quantity, numbers, minor) in [
            ("sbx-pending", 3, vec![0, 1, 2], 2_500),
            ("sbx-vendor-timeout", 2, vec![0, 1], 5_000),
            ("sbx-slow", 3, vec![1, 2], 2_500),
            ("sbx-slow", 1, vec![], 0),
            ("sbx-partial", 3, vec![0, 1, 2], 2_500),
            ("sbx-partial", 1, vec![], 0),
            ("sbx-vendor-fails", 4, vec![], 0),
        ] {
            let request = request(product_id, quantity);
            let records = records_of(&request).unwrap();
            let expected: Vec<_> = numbers
                .into_iter()
                .map(|number| voucher_reference(&request, number).unwrap())
                .collect();
            let found: Vec<_> = records.iter().map(|record| record.reference.clone()).collect();
            assert_eq!(found, expected, "{product_id}");
            assert!(
                records
                    .iter()
                    .all(|record| record.denomination.amount.minor() == minor),
                "{product_id}"
            );
        }
    }
}
