//! Cores and load average of the machine before and after a measurement. Figures of a busy machine are a lower bound.

use std::fmt;

use serde::Serialize;

/// Cores and load average.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Machine {
    /// Cores available to this process. Service, Postgres and generator share them.
    pub cores: usize,
    /// One-minute load average before the run; `None` if the system does not report it.
    pub load_before: Option<f64>,
    /// One-minute load average after the run, which includes the run itself.
    pub load_after: Option<f64>,
}

impl Machine {
    /// Reads the load average before a run.
    #[must_use]
    pub fn observe_before() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load_average(),
            load_after: None,
        }
    }

    /// Adds the load average after the run.
    #[must_use]
    pub fn observe_after(self) -> Self {
        Self {
            load_after: load_average(),
            ..self
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
        write!(
            f,
            "{} cores, load average {} before, {} after",
            self.cores,
            text(self.load_before),
            text(self.load_after)
        )
    }
}

/// The first number of Linux's `/proc/loadavg`.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
