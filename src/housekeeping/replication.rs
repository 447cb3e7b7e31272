//! Check of the replication that `VOUCHSAFE_DURABILITY=replicated` requires.

use std::time::Duration;

use tracing::{error, info, warn};
use vouchsafe_domain::replication::Replication;

use super::ticker;
use crate::service::Service;
use crate::settings::Durability;

/// One statement. What changes between two checks is not found.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Checks from time to time, and logs each change. Ends at once if replication is not required.
pub(super) async fn check(service: &Service) {
    if service.durability == Durability::Local {
        return;
    }
    let mut tick = ticker(CHECK_INTERVAL);
    let mut logged = Replication::Unknown;
    loop {
        tick.tick().await;
        let found = match service.node.check_replication().await {
            Ok(found) => found,
            Err(error) => {
                warn!(error.message = %error, "cannot check the replication of commits");
                continue;
            }
        };
        service.metrics.record_replication(found.is_missing());
        if std::mem::replace(&mut logged, found) == found {
            continue;
        }
        if found.is_missing() {
            error!(
                reason = found.describe(),
                "VOUCHSAFE_DURABILITY requires replication, which is missing"
            );
        } else {
            info!("{}", found.describe());
        }
    }
}
