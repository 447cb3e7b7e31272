//! Stop signals: SIGTERM and SIGINT.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a stop signal and returns its name.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub(super) async fn wait_for_signal() -> anyhow::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
