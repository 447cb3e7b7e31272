//! Sampler of the live figures.

use std::time::Duration;

use super::ticker;
use crate::live_event::live_event;
use crate::service::Service;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Samples the traffic, and the actors if a console follows the feed. Never returns.
pub(super) async fn sample(service: &Service) {
    let mut tick = ticker(SAMPLE_INTERVAL);
    loop {
        tick.tick().await;
        let traffic = service.metrics.traffic();
        let sample = service.live.record(traffic, &service.engine, service.clock.now());
        if service.live.is_followed() {
            service.live.publish(&live_event(service, Some(sample)));
        }
    }
}
