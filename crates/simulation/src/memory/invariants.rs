//! Invariants of the committed rows, checked after every step of a test.
//!
//! Each finding names the invariant and shows the rows that violate it.

mod audit;
mod deliveries;
mod events;
mod money;
mod orders;
mod stock;

use super::MemoryDatabase;

#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Adds a finding with `rows` unless the invariant holds.
    fn check(&mut self, name: &str, holds: bool, rows: impl FnOnce() -> String) {
        if !holds {
            self.0.push(format!("{name}: {}", rows()));
        }
    }
}

impl MemoryDatabase {
    /// Violations of invariants, with their rows.
    #[must_use]
    pub fn invariants(&self) -> Vec<String> {
        let (now, mut findings) = (self.now(), Findings::default());
        self.with(|state| {
            money::check(&state.tables, &mut findings);
            orders::check(&state.tables, &mut findings);
            stock::check(&state.tables, &mut findings);
            events::check(&state.tables, &mut findings);
            audit::check(&state.tables, &mut findings);
            deliveries::check(&state.tables, now, &mut findings);
        });
        findings.0
    }
}
