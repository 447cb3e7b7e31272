//! Log of sent orders with their first stored response: source of duplicates and reads, and comparison of
//! their responses.
//!
//! Rule: a response stored under a key never changes, byte for byte, whether the order or its duplicate
//! completes first. A delivered order reads as in its response.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use uuid::Uuid;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::wire::{OrderView, order_number, without_first_reads};

use super::outcome::excerpt;

/// Refusals that the service stores under a key (contract §5).
const STORED_REFUSALS: [&str; 2] = ["INSUFFICIENT_FUNDS", "INSUFFICIENT_INVENTORY"];

#[derive(Clone, Debug)]
pub(crate) struct SentOrder {
    pub(crate) partner: usize,
    pub(crate) key: Uuid,
    pub(crate) body: Bytes,
    stored: Option<StoredDigest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredDigest {
    status: u16,
    body: u64,
    order_number: Option<u128>,
    /// `DELIVERED` at once, so reads must return the same body.
    delivered: bool,
}

/// Compared and differing responses of duplicates and reads.
#[derive(Clone, Debug, Default)]
pub struct ResponseMismatches {
    pub compared: u64,
    pub count: u64,
    pub first: Option<String>,
}

impl ResponseMismatches {
    fn compare(&mut self, is_same: bool, example: impl FnOnce() -> String) {
        self.compared += 1;
        if !is_same {
            self.count += 1;
            self.first.get_or_insert_with(example);
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.compared += other.compared;
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }
}

/// Sent orders of one thread.
#[derive(Debug, Default)]
pub(crate) struct SentLog {
    orders: Vec<SentOrder>,
    delivered: Vec<usize>,
}

impl SentLog {
    /// Adds an order that is about to be sent; returns its index.
    pub(crate) fn record_sent(&mut self, partner: usize, key: Uuid, body: Bytes) -> usize {
        self.orders.push(SentOrder {
            partner,
            key,
            body,
            stored: None,
        });
        self.orders.len() - 1
    }

    /// Adds an order of an earlier run with its response.
    pub(crate) fn insert_past(&mut self, order: SentOrder) {
        if order
            .stored
            .is_some_and(|stored| stored.delivered && stored.order_number.is_some())
        {
            self.delivered.push(self.orders.len());
        }
        self.orders.push(order);
    }

    /// All orders, in the order of sending.
    pub(crate) fn orders(&self) -> &[SentOrder] {
        &self.orders
    }

    /// Keeps the orders with a stored response.
    pub(crate) fn into_completed(self) -> Self {
        let mut completed = Self::default();
        for order in self.orders.into_iter().filter(|order| order.stored.is_some()) {
            completed.insert_past(order);
        }
        completed
    }

    /// The order at relative position `at` (0 to 1), with its index.
    pub(crate) fn pick_any(&self, at: f64) -> Option<(usize, SentOrder)> {
        let index = pick_index(self.orders.len(), at)?;
        Some((index, self.orders[index].clone()))
    }

    /// The delivered order at relative position `at`: index, partner and id.
    pub(crate) fn pick_delivered(&self, at: f64) -> Option<(usize, usize, String)> {
        let index = self.delivered[pick_index(self.delivered.len(), at)?];
        let order = &self.orders[index];
        let number = order.stored?.order_number?;
        Some((index, order.partner, format!("ord_{number:032x}")))
    }

    /// Compares a response with the first stored response under the key, or records it as the first.
    pub(crate) fn compare_or_store(
        &mut self,
        index: usize,
        response: &ApiResponse,
        mismatches: &mut ResponseMismatches,
    ) {
        let Some(stored) = stored(response) else { return };
        match self.orders[index].stored {
            Some(first) => mismatches.compare(first == stored, || {
                example("different response under the key", response)
            }),
            None => {
                self.orders[index].stored = Some(stored);
                if stored.delivered && stored.order_number.is_some() {
                    self.delivered.push(index);
                }
            }
        }
    }

    /// Compares a read with the stored response of the order.
    pub(crate) fn compare_read(
        &self,
        index: usize,
        response: &ApiResponse,
        mismatches: &mut ResponseMismatches,
    ) {
        let Some(first) = self.orders[index].stored else {
            return;
        };
        if response.status.is_success() {
            // The statuses differ (200 and 201); the bodies must be equal but for reads of codes.
            let is_same = digest(&without_first_reads(&response.body)) == first.body;
            mismatches.compare(is_same, || example("different response to a read", response));
        }
    }
}

fn pick_index(of: usize, at: f64) -> Option<usize> {
    let last = of.checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the position is from 0 to 1, and the result is bounded"
    )]
    let index = (at * of as f64) as usize;
    Some(index.min(last))
}

/// The stored part of a response; `None` if the service does not store it.
fn stored(response: &ApiResponse) -> Option<StoredDigest> {
    let status = response.status.as_u16();
    let body = digest(&response.body);
    if response.status.is_success() {
        let order = OrderView::parse(&response.body).ok();
        return Some(StoredDigest {
            status,
            body,
            order_number: order.as_ref().and_then(|order| order_number(order.order_id)),
            delivered: order.is_some_and(|order| order.status == "DELIVERED"),
        });
    }
    let code = response.error_code()?;
    STORED_REFUSALS.contains(&code.as_str()).then_some(StoredDigest {
        status,
        body,
        order_number: None,
        delivered: false,
    })
}

fn digest(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

fn example(description: &str, response: &ApiResponse) -> String {
    format!("{description}: {} {}", response.status, excerpt(response))
}

#[cfg(test)]
mod tests {
    use hyper::Response;

    use super::*;

    fn response(status: u16, body: &str) -> ApiResponse {
        let response = Response::builder()
            .status(status)
            .body(Bytes::copy_from_slice(body.as_bytes()));
        response.unwrap().into()
    }

    fn order(status: &str) -> String {
        format!(
            r#"{{"order_id":"ord_{:032x}","status":"{status}","total_amount":1,"currency":"USD","vouchers":[
                {{"voucher_id":"vch_1","first_retrieved_at":null}}]}}"#,
            5
        )
    }

    #[test]
    fn stored_response_must_not_change() {
        let mut log = SentLog::default();
        let index = log.record_sent(2, Uuid::nil(), Bytes::new());
        let mut mismatches = ResponseMismatches::default();
        for (status, body, expected) in [
            (503, "{}".to_owned(), (0, 0)),
            (
                409,
                r#"{"error":{"code":"IDEMPOTENCY_IN_PROGRESS"}}"#.to_owned(),
                (0, 0),
            ),
            (201, order("DELIVERED"), (0, 0)),
            (201, order("DELIVERED"), (1, 0)),
            (
                409,
                r#"{"error":{"code":"IDEMPOTENCY_IN_PROGRESS"}}"#.to_owned(),
                (1, 0),
            ),
            (201, order("PENDING"), (2, 1)),
            (
                409,
                r#"{"error":{"code":"INSUFFICIENT_INVENTORY"}}"#.to_owned(),
                (3, 2),
            ),
        ] {
            log.compare_or_store(index, &response(status, &body), &mut mismatches);
            assert_eq!(
                (mismatches.compared, mismatches.count),
                expected,
                "{status} {body}"
            );
        }
        assert!(mismatches.first.unwrap().contains("PENDING"));
        let id = format!("ord_{:032x}", 5);
        assert_eq!(log.pick_delivered(0.99), Some((0, 2, id)));
    }

    #[test]
    fn stored_responses_carry_over_to_later_run() {
        let (mut log, mut mismatches) = (SentLog::default(), ResponseMismatches::default());
        for partner in 0..3 {
            log.record_sent(partner, Uuid::nil(), Bytes::new());
        }
        log.compare_or_store(0, &response(201, &order("DELIVERED")), &mut mismatches);
        log.compare_or_store(2, &response(202, &order("PENDING")), &mut mismatches);
        let earlier = crate::tally::run_history::SentOrders::from_logs([log]);
        assert_eq!(earlier.count(), 2);
        let mut part = earlier.share_of_thread(0, 2);
        assert_eq!(part.orders().len(), 1);
        assert!(
            part.pick_delivered(0.0).is_some() && earlier.share_of_thread(1, 2).pick_delivered(0.0).is_none()
        );
        part.compare_or_store(0, &response(201, &order("PENDING")), &mut mismatches);
        assert_eq!((mismatches.compared, mismatches.count), (1, 1));
    }

    #[test]
    fn read_is_compared_with_response() {
        let mut log = SentLog::default();
        let index = log.record_sent(0, Uuid::nil(), Bytes::new());
        let mut mismatches = ResponseMismatches::default();
        log.compare_or_store(index, &response(201, &order("DELIVERED")), &mut mismatches);
        log.compare_read(index, &response(200, &order("DELIVERED")), &mut mismatches);
        assert_eq!((mismatches.compared, mismatches.count), (1, 0));
        let with_code_read = order("DELIVERED").replace("null", r#""2026-11-24T10:00:00Z""#);
        log.compare_read(index, &response(200, &with_code_read), &mut mismatches);
        assert_eq!((mismatches.compared, mismatches.count), (2, 0));
        log.compare_read(index, &response(200, &order("CANCELLED")), &mut mismatches);
        assert_eq!((mismatches.compared, mismatches.count), (3, 1));
    }

    #[test]
    fn pick_covers_all_positions() {
        let mut log = SentLog::default();
        assert!(log.pick_any(0.5).is_none() && log.pick_delivered(0.5).is_none());
        for number in 0..4 {
            log.record_sent(number, Uuid::nil(), Bytes::new());
        }
        let drawn: Vec<_> = [0.0, 0.25, 0.74, 1.0]
            .map(|at| log.pick_any(at).unwrap().1.partner)
            .into();
        assert_eq!(drawn, [0, 1, 2, 3]);
    }
}
