//! Orders that the service acknowledged during a run: totals, voucher ids and sampled orders, a few bytes per
//! order. Input of the audit.

use std::collections::BTreeMap;

use bytes::Bytes;
use rust_decimal::Decimal;
use vouchsafe_api_client::wire::{OrderView, order_number, voucher_number};
use vouchsafe_api_client::{ApiResponse, RequestFailure};

/// An order whose outcome is unknown.
#[derive(Clone, Debug)]
pub struct Unsettled {
    pub partner: usize,
    pub key: String,
    pub body: Bytes,
}

/// An acknowledged order with request and response, to read back and replay.
#[derive(Clone, Debug)]
pub struct Sample {
    pub partner: usize,
    pub key: String,
    pub request: Bytes,
    pub status: u16,
    pub response: Bytes,
}

/// Acknowledged orders of one partner.
#[derive(Clone, Debug, Default)]
pub struct PartnerAcknowledgements {
    pub totals: BTreeMap<String, Decimal>,
    /// 16-byte order ids; omits malformed ids.
    pub orders: Vec<u128>,
}

impl PartnerAcknowledgements {
    fn add(&mut self, currency: &str, total: Decimal) {
        match self.totals.get_mut(currency) {
            Some(sum) => *sum += total,
            // Allocates the key once per currency instead of once per order.
            None => drop(self.totals.insert(currency.to_owned(), total)),
        }
    }
}

/// Acknowledged orders and unsettled ones of all partners.
#[derive(Debug)]
pub struct Acknowledgements {
    pub orders: u64,
    /// Indexed by partner; partners at the end without orders may be missing.
    pub partners: Vec<PartnerAcknowledgements>,
    /// 16-byte ids of all acknowledged vouchers, in order of arrival.
    pub vouchers: Vec<u128>,
    /// 2xx responses that violate the API contract.
    pub malformed: u64,
    pub first_malformed: Option<Bytes>,
    pub unsettled: Vec<Unsettled>,
    samples: SystematicSampler,
}

impl Acknowledgements {
    /// Keeps at most `samples` orders with request and response.
    #[must_use]
    pub fn new(samples: usize) -> Self {
        Self {
            orders: 0,
            partners: Vec::new(),
            vouchers: Vec::new(),
            malformed: 0,
            first_malformed: None,
            unsettled: Vec::new(),
            samples: SystematicSampler {
                capacity: samples,
                stride: 1,
                offered: 0,
                samples: Vec::new(),
            },
        }
    }

    /// Records an order with its outcome; returns the number of vouchers if it was acknowledged. An order
    /// without a response, or with a 5xx, is unsettled.
    pub(crate) fn record_outcome(
        &mut self,
        partner: usize,
        key: &str,
        body: &Bytes,
        outcome: &Result<ApiResponse, RequestFailure>,
    ) -> Option<u64> {
        match outcome {
            Ok(response) if response.status.is_success() => {
                let status = response.status.as_u16();
                return Some(self.record(partner, key, body, status, &response.body));
            }
            Ok(response) if !response.status.is_server_error() => {}
            Err(RequestFailure::NotSent(_)) => {}
            Ok(_) | Err(RequestFailure::Unknown(_)) => self.unsettled.push(Unsettled {
                partner,
                key: key.to_owned(),
                body: body.clone(),
            }),
        }
        None
    }

    /// Records a 2xx response to an order of a partner. Returns the number of its vouchers.
    pub fn record(
        &mut self,
        partner: usize,
        key: &str,
        request: &Bytes,
        status: u16,
        response: &Bytes,
    ) -> u64 {
        self.orders += 1;
        let before = self.vouchers.len();
        if self.record_order(partner, response).is_none() {
            self.malformed += 1;
            self.first_malformed.get_or_insert_with(|| response.clone());
        }
        self.samples.offer(|| Sample {
            partner,
            key: key.to_owned(),
            request: request.clone(),
            status,
            // The body may be a slice of the connection's whole read buffer; the copy frees that buffer.
            response: Bytes::copy_from_slice(response),
        });
        (self.vouchers.len() - before) as u64
    }

    fn record_order(&mut self, partner: usize, response: &[u8]) -> Option<()> {
        let order = OrderView::parse(response).ok()?;
        let total = order.total().ok()?;
        let acknowledgements = self.partner_mut(partner);
        acknowledgements.add(order.currency, total);
        acknowledgements.orders.extend(order_number(order.order_id));
        for voucher in &order.vouchers {
            self.vouchers.push(voucher_number(voucher.voucher_id)?);
        }
        Some(())
    }

    fn partner_mut(&mut self, partner: usize) -> &mut PartnerAcknowledgements {
        if self.partners.len() <= partner {
            self.partners
                .resize_with(partner + 1, PartnerAcknowledgements::default);
        }
        &mut self.partners[partner]
    }

    /// Adds the records of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.orders += other.orders;
        for (partner, added) in other.partners.into_iter().enumerate() {
            let own = self.partner_mut(partner);
            for (currency, total) in &added.totals {
                own.add(currency, *total);
            }
            own.orders.extend(added.orders);
        }
        self.vouchers.extend(other.vouchers);
        self.malformed += other.malformed;
        self.first_malformed = self.first_malformed.take().or(other.first_malformed);
        self.unsettled.extend(other.unsettled);
        self.samples.samples.extend(other.samples.samples);
    }

    /// The sampled orders, evenly distributed over the run.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples.samples
    }
}

/// Systematic sampling: takes every n-th order and doubles n whenever the buffer is full. The samples are
/// evenly distributed over a run of unknown length without randomness.
#[derive(Debug)]
struct SystematicSampler {
    capacity: usize,
    stride: u64,
    offered: u64,
    samples: Vec<Sample>,
}

impl SystematicSampler {
    fn offer(&mut self, sample: impl FnOnce() -> Sample) {
        let due = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !due || self.capacity == 0 {
            return;
        }
        if self.samples.len() == self.capacity {
            let mut index = 0_usize;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
            // The current order may not be on the new stride.
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.samples.push(sample());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(voucher: u128, total: &str) -> Bytes {
        format!(
            r#"{{"order_id":"ord_{voucher:032x}","status":"DELIVERED","total_amount":{total},"currency":"USD",
            "vouchers":[{{"voucher_id":"vch_{voucher:032x}"}}]}}"#
        )
        .into()
    }

    #[test]
    fn merge_keeps_sums_and_ids() {
        let (mut one, mut two) = (Acknowledgements::new(4), Acknowledgements::new(4));
        one.record(0, "k1", &Bytes::new(), 201, &response(1, "25.10"));
        two.record(1, "k2", &Bytes::new(), 201, &response(2, "0.20"));
        two.record(0, "k3", &Bytes::new(), 201, &Bytes::from_static(b"{}"));
        one.merge(two);
        assert_eq!((one.orders, one.malformed), (3, 1));
        assert_eq!(one.vouchers, [1, 2]);
        let sums: Vec<_> = one
            .partners
            .iter()
            .map(|acknowledgements| acknowledgements.totals["USD"].to_string())
            .collect();
        assert_eq!(sums, ["25.10", "0.20"]);
        assert_eq!(one.partners[1].orders, [2]);
        assert_eq!(one.first_malformed.as_deref(), Some(&b"{}"[..]));
        assert_eq!(one.samples().len(), 3);
    }

    #[test]
    fn malformed_amount_or_voucher_is_counted() {
        let mut acknowledgements = Acknowledgements::new(0);
        acknowledgements.record(0, "k", &Bytes::new(), 201, &response(1, "2.5e1"));
        let text = String::from_utf8(response(1, "25.00").to_vec())
            .unwrap()
            .replace("vch_", "v_");
        acknowledgements.record(0, "k", &Bytes::new(), 201, &text.into());
        assert_eq!(
            (acknowledgements.malformed, acknowledgements.samples().len()),
            (2, 0)
        );
    }

    #[test]
    fn samples_cover_runs_of_any_length() {
        for length in [3, 10, 100, 1000] {
            let mut acknowledgements = Acknowledgements::new(10);
            for number in 0..length {
                acknowledgements.record(0, &number.to_string(), &Bytes::new(), 201, &response(number, "1"));
            }
            let keys: Vec<u128> = acknowledgements
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
