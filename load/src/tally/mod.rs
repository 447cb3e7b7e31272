//! Tally of a run: latencies, outcomes by status and error code, and acknowledgements for the audit.
//!
//! Rule: order latency covers only 2xx responses to orders sent after the warm-up. A fast rejection must not
//! make the service look quick; rejections are recorded separately.

pub mod acknowledgements;
pub(crate) mod histogram;
pub mod latency_breakdown;
pub mod open_loop;
mod outcome;
pub mod run_history;
pub(crate) mod sent_orders;
pub mod timeline;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use vouchsafe_api_client::{ApiResponse, RequestFailure};

use self::acknowledgements::Acknowledgements;
use self::histogram::{merge_histogram, new_histogram, record_latency};
use self::latency_breakdown::LatencyBreakdown;
use self::open_loop::OpenLoopCounts;
use self::outcome::{merge_outcomes, record_outcome};
use self::run_history::LatencySample;
use self::sent_orders::ResponseMismatches;
use self::timeline::Timeline;
use crate::traffic::pace::Phase;
use crate::traffic::request::RequestKind;

pub use self::outcome::{Outcome, OutcomeCount, Outcomes};

/// A sent order.
#[derive(Clone, Copy, Debug)]
pub struct OrderAttempt<'a> {
    pub phase: Phase,
    pub partner: usize,
    /// Due time; in a closed loop the time of sending.
    pub at: Instant,
    /// How late the order left; `None` in a closed loop.
    pub send_delay: Option<SendDelay>,
    pub form: usize,
    pub key: &'a str,
    pub body: &'a Bytes,
}

/// How late a request of an open loop left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendDelay {
    /// Time since it was due.
    pub total: Duration,
    /// Time since it was due and a connection was free.
    pub by_generator: Duration,
}

/// Statistics of background requests (duplicates and reads).
#[derive(Debug)]
pub struct BackgroundStats {
    pub latency_us: Histogram<u64>,
    pub measured: Outcomes,
}

impl Default for BackgroundStats {
    fn default() -> Self {
        Self {
            latency_us: new_histogram(),
            measured: Outcomes::new(),
        }
    }
}

/// Results of one thread or of a whole run.
#[derive(Debug)]
pub struct Tally {
    pub latency_us: Histogram<u64>,
    pub timeline: Timeline,
    /// Latencies of measured orders by form, and of rejections.
    pub breakdown: LatencyBreakdown,
    pub measured: Outcomes,
    pub warm_up: Outcomes,
    /// Including the warm-up.
    pub acknowledgements: Acknowledgements,
    pub last_end: Option<Instant>,
    /// Send delay of acknowledged orders of an open loop, in microseconds: the generator's share of their
    /// latency.
    pub send_delay_us: Histogram<u64>,
    /// The part of it in which a connection was free.
    pub generator_delay_us: Histogram<u64>,
    pub(crate) open_loop: OpenLoopCounts,
    pub background: BTreeMap<RequestKind, BackgroundStats>,
    /// Responses that differ from the stored ones.
    pub mismatches: ResponseMismatches,
    /// Due times and latencies of acknowledged orders; `None` if not recorded.
    pub latency_samples: Option<Vec<LatencySample>>,
}

impl Tally {
    /// Keeps at most `samples` orders with request and response. `measure_from` is the end of the warm-up.
    #[must_use]
    pub fn new(samples: usize, measure_from: Instant) -> Self {
        Self {
            latency_us: new_histogram(),
            timeline: Timeline::starting_at(measure_from),
            breakdown: LatencyBreakdown::default(),
            measured: Outcomes::new(),
            warm_up: Outcomes::new(),
            acknowledgements: Acknowledgements::new(samples),
            last_end: None,
            send_delay_us: new_histogram(),
            generator_delay_us: new_histogram(),
            open_loop: OpenLoopCounts::default(),
            background: BTreeMap::new(),
            mismatches: ResponseMismatches::default(),
            latency_samples: None,
        }
    }

    /// Records an order that completed at `end`.
    pub fn record(
        &mut self,
        sent: OrderAttempt<'_>,
        end: Instant,
        outcome: &Result<ApiResponse, RequestFailure>,
    ) {
        match sent.phase {
            Phase::WarmUp => record_outcome(&mut self.warm_up, outcome),
            Phase::Measured => record_outcome(&mut self.measured, outcome),
        }
        let vouchers = self
            .acknowledgements
            .record_outcome(sent.partner, sent.key, sent.body, outcome);
        if sent.phase == Phase::Measured {
            self.record_latency(&sent, end, outcome, vouchers);
        }
    }

    /// Records an order without a response at the drain deadline. The audit settles it.
    pub(crate) fn record_dropped(&mut self, sent: &OrderAttempt<'_>) {
        let outcome = Err(RequestFailure::Unknown(
            "no response before the drain deadline".to_owned(),
        ));
        self.acknowledgements
            .record_outcome(sent.partner, sent.key, sent.body, &outcome);
    }

    /// Records the latency; `vouchers` is the count of an acknowledged order.
    fn record_latency(
        &mut self,
        sent: &OrderAttempt<'_>,
        end: Instant,
        outcome: &Result<ApiResponse, RequestFailure>,
        vouchers: Option<u64>,
    ) {
        self.last_end = self.last_end.max(Some(end));
        let latency = end.saturating_duration_since(sent.at);
        self.timeline.record(end, vouchers.map(|_| latency));
        match (vouchers, outcome) {
            (Some(vouchers), _) => {
                record_latency(&mut self.latency_us, latency);
                if let Some(delay) = sent.send_delay {
                    record_latency(&mut self.send_delay_us, delay.total);
                    record_latency(&mut self.generator_delay_us, delay.by_generator);
                }
                self.breakdown.record_acknowledged(sent.form, latency, vouchers);
                if let Some(samples) = &mut self.latency_samples {
                    samples.push(LatencySample {
                        due: sent.at,
                        latency,
                    });
                }
            }
            (None, Ok(response)) => self.breakdown.record_refusal(response.status.as_u16(), latency),
            (None, Err(_)) => {}
        }
    }

    /// Records a measured background request.
    pub(crate) fn record_background(
        &mut self,
        kind: RequestKind,
        latency: Duration,
        outcome: &Result<ApiResponse, RequestFailure>,
    ) {
        let stats = self.background.entry(kind).or_default();
        if outcome
            .as_ref()
            .is_ok_and(|response| response.status.is_success())
        {
            record_latency(&mut stats.latency_us, latency);
        }
        record_outcome(&mut stats.measured, outcome);
    }

    /// Adds the results of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        merge_histogram(&mut self.latency_us, &other.latency_us);
        merge_histogram(&mut self.send_delay_us, &other.send_delay_us);
        merge_histogram(&mut self.generator_delay_us, &other.generator_delay_us);
        self.open_loop.merge(other.open_loop);
        self.timeline.merge(other.timeline);
        self.breakdown.merge(other.breakdown);
        merge_outcomes(&mut self.measured, other.measured);
        merge_outcomes(&mut self.warm_up, other.warm_up);
        for (kind, added) in other.background {
            let own = self.background.entry(kind).or_default();
            merge_histogram(&mut own.latency_us, &added.latency_us);
            merge_outcomes(&mut own.measured, added.measured);
        }
        self.mismatches.merge(other.mismatches);
        if let Some(added) = other.latency_samples {
            self.latency_samples.get_or_insert_default().extend(added);
        }
        self.acknowledgements.merge(other.acknowledgements);
        self.last_end = self.last_end.max(other.last_end);
    }
}

#[cfg(test)]
mod tests {
    use hyper::Response;

    use super::*;

    fn response(status: u16, body: &'static str) -> Result<ApiResponse, RequestFailure> {
        let response = Response::builder().status(status).body(Bytes::from(body));
        Ok(response.unwrap().into())
    }

    fn record(tally: &mut Tally, phase: Phase, took_ms: u64, outcome: &Result<ApiResponse, RequestFailure>) {
        let at = Instant::now();
        let sent = OrderAttempt {
            phase,
            partner: 0,
            at,
            send_delay: Some(SendDelay {
                total: Duration::from_millis(took_ms / 2),
                by_generator: Duration::ZERO,
            }),
            form: 0,
            key: "k",
            body: &Bytes::new(),
        };
        tally.record(sent, at + Duration::from_millis(took_ms), outcome);
    }

    const ORDER: &str =
        r#"{"order_id":"o","status":"PENDING","total_amount":1,"currency":"USD","vouchers":[]}"#;

    #[test]
    fn only_measured_acknowledgements_have_latency() {
        let mut tally = Tally::new(1, Instant::now());
        record(&mut tally, Phase::WarmUp, 900, &response(202, ORDER));
        record(&mut tally, Phase::Measured, 1, &response(503, "{}"));
        record(&mut tally, Phase::Measured, 20, &response(202, ORDER));
        assert_eq!(tally.latency_us.len(), 1);
        assert!((19_900..=20_100).contains(&tally.latency_us.max()));
        assert_eq!(tally.send_delay_us.len(), 1, "refused orders have no share in it");
        assert!((9_900..=10_100).contains(&tally.send_delay_us.max()));
        assert_eq!(tally.acknowledgements.orders, 2, "the warm-up is audited too");
        assert_eq!(tally.breakdown.refusals[&503].len(), 1);
        assert_eq!(tally.breakdown.forms[&0].latency_us.len(), 1);
        assert!(tally.last_end.is_some());
    }

    #[test]
    fn unknown_outcomes_are_kept_for_settlement() {
        let mut tally = Tally::new(0, Instant::now());
        for outcome in [
            response(409, r#"{"error":{"code":"INSUFFICIENT_INVENTORY"}}"#),
            Err(RequestFailure::NotSent("refused".into())),
            response(500, ""),
            Err(RequestFailure::Unknown("reset".into())),
        ] {
            record(&mut tally, Phase::Measured, 1, &outcome);
        }
        tally.record_dropped(&OrderAttempt {
            phase: Phase::Measured,
            partner: 0,
            at: Instant::now(),
            send_delay: None,
            form: 0,
            key: "dropped",
            body: &Bytes::new(),
        });
        assert_eq!(tally.acknowledgements.unsettled.len(), 3);
        let shown: Vec<String> = tally.measured.keys().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["409 INSUFFICIENT_INVENTORY", "500", "not sent", "outcome unknown"]
        );
    }

    #[test]
    fn merge_sums_counts_and_keeps_first_error_text() {
        let (mut one, mut two) = (Tally::new(0, Instant::now()), Tally::new(0, Instant::now()));
        record(&mut one, Phase::Measured, 1, &response(429, "first"));
        record(&mut two, Phase::Measured, 1, &response(429, "second"));
        record(&mut one, Phase::Measured, 1, &response(202, ORDER));
        record(&mut two, Phase::Measured, 1, &response(202, ORDER));
        one.merge(two);
        assert_eq!(one.breakdown.forms[&0].latency_us.len(), 2);
        assert_eq!(one.breakdown.refusals[&429].len(), 2);
        let kind = Outcome::Response {
            status: 429,
            code: None,
        };
        assert_eq!(
            (one.measured[&kind].count, one.measured[&kind].example.as_deref()),
            (2, Some("first"))
        );
        assert_eq!((one.latency_us.len(), one.send_delay_us.len()), (2, 2));
    }

    #[test]
    fn background_requests_are_separate_from_orders() {
        let (mut one, mut two) = (Tally::new(0, Instant::now()), Tally::new(0, Instant::now()));
        let ms = Duration::from_millis;
        one.record_background(RequestKind::Duplicate, ms(3), &response(201, ORDER));
        two.record_background(RequestKind::Duplicate, ms(3), &response(409, "{}"));
        two.record_background(RequestKind::Feed, ms(3), &response(200, "{}"));
        one.merge(two);
        let counts: Vec<_> = one
            .background
            .iter()
            .map(|(kind, stats)| (*kind, stats.latency_us.len(), stats.measured.len()))
            .collect();
        assert_eq!(
            counts,
            [(RequestKind::Duplicate, 1, 2), (RequestKind::Feed, 1, 1)]
        );
        assert!(one.latency_us.is_empty() && one.measured.is_empty());
    }
}
