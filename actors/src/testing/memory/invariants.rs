//! What must hold of the committed rows after every step, whatever went wrong.
//!
//! Rule: each finding names the invariant and shows the rows; no finding is a store that is sound.

mod events;
mod money;
mod orders;
mod stock;
mod trail;

use super::MemoryDatabase;

/// What was found, a line each.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Notes `rows` under the invariant's name unless it holds.
    fn check(&mut self, name: &str, holds: bool, rows: impl FnOnce() -> String) {
        if !holds {
            self.0.push(format!("{name}: {}", rows()));
        }
    }
}

impl MemoryDatabase {
    /// Every violation of an invariant, with its rows.
    #[must_use]
    pub fn invariants(&self) -> Vec<String> {
        let mut findings = Findings::default();
        self.with(|state| {
            money::check(&state.tables, &mut findings);
            orders::check(&state.tables, &mut findings);
            stock::check(&state.tables, &mut findings);
            events::check(&state.tables, &mut findings);
            trail::check(&state.tables, &mut findings);
        });
        findings.0
    }
}
