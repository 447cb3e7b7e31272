//! Which orders were sent, and what was answered under their keys? What duplicates and reads are drawn from, and the rule
//! that they are held to.
//!
//! Rule: whatever is kept under a key is answered the same, byte for byte, whoever asks first: the order or its duplicate.
//! A delivered order reads as it was answered.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use uuid::Uuid;

use crate::client::ApiResponse;
use crate::wire::{OrderView, order_number};

/// Bytes of a broken answer that are shown.
const MAX_EXAMPLE_BYTES: usize = 300;

/// Refusals that are kept under a key (contract §5).
const KEPT_REFUSALS: [&str; 2] = ["INSUFFICIENT_FUNDS", "INSUFFICIENT_INVENTORY"];

/// An order that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentOrder {
    pub(crate) partner: usize,
    pub(crate) key: Uuid,
    pub(crate) body: Bytes,
    /// What was answered first, of what is kept.
    kept: Option<Kept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    status: u16,
    /// A digest of the body.
    body: u64,
    order_number: Option<u128>,
    /// DELIVERED at once, so that it reads as it was answered.
    delivered: bool,
}

/// How often duplicates and reads were not as they had to be.
#[derive(Clone, Debug, Default)]
pub struct ResponseMismatches {
    /// Answers that were compared.
    pub compared: u64,
    pub count: u64,
    /// The first of them.
    pub first: Option<String>,
}

impl ResponseMismatches {
    fn compare(&mut self, same: bool, example: impl FnOnce() -> String) {
        self.compared += 1;
        if !same {
            self.count += 1;
            self.first.get_or_insert_with(example);
        }
    }

    /// Adds what another thread saw.
    pub fn merge(&mut self, other: Self) {
        self.compared += other.compared;
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }
}

/// The orders of one thread.
#[derive(Debug, Default)]
pub(crate) struct SentLog {
    orders: Vec<SentOrder>,
    /// Indexes of those with vouchers to read.
    delivered: Vec<usize>,
}

impl SentLog {
    /// Enters an order that leaves now; returns its index.
    pub(crate) fn record_sent(&mut self, partner: usize, key: Uuid, body: Bytes) -> usize {
        self.orders.push(SentOrder {
            partner,
            key,
            body,
            kept: None,
        });
        self.orders.len() - 1
    }

    /// Enters an order from before, with what was answered to it.
    pub(crate) fn insert_past(&mut self, order: SentOrder) {
        if order
            .kept
            .is_some_and(|kept| kept.delivered && kept.order_number.is_some())
        {
            self.delivered.push(self.orders.len());
        }
        self.orders.push(order);
    }

    /// All of them, in the order in which they were sent.
    pub(crate) fn orders(&self) -> &[SentOrder] {
        &self.orders
    }

    /// Those whose answer is kept under their keys.
    pub(crate) fn into_answered(self) -> Self {
        let mut answered = Self::default();
        for order in self.orders.into_iter().filter(|order| order.kept.is_some()) {
            answered.insert_past(order);
        }
        answered
    }

    /// The order at this share of all that were sent, with its index.
    pub(crate) fn pick_any(&self, at: f64) -> Option<(usize, SentOrder)> {
        let index = pick(self.orders.len(), at)?;
        Some((index, self.orders[index].clone()))
    }

    /// A delivered order at this share of them: index, partner and id.
    pub(crate) fn delivered(&self, at: f64) -> Option<(usize, usize, String)> {
        let index = self.delivered[pick(self.delivered.len(), at)?];
        let order = &self.orders[index];
        let number = order.kept?.order_number?;
        Some((index, order.partner, format!("ord_{number:032x}")))
    }

    /// Compares an answer under the key of an order with what was answered under it before, or keeps it.
    pub(crate) fn answered(&mut self, index: usize, answer: &ApiResponse, broken: &mut ResponseMismatches) {
        let Some(kept) = kept(answer) else { return };
        match self.orders[index].kept {
            Some(first) => broken.compare(first == kept, || example("under its key, otherwise", answer)),
            None => {
                self.orders[index].kept = Some(kept);
                if kept.delivered && kept.order_number.is_some() {
                    self.delivered.push(index);
                }
            }
        }
    }

    /// Compares what an order reads as with what was answered to it.
    pub(crate) fn read(&self, index: usize, answer: &ApiResponse, broken: &mut ResponseMismatches) {
        let Some(first) = self.orders[index].kept else {
            return;
        };
        if answer.status.is_success() {
            // A read is answered 200 and the order 201: the body alone is the same.
            let same = digest(&answer.body) == first.body;
            broken.compare(same, || example("read, otherwise", answer));
        }
    }
}

fn pick(of: usize, at: f64) -> Option<usize> {
    let last = of.checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share is from 0 to 1, and the result is bounded"
    )]
    let index = (at * of as f64) as usize;
    Some(index.min(last))
}

/// What of an answer is kept under the key; `None` of what is not.
fn kept(answer: &ApiResponse) -> Option<Kept> {
    let status = answer.status.as_u16();
    let body = digest(&answer.body);
    if answer.status.is_success() {
        let order = OrderView::parse(&answer.body).ok();
        return Some(Kept {
            status,
            body,
            order_number: order.as_ref().and_then(|order| order_number(order.order_id)),
            delivered: order.is_some_and(|order| order.status == "DELIVERED"),
        });
    }
    let code = answer.error_code()?;
    KEPT_REFUSALS.contains(&code.as_str()).then_some(Kept {
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

fn example(what: &str, answer: &ApiResponse) -> String {
    let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(MAX_EXAMPLE_BYTES)]).into_owned();
    format!("{what}: {} {text}", answer.status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::{HeaderMap, StatusCode};

    fn answer(status: u16, body: &str) -> ApiResponse {
        ApiResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn order(status: &str) -> String {
        format!(
            r#"{{"order_id":"ord_{:032x}","status":"{status}","total_amount":1,"currency":"USD","vouchers":[]}}"#,
            5
        )
    }

    #[test]
    fn whoever_is_answered_first_the_other_must_be_answered_the_same() {
        let mut log = SentLog::default();
        let index = log.record_sent(2, Uuid::nil(), Bytes::new());
        let mut broken = ResponseMismatches::default();
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
            log.answered(index, &answer(status, &body), &mut broken);
            assert_eq!((broken.compared, broken.count), expected, "{status} {body}");
        }
        assert!(broken.first.unwrap().contains("PENDING"));
        let id = format!("ord_{:032x}", 5);
        assert_eq!(log.delivered(0.99), Some((0, 2, id)));
    }

    #[test]
    fn what_was_answered_goes_over_to_a_later_run() {
        let (mut log, mut broken) = (SentLog::default(), ResponseMismatches::default());
        for partner in 0..3 {
            log.record_sent(partner, Uuid::nil(), Bytes::new());
        }
        log.answered(0, &answer(201, &order("DELIVERED")), &mut broken);
        log.answered(2, &answer(202, &order("PENDING")), &mut broken);
        let earlier = crate::run_history::SentOrders::from_logs([log]);
        assert_eq!(earlier.count(), 2);
        let mut part = earlier.part(0, 2);
        assert_eq!(part.orders().len(), 1);
        assert!(part.delivered(0.0).is_some() && earlier.part(1, 2).delivered(0.0).is_none());
        part.answered(0, &answer(201, &order("PENDING")), &mut broken);
        assert_eq!((broken.compared, broken.count), (1, 1));
    }

    #[test]
    fn a_read_is_compared_with_the_answer() {
        let mut log = SentLog::default();
        let index = log.record_sent(0, Uuid::nil(), Bytes::new());
        let mut broken = ResponseMismatches::default();
        log.answered(index, &answer(201, &order("DELIVERED")), &mut broken);
        log.read(index, &answer(200, &order("DELIVERED")), &mut broken);
        assert_eq!((broken.compared, broken.count), (1, 0));
        log.read(index, &answer(200, &order("CANCELLED")), &mut broken);
        assert_eq!((broken.compared, broken.count), (2, 1));
    }

    #[test]
    fn drawing_is_even_and_ends_at_the_last() {
        let mut log = SentLog::default();
        assert!(log.pick_any(0.5).is_none() && log.delivered(0.5).is_none());
        for number in 0..4 {
            log.record_sent(number, Uuid::nil(), Bytes::new());
        }
        let drawn: Vec<_> = [0.0, 0.25, 0.74, 1.0]
            .map(|at| log.pick_any(at).unwrap().1.partner)
            .into();
        assert_eq!(drawn, [0, 1, 2, 3]);
    }
}
