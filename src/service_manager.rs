//! State notifications to the service manager: systemd's `sd_notify` protocol.
//!
//! Without `NOTIFY_SOCKET` in the environment nothing is sent.

use sd_notify::NotifyState;
use tracing::warn;

use crate::settings::ServeSettings;

/// The listeners accept requests.
pub(crate) fn notify_ready(settings: &ServeSettings) {
    let (partners, operators) = (settings.http_addr, settings.admin_addr);
    let status = format!("serving partners on {partners}, operators on {operators}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// New requests are rejected from now on.
pub(crate) fn notify_stopping() {
    let status = "finishing requests in flight";
    notify(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Restarts the watchdog timer if the unit sets `WatchdogSec`.
pub(crate) fn keep_alive() {
    if sd_notify::watchdog_enabled().is_some() {
        notify(&[NotifyState::Watchdog]);
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(error.message = %error, "cannot notify the service manager");
    }
}
