//! CPU time that other work took from a measurement: processes besides service, Postgres and generator, and
//! steal time of a virtual machine.

use std::fmt;

use serde::Serialize;

use super::costs::OrderCosts;
use super::proc::MachineCpuTime;

/// Above this share figures are a lower bound. Kernel threads, which also count, stay below it.
const SIGNIFICANT_SHARE: f64 = 0.05;

/// Shares of the CPU time of all cores, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OtherWork {
    /// Other processes and steal time; `None` if the processes of the service are unknown.
    pub share: Option<f64>,
    /// Time in which the hypervisor ran other machines.
    pub steal_share: f64,
}

impl OtherWork {
    /// Shares between two readings; `costs` are those of the same interval.
    pub(crate) fn between(
        before: MachineCpuTime,
        after: MachineCpuTime,
        costs: Option<&OrderCosts>,
    ) -> Option<Self> {
        let seconds = |of: fn(&MachineCpuTime) -> std::time::Duration| {
            of(&after).saturating_sub(of(&before)).as_secs_f64()
        };
        let total_s = seconds(|time| time.busy) + seconds(|time| time.idle);
        let other_s =
            |costs: &OrderCosts| Some(costs.other_processes_us? * costs.orders as f64 / 1_000_000.0);
        (total_s > 0.0).then(|| Self {
            share: costs.and_then(other_s).map(|other_s| other_s / total_s),
            steal_share: seconds(|time| time.steal) / total_s,
        })
    }

    /// The larger one of both shares.
    #[must_use]
    pub fn highest_share(&self) -> f64 {
        self.share.unwrap_or_default().max(self.steal_share)
    }

    /// Whether figures are a lower bound.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.highest_share() > SIGNIFICANT_SHARE
    }
}

impl fmt::Display for OtherWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        match self.share {
            Some(share) => write!(f, "{:.1} % of the CPU time, ", percent(share))?,
            None => f.write_str("processes of others are not told apart from the service, ")?,
        }
        write!(f, "steal time {:.1} %", percent(self.steal_share))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn time(busy_s: u64, idle_s: u64, steal_s: u64) -> MachineCpuTime {
        MachineCpuTime {
            busy: Duration::from_secs(busy_s),
            idle: Duration::from_secs(idle_s),
            steal: Duration::from_secs(steal_s),
        }
    }

    fn costs(other_processes_us: f64) -> OrderCosts {
        OrderCosts {
            orders: 1_000_000,
            other_processes_us: Some(other_processes_us),
            ..OrderCosts::default()
        }
    }

    #[test]
    fn other_processes_and_steal_are_significant_above_five_percent() {
        let (before, after) = (time(10, 10, 0), time(80, 40, 0));
        // 100 s of CPU time; each microsecond per order is one percent.
        for (other_us, significant) in [(4.0, false), (6.0, true)] {
            let other = OtherWork::between(before, after, Some(&costs(other_us))).unwrap();
            assert_eq!(other.share, Some(other_us / 100.0));
            assert_eq!(other.is_significant(), significant, "{other}");
        }
        for (steal_s, significant) in [(4, false), (6, true)] {
            let other = OtherWork::between(before, time(80, 40, steal_s), None).unwrap();
            assert_eq!(
                (other.share, other.is_significant()),
                (None, significant),
                "{other}"
            );
        }
        assert_eq!(OtherWork::between(before, before, None), None);
    }
}
