//! How long is a service away that was killed? From the start of the new process to the first order that it acknowledges, on
//! what its predecessor left.
//!
//! Rule: every order that is tried is in the books, so that the audit asks for it.

use std::fmt;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;
use uuid::Uuid;

use crate::acknowledgements::{Acknowledgements, Unsettled};
use crate::client::RequestFailure;
use crate::partner::PartnerClient;
use crate::signer::Credentials;
use crate::deployment::{TestDeployment, DeploymentError};
use crate::traffic::{RequestSpec, Traffic};

/// Pause between two tries: what is measured is hundreds of times as long.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a new process may take: a database that was killed with it is recovered first.
const WITHIN: Duration = Duration::from_secs(180);

/// How long one try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// What restarts took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RestartTimes {
    /// From the start of each process to its first acknowledged order, in milliseconds, in their order.
    pub first_order_ms: Vec<f64>,
    /// The one in the middle, or the later of the two.
    pub median_ms: f64,
    pub max_ms: f64,
}

impl RestartTimes {
    /// Of these times; `None` if there are none.
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
            "from the start after kill -9 to the first order, ms: median {:.0}, most {:.0}, of {}: {}",
            self.median_ms,
            self.max_ms,
            times.len(),
            times.join(", ")
        )
    }
}

/// Who orders, and what.
pub struct OrderSource<'a> {
    /// The partners of the traffic.
    pub partners: &'a [Credentials],
    pub traffic: &'a Traffic,
    /// What chance begins with.
    pub seed: u64,
}

/// Kills the service and starts it again so many times; returns what each time took.
///
/// # Errors
/// [`StandError`] if it did not come back.
pub async fn measure_restarts(
    stand: &mut TestDeployment,
    times: u64,
    callers: &OrderSource<'_>,
    books: &mut Acknowledgements,
) -> Result<Vec<Duration>, DeploymentError> {
    let mut chance = StdRng::seed_from_u64(callers.seed);
    let mut took = Vec::new();
    for _ in 0..times {
        stand.kill()?;
        let began = Instant::now();
        stand.restart()?;
        while !acknowledged(&stand.base_url(), callers, &mut chance, books).await? {
            if began.elapsed() >= WITHIN {
                return Err(stand.not_ready_error(format!("took no order within {WITHIN:?}")));
            }
            tokio::time::sleep(PAUSE).await;
        }
        took.push(began.elapsed());
        // What else a start does is not left to the next kill.
        stand.wait_until_ready().await?;
    }
    Ok(took)
}

/// Tries one order; says whether it was acknowledged.
async fn acknowledged(
    url: &str,
    callers: &OrderSource<'_>,
    chance: &mut StdRng,
    books: &mut Acknowledgements,
) -> Result<bool, DeploymentError> {
    let (partner, body) = loop {
        if let RequestSpec::Order { partner, body, .. } = callers.traffic.draw(chance) {
            break (partner, body);
        }
    };
    let credentials = callers.partners[partner].clone();
    let mut client = PartnerClient::new(url, credentials)?.with_timeout(TRY_TIMEOUT);
    let key = Uuid::new_v4().to_string();
    match client.order(&key, body.clone()).await {
        Ok(answer) if answer.status.is_success() => {
            books.record(partner, &key, &body, answer.status.as_u16(), &answer.body);
            return Ok(true);
        }
        Ok(answer) if !answer.status.is_server_error() => {}
        Err(RequestFailure::NotSent(_)) => {}
        Ok(_) | Err(RequestFailure::Unknown(_)) => books.unsettled.push(Unsettled { partner, key, body }),
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_told_by_their_median_and_the_longest() {
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
