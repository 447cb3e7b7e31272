//! Text report of the consoles' cost: rates of each round and their ratio.

use std::fmt;

use super::ConsolesReport;

impl fmt::Display for ConsolesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.conditions)?;
        let consoles = self.consoles;
        writeln!(
            f,
            "{:<8}{:>20}{:>20}{:>8}{:>12}{:>12}{:>10}{:>8}",
            "round",
            "orders/s without",
            format!("with {consoles} consoles"),
            "ratio",
            "p99 ms",
            "p99 ms with",
            "events",
            "pages"
        )?;
        for (number, round) in (1..).zip(&self.rounds) {
            let (without, with) = (&round.without, &round.with);
            writeln!(
                f,
                "{number:<8}{:>20.0}{:>20.0}{:>8.3}{:>12.1}{:>12.1}{:>10}{:>8}",
                without.orders_per_s,
                with.orders_per_s,
                with.orders_per_s / without.orders_per_s,
                without.latency_ms.p99,
                with.latency_ms.p99,
                round.received.events,
                round.received.pages,
            )?;
            if let Some(reason) = self.rejection_reason(round) {
                writeln!(f, "round {number} does not count: {reason}")?;
            }
        }
        if let (Some(ratio), Some(last)) = (self.ratio(), self.rounds.last()) {
            writeln!(
                f,
                "\n{} live actors, {consoles} consoles: {:.1} % fewer orders/s (median of {} rounds; {:.1} to {:.1})",
                last.actors,
                (1.0 - ratio.median) * 100.0,
                ratio.count,
                (1.0 - ratio.max) * 100.0,
                (1.0 - ratio.min) * 100.0,
            )?;
        }
        let status = if self.verified.passed { "ok" } else { "FAILED" };
        writeln!(f, "{status}  {}: {}", self.verified.name, self.verified.detail)
    }
}
