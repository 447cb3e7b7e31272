//! Runtime for connections of one thread: the other cores are left to the service and the load.

/// A single-threaded runtime.
///
/// # Errors
/// If the system has no file descriptor left.
pub fn new_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
