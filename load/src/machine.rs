//! On which machine was something measured, and what else did it do meanwhile? Figures of a busy machine are a lower bound,
//! and say so.

use std::fmt;

use serde::Serialize;

/// Where Linux says how busy it is.
const LOAD_AVERAGE: &str = "/proc/loadavg";

/// The machine, before a run and after it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Machine {
    /// Cores that this process may use; service, Postgres and generator share them.
    pub cores: usize,
    /// Load average of the last minute before the run; `None` where the system does not say.
    pub load_before: Option<f64>,
    /// And after it: the run itself is part of it.
    pub load_after: Option<f64>,
}

impl Machine {
    /// Looks before a run.
    #[must_use]
    pub fn observe_before() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load_average(),
            load_after: None,
        }
    }

    /// Looks again after it.
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

fn load_average() -> Option<f64> {
    first_number(&std::fs::read_to_string(LOAD_AVERAGE).ok()?)
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_is_the_first_number() {
        assert_eq!(first_number("3.25 2.00 1.00 2/345 6789\n"), Some(3.25));
        assert_eq!(first_number(""), None);
    }

    #[test]
    fn what_is_unknown_is_said_to_be() {
        let machine = Machine {
            cores: 2,
            load_before: Some(0.5),
            load_after: None,
        };
        assert_eq!(
            machine.to_string(),
            "2 cores, load average 0.50 before, unknown after"
        );
    }
}
