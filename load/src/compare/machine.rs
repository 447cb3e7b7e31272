//! On what was it measured, and what else was going on? Cores and load average, printed beside every figure.

use std::fmt;

use serde::Serialize;

/// The machine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// Processes that ran or wanted to, over the last minute; `None` where the system does not say.
    pub load_average: Option<f64>,
}

impl Machine {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_average: first_number(&text),
        }
    }
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cores, load average ", self.cores)?;
        match self.load_average {
            Some(load) => write!(f, "{load:.2}"),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_is_the_first_number() {
        assert_eq!(first_number("0.52 1.04 2.00 1/120 4242\n"), Some(0.52));
        assert_eq!(first_number(""), None);
    }
}
