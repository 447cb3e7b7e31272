//! What did the service acknowledge during a run? Sums, voucher ids and samples: all that the audit needs, at a few
//! bytes an order.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::money::Amount;
use crate::wire::{OrderView, order_number, voucher_number};

/// An order of which nobody knows yet whether it was executed.
#[derive(Clone, Debug)]
pub struct Unsettled {
    /// Whose it is: an index among the run's partners.
    pub partner: usize,
    pub key: String,
    pub body: Bytes,
}

/// An acknowledged order, kept whole to be read back.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Whose it is: an index among the run's partners.
    pub partner: usize,
    pub key: String,
    /// The body that was sent.
    pub request: Bytes,
    /// The status of the answer.
    pub status: u16,
    /// The bytes of the answer.
    pub response: Bytes,
}

/// What one partner was acknowledged.
#[derive(Clone, Debug, Default)]
pub struct PartnerAcknowledgements {
    /// Sum of the totals per currency.
    pub totals: BTreeMap<String, Amount>,
    /// Its orders, as the 16 bytes of their ids; those with ids of another form are left out.
    pub orders: Vec<u128>,
}

impl PartnerAcknowledgements {
    fn add(&mut self, currency: &str, total: Amount) {
        match self.totals.get_mut(currency) {
            Some(sum) => *sum += total,
            None => {
                self.totals.insert(currency.to_owned(), total);
            }
        }
    }
}

/// What was acknowledged, and what is open.
#[derive(Debug)]
pub struct Acknowledgements {
    /// Orders acknowledged with 2xx.
    pub orders: u64,
    /// What each partner ordered, in their order; those at the end may be missing if they ordered nothing.
    pub partners: Vec<PartnerAcknowledgements>,
    /// Every voucher acknowledged, in the order of arrival, as the 16 bytes of its id.
    pub vouchers: Vec<u128>,
    /// 2xx answers that are not an order of the contract.
    pub malformed: u64,
    /// The first of those answers.
    pub first_malformed: Option<Bytes>,
    /// Orders whose outcome is unknown.
    pub unsettled: Vec<Unsettled>,
    samples: Samples,
}

impl Acknowledgements {
    /// Empty books that keep at most `samples` whole orders.
    #[must_use]
    pub fn new(samples: usize) -> Self {
        Self {
            orders: 0,
            partners: Vec::new(),
            vouchers: Vec::new(),
            malformed: 0,
            first_malformed: None,
            unsettled: Vec::new(),
            samples: Samples {
                capacity: samples,
                stride: 1,
                seen: 0,
                kept: Vec::new(),
            },
        }
    }

    /// Enters a 2xx answer to an order of the partner with this index; returns how many vouchers are in it.
    pub fn record(
        &mut self,
        partner: usize,
        key: &str,
        request: &Bytes,
        status: u16,
        answer: &Bytes,
    ) -> u64 {
        self.orders += 1;
        let before = self.vouchers.len();
        if self.enter(partner, answer).is_none() {
            self.malformed += 1;
            self.first_malformed.get_or_insert_with(|| answer.clone());
        }
        self.samples.offer(|| Sample {
            partner,
            key: key.to_owned(),
            request: request.clone(),
            status,
            // A copy, because the answer may be a slice of the connection's whole read buffer.
            response: Bytes::copy_from_slice(answer),
        });
        (self.vouchers.len() - before) as u64
    }

    fn enter(&mut self, partner: usize, answer: &[u8]) -> Option<()> {
        let order = OrderView::parse(answer).ok()?;
        let total = order.total().ok()?;
        let books = self.of(partner);
        books.add(order.currency, total);
        books.orders.extend(order_number(order.order_id));
        for voucher in &order.vouchers {
            self.vouchers.push(voucher_number(voucher.voucher_id)?);
        }
        Some(())
    }

    fn of(&mut self, partner: usize) -> &mut PartnerAcknowledgements {
        if self.partners.len() <= partner {
            self.partners.resize_with(partner + 1, PartnerAcknowledgements::default);
        }
        &mut self.partners[partner]
    }

    /// Enters what another thread saw.
    pub fn merge(&mut self, other: Self) {
        self.orders += other.orders;
        for (partner, theirs) in other.partners.into_iter().enumerate() {
            let mine = self.of(partner);
            for (currency, total) in &theirs.totals {
                mine.add(currency, *total);
            }
            mine.orders.extend(theirs.orders);
        }
        self.vouchers.extend(other.vouchers);
        self.malformed += other.malformed;
        self.first_malformed = self.first_malformed.take().or(other.first_malformed);
        self.unsettled.extend(other.unsettled);
        self.samples.kept.extend(other.samples.kept);
    }

    /// The sampled orders, spread evenly over the run.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples.kept
    }
}

/// Every n-th order, with n doubling whenever there are too many: even over a run of unknown length, and without
/// chance.
#[derive(Debug)]
struct Samples {
    capacity: usize,
    stride: u64,
    seen: u64,
    kept: Vec<Sample>,
}

impl Samples {
    fn offer(&mut self, sample: impl FnOnce() -> Sample) {
        let due = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        if !due || self.capacity == 0 {
            return;
        }
        if self.kept.len() == self.capacity {
            let mut index = 0_usize;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
            // What was due at the old stride may not be at the new one.
            if !(self.seen - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.kept.push(sample());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(voucher: u128, total: &str) -> Bytes {
        format!(
            r#"{{"order_id":"ord_{voucher:032x}","status":"DELIVERED","total_amount":{total},"currency":"USD",
            "vouchers":[{{"voucher_id":"vch_{voucher:032x}"}}]}}"#
        )
        .into()
    }

    #[test]
    fn sums_and_ids_are_kept_over_threads() {
        let (mut one, mut two) = (Acknowledgements::new(4), Acknowledgements::new(4));
        one.record(0, "k1", &Bytes::new(), 201, &answer(1, "25.10"));
        two.record(1, "k2", &Bytes::new(), 201, &answer(2, "0.20"));
        two.record(0, "k3", &Bytes::new(), 201, &Bytes::from_static(b"{}"));
        one.merge(two);
        assert_eq!((one.orders, one.malformed), (3, 1));
        assert_eq!(one.vouchers, [1, 2]);
        let sums: Vec<_> = one
            .partners
            .iter()
            .map(|books| books.totals["USD"].to_string())
            .collect();
        assert_eq!(sums, ["25.10", "0.20"]);
        assert_eq!(one.partners[1].orders, [2]);
        assert_eq!(one.first_malformed.as_deref(), Some(&b"{}"[..]));
        assert_eq!(one.samples().len(), 3);
    }

    #[test]
    fn an_order_whose_amount_or_voucher_is_malformed_is_counted() {
        let mut books = Acknowledgements::new(0);
        books.record(0, "k", &Bytes::new(), 201, &answer(1, "2.5e1"));
        let text = String::from_utf8(answer(1, "25.00").to_vec())
            .unwrap()
            .replace("vch_", "v_");
        books.record(0, "k", &Bytes::new(), 201, &text.into());
        assert_eq!((books.malformed, books.samples().len()), (2, 0));
    }

    #[test]
    fn samples_are_spread_over_a_run_of_any_length() {
        for length in [3, 10, 100, 1000] {
            let mut books = Acknowledgements::new(10);
            for number in 0..length {
                books.record(0, &number.to_string(), &Bytes::new(), 201, &answer(number, "1"));
            }
            let keys: Vec<u128> = books
                .samples()
                .iter()
                .map(|sample| sample.key.parse().unwrap())
                .collect();
            assert!(
                keys.len() <= 10 && keys.len() >= usize::try_from(length.min(5)).unwrap(),
                "{keys:?}"
            );
            let step = keys.get(1).map_or(1, |second| second - keys[0]);
            assert!(keys.windows(2).all(|pair| pair[1] - pair[0] == step), "{keys:?}");
            assert!(keys.last().unwrap() + step >= length, "{keys:?}");
        }
    }
}
