//! How is the service loaded? A closed loop: every connection sends its next order when the last one was answered.
//!
//! Each thread runs its connections on a runtime of its own, a task each for the whole run, and keeps its own
//! tally, so nothing is shared on the way of an order but the gate.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::client::Failure;
use crate::origin::UrlError;
use crate::partner::PartnerClient;
use crate::signer::Credentials;
use crate::tally::{Phase, Sent, Tally};
use crate::workload::Workload;

/// Pause after a request that could not be sent: a service that is down is not hammered with connects.
const UNSENT_PAUSE: Duration = Duration::from_millis(50);

/// When a run ends; the warm-up counts for neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this many orders were sent.
    Orders(u64),
    /// After this time; what is open then is still awaited.
    Time(Duration),
}

/// A run, decided beforehand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The service, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    /// The partner that orders.
    pub credentials: Credentials,
    /// What it orders.
    pub workload: Workload,
    /// Connections, spread evenly over the threads.
    pub connections: usize,
    /// Threads of the generator, at least one.
    pub threads: usize,
    /// Time before anything is measured.
    pub warm_up: Duration,
    /// When to end.
    pub length: Length,
    /// Bound for connecting and for each exchange.
    pub timeout: Duration,
    /// Whole orders to keep for the audit, at most.
    pub samples: usize,
}

impl Plan {
    /// How many connections the thread of this index has.
    fn share(&self, index: usize) -> usize {
        self.connections / self.threads + usize::from(index < self.connections % self.threads)
    }
}

/// What a run saw, and when its measured part began.
#[derive(Debug)]
pub struct Ran {
    /// What all clients saw.
    pub tally: Tally,
    /// From the end of the warm-up to the end of the last order.
    pub measured_for: Duration,
}

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The base URL is of another form.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A thread got no runtime.
    #[error("a generator thread could not start")]
    Thread(#[from] std::io::Error),
}

/// Loads the service as planned; returns when the last order has ended.
///
/// # Errors
/// [`RunError`] if it could not start; what the service does wrong is in the tally.
pub fn run(plan: Plan) -> Result<Ran, RunError> {
    let gate = Arc::new(Gate::new(&plan));
    let plan = Arc::new(plan);
    let threads: Vec<_> = (0..plan.threads)
        .map(|index| {
            let (plan, gate) = (Arc::clone(&plan), Arc::clone(&gate));
            std::thread::spawn(move || thread(&plan, plan.share(index), &gate))
        })
        .collect();
    let mut sum = Tally::new(plan.samples);
    for thread in threads {
        sum.merge(
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
        );
    }
    let measured_for = sum.last_end.map_or(Duration::ZERO, |end| end - gate.measure_from);
    Ok(Ran {
        tally: sum,
        measured_for,
    })
}

fn thread(plan: &Arc<Plan>, connections: usize, gate: &Arc<Gate>) -> Result<Tally, RunError> {
    let tally = Rc::new(RefCell::new(Tally::new(plan.samples.div_ceil(plan.threads))));
    let clients = LocalSet::new();
    for _ in 0..connections {
        let client = PartnerClient::new(&plan.base_url, plan.credentials.clone())?.with_timeout(plan.timeout);
        let (plan, gate, tally) = (Arc::clone(plan), Arc::clone(gate), Rc::clone(&tally));
        clients.spawn_local(connection(client, plan, gate, tally));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(clients);
    let Some(tally) = Rc::into_inner(tally) else {
        unreachable!("every connection has ended and dropped its share")
    };
    Ok(tally.into_inner())
}

/// One connection's whole run: an order, its answer, the next order.
async fn connection(mut client: PartnerClient, plan: Arc<Plan>, gate: Arc<Gate>, tally: Rc<RefCell<Tally>>) {
    let mut text = [0; Hyphenated::LENGTH];
    while let Some(phase) = gate.admit(Instant::now()) {
        // Random keys, as partners make them: sorted ones would flatter the service's index.
        let key: &str = Uuid::new_v4().hyphenated().encode_lower(&mut text);
        let body = plan.workload.next_body();
        let request = client.order_request(key, body.clone());
        let at = Instant::now();
        let outcome = match request {
            Ok(request) => client.send(request).await,
            Err(failure) => Err(failure),
        };
        tally.borrow_mut().record(
            Sent {
                phase,
                at,
                key,
                body: &body,
            },
            Instant::now(),
            &outcome,
        );
        if matches!(outcome, Err(Failure::NotSent(_))) {
            tokio::time::sleep(UNSENT_PAUSE).await;
        }
    }
}

/// Says whether another order may be sent, and whether it counts.
#[derive(Debug)]
struct Gate {
    measure_from: Instant,
    end: End,
}

#[derive(Debug)]
enum End {
    /// At this time.
    At(Instant),
    /// When so many more have been sent.
    After(AtomicU64),
}

impl Gate {
    fn new(plan: &Plan) -> Self {
        let measure_from = Instant::now() + plan.warm_up;
        let end = match plan.length {
            Length::Time(time) => End::At(measure_from + time),
            Length::Orders(orders) => End::After(AtomicU64::new(orders)),
        };
        Self { measure_from, end }
    }

    fn admit(&self, now: Instant) -> Option<Phase> {
        if now < self.measure_from {
            return Some(Phase::WarmUp);
        }
        let open = match &self.end {
            End::At(end) => now < *end,
            End::After(left) => left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok(),
        };
        open.then_some(Phase::Measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(length: Length) -> Plan {
        Plan {
            base_url: "http://127.0.0.1:1/api/v1".into(),
            credentials: Credentials::new("k", "s").unwrap(),
            workload: Workload::one_sku("p", "25", 1).unwrap(),
            connections: 7,
            threads: 3,
            warm_up: Duration::from_secs(5),
            length,
            timeout: Duration::from_secs(1),
            samples: 0,
        }
    }

    #[test]
    fn the_gate_counts_from_the_end_of_the_warm_up() {
        let gate = Gate::new(&plan(Length::Orders(2)));
        let start = gate.measure_from;
        let before = start.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(gate.admit(before), Some(Phase::WarmUp));
        let admitted: Vec<_> = (0..3).map(|_| gate.admit(start)).collect();
        assert_eq!(admitted, [Some(Phase::Measured), Some(Phase::Measured), None]);

        let gate = Gate::new(&plan(Length::Time(Duration::from_secs(1))));
        let start = gate.measure_from;
        assert_eq!(gate.admit(start), Some(Phase::Measured));
        assert_eq!(gate.admit(start + Duration::from_secs(1)), None);
    }

    #[test]
    fn connections_are_spread_evenly() {
        let plan = plan(Length::Orders(1));
        let shares: Vec<_> = (0..3).map(|index| plan.share(index)).collect();
        assert_eq!(shares, [3, 2, 2]);
    }
}
