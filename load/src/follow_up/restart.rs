//! Restart time: from the start of a new process after SIGKILL to its first acknowledged order.
//!
//! Rule: every attempted order enters the acknowledgements, so that the audit covers it.

use std::fmt;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;
use uuid::Uuid;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use crate::deployment::TestDeployment;
use crate::tally::acknowledgements::Acknowledgements;
use crate::traffic::generator::Traffic;
use crate::traffic::request::RequestSpec;

/// Delay between attempts: far below the measured time.
const RETRY_DELAY: Duration = Duration::from_millis(2);

/// Deadline for a restart, which may include crash recovery of the database.
const RESTART_TIMEOUT: Duration = Duration::from_secs(180);

/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Durations of all restarts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RestartTimes {
    /// Milliseconds from the start of the process to its first acknowledged order, per restart.
    pub first_order_ms: Vec<f64>,
    /// Median, or the upper of the two middle values.
    pub median_ms: f64,
    pub max_ms: f64,
}

impl RestartTimes {
    /// `None` without a restart.
    #[must_use]
    pub fn from_durations(times: &[Duration]) -> Option<Self> {
        let first_order_ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1_000.0).collect();
        let mut sorted = first_order_ms.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self {
            median_ms: *sorted.get(sorted.len() / 2)?,
            max_ms: *sorted.last()?,
            first_order_ms,
        })
    }
}

impl fmt::Display for RestartTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<_> = self.first_order_ms.iter().map(|ms| format!("{ms:.0}")).collect();
        write!(
            f,
            "restart after kill -9 to first order, ms: median {:.0}, max {:.0}, of {}: {}",
            self.median_ms,
            self.max_ms,
            times.len(),
            times.join(", ")
        )
    }
}

/// Source of the orders sent after a restart.
pub(crate) struct OrderSource<'a> {
    /// Partners of the traffic.
    pub partners: &'a [Credentials],
    pub traffic: &'a Traffic,
    /// Seed of the random number generator.
    pub seed: u64,
}

/// Kills and restarts the service `times` times; returns the duration of each restart.
pub(crate) async fn measure_restarts(
    deployment: &mut TestDeployment,
    times: u64,
    source: &OrderSource<'_>,
    acknowledgements: &mut Acknowledgements,
) -> anyhow::Result<Vec<Duration>> {
    let mut rng = StdRng::seed_from_u64(source.seed);
    let mut durations = Vec::new();
    for _ in 0..times {
        deployment.kill()?;
        let started = Instant::now();
        deployment.restart()?;
        while !try_order(&deployment.base_url(), source, &mut rng, acknowledgements).await? {
            if started.elapsed() >= RESTART_TIMEOUT {
                let event = format!("acknowledged no order within {RESTART_TIMEOUT:?}");
                return Err(deployment.error(&event));
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        durations.push(started.elapsed());
        // Lets the start complete before the next kill.
        deployment.wait_until_ready().await?;
    }
    Ok(durations)
}

/// Sends one order; returns whether it was acknowledged.
async fn try_order(
    url: &str,
    source: &OrderSource<'_>,
    rng: &mut StdRng,
    acknowledgements: &mut Acknowledgements,
) -> anyhow::Result<bool> {
    let (partner, body) = loop {
        if let RequestSpec::Order { partner, body, .. } = source.traffic.draw(rng) {
            break (partner, body);
        }
    };
    let credentials = source.partners[partner].clone();
    let mut client = PartnerClient::new(url, credentials)?.with_timeout(ATTEMPT_TIMEOUT);
    let key = Uuid::new_v4().to_string();
    let outcome = client.order(&key, body.clone()).await;
    let vouchers = acknowledgements.record_outcome(partner, &key, &body, &outcome);
    Ok(vouchers.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_times_report_median_and_max() {
        let ms = Duration::from_millis;
        let restarts = RestartTimes::from_durations(&[ms(500), ms(900), ms(400)]).unwrap();
        assert_eq!((restarts.median_ms, restarts.max_ms), (500.0, 900.0));
        assert!(
            restarts.to_string().ends_with("of 3: 500, 900, 400"),
            "{restarts}"
        );
        assert_eq!(RestartTimes::from_durations(&[]), None);
    }
}
