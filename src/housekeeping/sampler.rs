//! Sampler of the live figures.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;
use vouchsafe_wire::operator::actors::{ActorsQuery, LiveActors};
use vouchsafe_wire::operator::live::LiveEvent;

use super::ticker;
use crate::live_actors::{list_actors, record_actors};
use crate::service::JobState;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Distance of two readings of the actors' histories, in samples.
const ACTOR_READING: u32 = 10;

/// A scan of all actors may take one part in so many of a thread's time. A scan of 100,000 actors takes tens
/// of milliseconds.
const SCAN_SHARE: u32 = 100;

/// Samples the traffic each second. Scans the actors each tenth second and, if a console follows the feed,
/// each second or as often as [`SCAN_SHARE`] permits. Never returns.
pub(super) async fn sample(service: &JobState) -> Infallible {
    let mut tick = ticker(SAMPLE_INTERVAL);
    let mut actors = LiveActors::default();
    let mut next_scan = Instant::now();
    let mut second = 0;
    loop {
        tick.tick().await;
        second = (second + 1) % ACTOR_READING;
        let traffic = service.metrics.traffic();
        let sample = service.live.record(traffic, &service.engine, service.clock.now());
        let is_reading = second == 0;
        if !is_reading && !service.live.is_followed() {
            continue;
        }
        let started_at = Instant::now();
        if is_reading || started_at >= next_scan {
            actors = list_actors(service, ActorsQuery::default());
            next_scan = started_at + started_at.elapsed() * SCAN_SHARE;
        }
        if is_reading {
            record_actors(service, &actors);
        }
        service.live.publish(&LiveEvent {
            sample: Some(sample),
            overview: service.live.overview().as_deref(),
            actors: &actors,
        });
    }
}
