//! Who tells the service to stop? Whoever sends SIGTERM, and a terminal with SIGINT.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal, and says its name.
///
/// # Errors
/// When the operating system lets nobody wait for signals.
pub(super) async fn told_to_stop() -> anyhow::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
