//! Thread that runs until its owner stops or drops it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

pub struct StoppableThread<T> {
    stop_sender: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

/// Tells the thread when to stop.
pub struct StopSignal(Receiver<()>);

impl StopSignal {
    /// Sleeps for `time`, or until the thread has to stop; returns whether it has to.
    pub fn is_stopped_within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}

impl<T: Send + 'static> StoppableThread<T> {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(name: &str, run: impl FnOnce(StopSignal) -> T + Send + 'static) -> io::Result<Self> {
        let (stop_sender, stop_receiver) = channel();
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || run(StopSignal(stop_receiver)))?;
        Ok(Self {
            stop_sender: Some(stop_sender),
            thread: Some(thread),
        })
    }

    /// Stops the thread and returns its result.
    pub fn stop(mut self) -> T {
        drop(self.stop_sender.take());
        let Some(thread) = self.thread.take() else {
            unreachable!("only this method and the drop handler take the thread")
        };
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T> Drop for StoppableThread<T> {
    fn drop(&mut self) {
        drop(self.stop_sender.take());
        if let Some(thread) = self.thread.take() {
            // A dropped thread means that the run failed with another error.
            let _ = thread.join();
        }
    }
}
