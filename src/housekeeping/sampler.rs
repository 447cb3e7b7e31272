//! Sampler of the live figures.

use std::time::Duration;

use super::ticker;
use crate::live_event::{live_event, record_actors};
use crate::service::Service;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Distance of two readings of the actors' histories, in samples.
const ACTOR_READING: u32 = 10;

/// Samples the traffic each second, the actors each tenth second, and each second if somebody follows the feed. Never returns.
pub(super) async fn sample(service: &Service) {
    let mut tick = ticker(SAMPLE_INTERVAL);
    for second in (0..ACTOR_READING).cycle() {
        tick.tick().await;
        let traffic = service.metrics.traffic();
        let sample = service.live.record(traffic, &service.engine, service.clock.now());
        let is_reading = second == 0;
        if is_reading || service.live.is_followed() {
            let event = live_event(service, Some(sample));
            if is_reading {
                record_actors(service, &event.actors);
            }
            service.live.publish(&event);
        }
    }
}
