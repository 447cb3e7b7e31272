//! What did the clients of a run see? Latencies, outcomes by status and error code, and the books.
//!
//! Rule: a latency is that of a 2xx answer to an order that was sent after the warm-up. A fast refusal must not
//! make the service look quick; refusals are counted beside it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;

use crate::latency_breakdown::LatencyBreakdown;
use crate::acknowledgements::{Acknowledgements, Unsettled};
use crate::client::{ApiResponse, RequestFailure};
use crate::run_history::LatencySample;
use crate::outcome::{record_outcome, merge_outcomes};
use crate::sent_orders::ResponseMismatches;
use crate::timeline::Timeline;
use crate::traffic::RequestKind;

pub use crate::outcome::{Outcome, Outcomes, OutcomeCount};

/// Slowest latency told apart, in microseconds: twice the client's timeout, so nothing measured is cut.
const MAX_LATENCY_US: u64 = 60_000_000;
/// Significant digits of a latency: 0.1 %, well below the spread of runs.
const LATENCY_DIGITS: u8 = 3;

/// The part of a run an order was sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Audited, but no part of the figures.
    WarmUp,
    /// Part of the figures.
    Measured,
}

/// An order as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct OrderAttempt<'a> {
    /// In which part of the run.
    pub phase: Phase,
    /// Whose it is: an index among the run's partners.
    pub partner: usize,
    /// When it was due: when its sending began, or when it should have.
    pub at: Instant,
    /// Its form: an index among those of the traffic.
    pub form: usize,
    pub key: &'a str,
    pub body: &'a Bytes,
}

/// What was seen of requests other than new orders.
#[derive(Debug)]
pub struct BackgroundStats {
    /// Latency of measured 2xx answers, in microseconds.
    pub latency_us: Histogram<u64>,
    /// Outcomes of measured requests.
    pub measured: Outcomes,
}

/// What the clients of one thread, or of the whole run, saw.
#[derive(Debug)]
pub struct Tally {
    /// Latency of measured 2xx answers, in microseconds.
    pub latency_us: Histogram<u64>,
    /// Latencies of measured orders by form, and of refusals.
    pub breakdown: LatencyBreakdown,
    /// Outcomes of measured orders.
    pub measured: Outcomes,
    /// Outcomes of the warm-up.
    pub warm_up: Outcomes,
    /// What was acknowledged, warm-up included.
    pub acknowledgements: Acknowledgements,
    /// When the last measured order came to an end.
    pub last_end: Option<Instant>,
    /// How late measured requests of an open loop left, in microseconds: the generator's share of their latency.
    pub late_us: Histogram<u64>,
    /// The measured part, second by second.
    pub timeline: Timeline,
    /// What was asked for besides new orders.
    pub background: BTreeMap<RequestKind, BackgroundStats>,
    /// What was answered otherwise than before.
    pub mismatches: ResponseMismatches,
    /// When each acknowledged order was due; `None` if nobody asks.
    pub latency_samples: Option<Vec<LatencySample>>,
}

impl Tally {
    /// Empty, keeping at most `samples` whole orders.
    #[must_use]
    pub fn new(samples: usize) -> Self {
        Self {
            latency_us: new_histogram(),
            breakdown: LatencyBreakdown::default(),
            measured: Outcomes::new(),
            warm_up: Outcomes::new(),
            acknowledgements: Acknowledgements::new(samples),
            last_end: None,
            late_us: new_histogram(),
            timeline: Timeline::default(),
            background: BTreeMap::new(),
            mismatches: ResponseMismatches::default(),
            latency_samples: None,
        }
    }

    /// Tells its seconds apart from this time on, which is the end of the warm-up.
    #[must_use]
    pub fn with_measurement_start(mut self, from: Instant) -> Self {
        self.timeline = Timeline::starting_at(from);
        self
    }

    /// Enters one order that ended at `end`.
    pub fn record(&mut self, sent: OrderAttempt<'_>, end: Instant, outcome: &Result<ApiResponse, RequestFailure>) {
        match sent.phase {
            Phase::WarmUp => record_outcome(&mut self.warm_up, outcome),
            Phase::Measured => record_outcome(&mut self.measured, outcome),
        }
        let vouchers = self.book(&sent, outcome);
        if sent.phase == Phase::Measured {
            self.measure(&sent, end, outcome, vouchers);
        }
    }

    /// Enters its latency where it belongs; `vouchers` are those of an order that was acknowledged.
    fn measure(
        &mut self,
        sent: &OrderAttempt<'_>,
        end: Instant,
        outcome: &Result<ApiResponse, RequestFailure>,
        vouchers: Option<u64>,
    ) {
        self.last_end = self.last_end.max(Some(end));
        let latency = end.saturating_duration_since(sent.at);
        self.timeline.enter(end, vouchers.map(|_| latency));
        match (vouchers, outcome) {
            (Some(vouchers), _) => {
                self.latency_us.saturating_record(micros(latency));
                self.breakdown.record_acknowledged(sent.form, latency, vouchers);
                if let Some(moments) = &mut self.latency_samples {
                    moments.push(LatencySample {
                        due: sent.at,
                        latency,
                    });
                }
            }
            (None, Ok(answer)) => self.breakdown.record_refusal(answer.status.as_u16(), latency),
            (None, Err(_)) => {}
        }
    }

    /// Enters what the audit needs; the number of vouchers of an order that was acknowledged.
    fn book(&mut self, sent: &OrderAttempt<'_>, outcome: &Result<ApiResponse, RequestFailure>) -> Option<u64> {
        match outcome {
            Ok(answer) if answer.status.is_success() => {
                return Some(self.acknowledgements.record(
                    sent.partner,
                    sent.key,
                    sent.body,
                    answer.status.as_u16(),
                    &answer.body,
                ));
            }
            Ok(answer) if !answer.status.is_server_error() => {}
            Err(RequestFailure::NotSent(_)) => {}
            Ok(_) | Err(RequestFailure::Unknown(_)) => {
                self.acknowledgements.unsettled.push(Unsettled {
                    partner: sent.partner,
                    key: sent.key.to_owned(),
                    body: sent.body.clone(),
                });
            }
        }
        None
    }

    /// Enters a measured request other than a new order, which took so long.
    pub fn record_background(&mut self, kind: RequestKind, latency: Duration, outcome: &Result<ApiResponse, RequestFailure>) {
        let beside = self.background.entry(kind).or_insert_with(|| BackgroundStats {
            latency_us: new_histogram(),
            measured: Outcomes::new(),
        });
        if outcome.as_ref().is_ok_and(|answer| answer.status.is_success()) {
            beside.latency_us.saturating_record(micros(latency));
        }
        record_outcome(&mut beside.measured, outcome);
    }

    /// Enters how late a measured request left.
    pub fn record_lateness(&mut self, late: Duration) {
        self.late_us.saturating_record(micros(late));
    }

    /// Enters what another thread saw.
    pub fn merge(&mut self, other: Self) {
        merge_histogram(&mut self.latency_us, &other.latency_us);
        merge_histogram(&mut self.late_us, &other.late_us);
        self.breakdown.merge(other.breakdown);
        merge_outcomes(&mut self.measured, other.measured);
        merge_outcomes(&mut self.warm_up, other.warm_up);
        for (kind, theirs) in other.background {
            match self.background.get_mut(&kind) {
                Some(mine) => {
                    merge_histogram(&mut mine.latency_us, &theirs.latency_us);
                    merge_outcomes(&mut mine.measured, theirs.measured);
                }
                None => {
                    self.background.insert(kind, theirs);
                }
            }
        }
        self.timeline.merge(&other.timeline);
        self.mismatches.merge(other.mismatches);
        if let Some(theirs) = other.latency_samples {
            self.latency_samples.get_or_insert_default().extend(theirs);
        }
        self.acknowledgements.merge(other.acknowledgements);
        self.last_end = self.last_end.max(other.last_end);
    }
}

pub(crate) fn new_histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new_with_bounds(1, MAX_LATENCY_US, LATENCY_DIGITS) else {
        unreachable!("the bounds are constants that a histogram takes")
    };
    histogram
}

pub(crate) fn merge_histogram(mine: &mut Histogram<u64>, theirs: &Histogram<u64>) {
    let Ok(()) = mine.add(theirs) else {
        unreachable!("all histograms of a run have the same bounds")
    };
}

pub(crate) fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::{HeaderMap, StatusCode};

    fn answer(status: u16, body: &'static str) -> Result<ApiResponse, RequestFailure> {
        let status = StatusCode::from_u16(status).unwrap();
        Ok(ApiResponse {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        })
    }

    fn record(tally: &mut Tally, phase: Phase, took_ms: u64, outcome: &Result<ApiResponse, RequestFailure>) {
        let at = Instant::now();
        let sent = OrderAttempt {
            phase,
            partner: 0,
            at,
            form: 0,
            key: "k",
            body: &Bytes::new(),
        };
        tally.record(sent, at + Duration::from_millis(took_ms), outcome);
    }

    const ORDER: &str =
        r#"{"order_id":"o","status":"PENDING","total_amount":1,"currency":"USD","vouchers":[]}"#;

    #[test]
    fn only_measured_acknowledgements_have_a_latency() {
        let mut tally = Tally::new(1);
        record(&mut tally, Phase::WarmUp, 900, &answer(202, ORDER));
        record(&mut tally, Phase::Measured, 1, &answer(503, "{}"));
        record(&mut tally, Phase::Measured, 20, &answer(202, ORDER));
        assert_eq!(tally.latency_us.len(), 1);
        assert!((19_900..=20_100).contains(&tally.latency_us.max()));
        assert_eq!(tally.acknowledgements.orders, 2, "the warm-up is audited too");
        assert_eq!(tally.breakdown.refusals[&503].len(), 1);
        assert_eq!(tally.breakdown.forms[&0].latency_us.len(), 1);
        assert!(tally.last_end.is_some());
    }

    #[test]
    fn what_may_have_been_executed_is_kept_to_be_settled() {
        let mut tally = Tally::new(0);
        for outcome in [
            answer(409, r#"{"error":{"code":"INSUFFICIENT_INVENTORY"}}"#),
            Err(RequestFailure::NotSent("refused".into())),
            answer(500, ""),
            Err(RequestFailure::Unknown("reset".into())),
        ] {
            record(&mut tally, Phase::Measured, 1, &outcome);
        }
        assert_eq!(tally.acknowledgements.unsettled.len(), 2);
        let shown: Vec<String> = tally.measured.keys().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["409 INSUFFICIENT_INVENTORY", "500", "not sent", "outcome unknown"]
        );
    }

    #[test]
    fn threads_add_up_and_the_first_error_text_stays() {
        let (mut one, mut two) = (Tally::new(0), Tally::new(0));
        record(&mut one, Phase::Measured, 1, &answer(429, "first"));
        record(&mut two, Phase::Measured, 1, &answer(429, "second"));
        record(&mut two, Phase::Measured, 1, &answer(202, ORDER));
        one.merge(two);
        let kind = Outcome::Response {
            status: 429,
            code: None,
        };
        assert_eq!(
            (one.measured[&kind].count, one.measured[&kind].example.as_deref()),
            (2, Some("first"))
        );
        assert_eq!(one.latency_us.len(), 1);
    }

    #[test]
    fn other_requests_stand_beside_the_orders() {
        let (mut one, mut two) = (Tally::new(0), Tally::new(0));
        let ms = Duration::from_millis;
        one.record_background(RequestKind::Duplicate, ms(3), &answer(201, ORDER));
        two.record_background(RequestKind::Duplicate, ms(3), &answer(409, "{}"));
        two.record_background(RequestKind::Feed, ms(3), &answer(200, "{}"));
        two.record_lateness(ms(2));
        one.merge(two);
        let counts: Vec<_> = one
            .background
            .iter()
            .map(|(kind, beside)| (*kind, beside.latency_us.len(), beside.measured.len()))
            .collect();
        assert_eq!(counts, [(RequestKind::Duplicate, 1, 2), (RequestKind::Feed, 1, 1)]);
        assert!(one.latency_us.is_empty() && one.measured.is_empty());
        assert_eq!(one.late_us.len(), 1);
    }
}
