//! Arrival schedule of an open loop, fixed before the run. A stall of the service therefore delays every
//! request that becomes due meanwhile, and shows in their latency.

use std::time::Duration;

use anyhow::ensure;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::traffic::pace::{RunLength, Spacing};

/// Upper bound for one run: 800 MB at 16 bytes each, far above what one machine reaches.
const MAX_ARRIVALS: f64 = 50_000_000.0;

/// Generates the due times of all requests, relative to the start of the run.
pub(crate) fn arrivals(
    per_second: f64,
    spacing: Spacing,
    warm_up: Duration,
    length: RunLength,
    seed: u64,
) -> anyhow::Result<Vec<Duration>> {
    ensure!(
        per_second.is_finite() && per_second > 0.0,
        "{per_second} requests per second is not a valid rate"
    );
    let measured_s = match length {
        RunLength::Time(time) => time.as_secs_f64(),
        RunLength::Orders(orders) => orders as f64 / per_second,
    };
    let expected = (warm_up.as_secs_f64() + measured_s) * per_second;
    ensure!(
        expected <= MAX_ARRIVALS,
        "rate × length exceeds {MAX_ARRIVALS} requests; reduce one of them"
    );
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut times, mut at, mut measured) = (Vec::new(), 0.0_f64, 0_u64);
    loop {
        let time = Duration::from_secs_f64(at);
        let ends = match length {
            RunLength::Time(length) => time >= warm_up + length,
            RunLength::Orders(orders) => measured == orders,
        };
        if ends {
            break;
        }
        measured += u64::from(time >= warm_up);
        times.push(time);
        at = match spacing {
            Spacing::Constant => times.len() as f64 / per_second,
            // `1 - u` is never 0, so the logarithm is finite.
            Spacing::Poisson => at - (1.0 - rng.random::<f64>()).ln() / per_second,
        };
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn constant_rate_has_equal_intervals() {
        let times = arrivals(4.0, Spacing::Constant, seconds(1), RunLength::Time(seconds(1)), 0).unwrap();
        let expected: Vec<_> = (0..8).map(|number| Duration::from_millis(250 * number)).collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn order_count_excludes_warm_up() {
        let times = arrivals(10.0, Spacing::Constant, seconds(1), RunLength::Orders(5), 0).unwrap();
        assert_eq!(times.len(), 10 + 5);
        assert_eq!(times.iter().filter(|time| **time >= seconds(1)).count(), 5);
    }

    #[test]
    fn poisson_schedule_has_rate_distribution_and_seed() {
        let of = |seed| {
            arrivals(
                1_000.0,
                Spacing::Poisson,
                Duration::ZERO,
                RunLength::Time(seconds(20)),
                seed,
            )
            .unwrap()
        };
        let times = of(1);
        assert!((19_500..20_500).contains(&times.len()), "{}", times.len());
        assert!(times.is_sorted());
        // 1 − 1/e of exponential intervals are shorter than the mean.
        let short = times
            .windows(2)
            .filter(|pair| pair[1] - pair[0] < Duration::from_millis(1))
            .count();
        let share = short as f64 / times.len() as f64;
        assert!((0.61..0.65).contains(&share), "{share}");
        assert_eq!(times, of(1));
        assert_ne!(times, of(2));
    }

    #[test]
    fn invalid_rate_is_rejected() {
        for rate in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e9] {
            let length = RunLength::Time(seconds(1));
            assert!(
                arrivals(rate, Spacing::Constant, seconds(0), length, 0).is_err(),
                "{rate}"
            );
        }
    }
}
