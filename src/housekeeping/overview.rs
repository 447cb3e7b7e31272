//! Overview for the clients that follow the live feed.

use std::convert::Infallible;
use std::time::Duration;

use super::every;
use crate::overview::read_overview;
use crate::service::JobState;

/// The counts are statements on the database.
const INTERVAL: Duration = Duration::from_secs(5);

/// Reads the overview while a client follows the feed. Never returns.
pub(super) async fn read(service: &JobState) -> Infallible {
    every(INTERVAL, "cannot count the waiting work", async || {
        let overview = match service.live.is_followed() {
            true => Some(read_overview(service, &service.store).await?),
            // The next client must not begin with old figures.
            false => None,
        };
        service.live.set_overview(overview);
        Ok(())
    })
    .await
}
