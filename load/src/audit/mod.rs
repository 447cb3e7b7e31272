//! Audit of a load run: settles unknown outcomes by key, checks that vouchers are unique, reads back and
//! replays sampled orders, compares order lists and wallets with what the service acknowledged.
//!
//! Rule: a check that could not run has failed. A figure counts only with a passed audit.

mod account;
mod samples;
mod scenario_checks;
mod settle;

use std::fmt;

use serde::Serialize;

use self::samples::check_samples;
use crate::tally::acknowledgements::Acknowledgements;

pub use self::account::{AuditedPartner, WalletBalances, read_wallets};
pub(crate) use self::scenario_checks::check_stock_sold;
pub use self::scenario_checks::{check_invariants, check_refusals, check_stable_responses};

/// Result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    /// Numbers of a passed check, or the reason of a failure.
    pub detail: String,
}

impl Check {
    #[must_use]
    pub fn new(name: &'static str, result: Result<String, String>) -> Self {
        let passed = result.is_ok();
        let (Ok(detail) | Err(detail)) = result;
        Self { name, passed, detail }
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.passed { "ok" } else { "FAILED" }
    }
}

/// Results of all checks of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    pub checks: Vec<Check>,
}

impl Audit {
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_checks(&self.checks))
    }
}

/// One line per check.
pub(crate) fn format_checks<'a>(checks: impl IntoIterator<Item = &'a Check>) -> String {
    let line = |check: &Check| format!("  {:<6} {}: {}\n", check.status(), check.name, check.detail);
    checks.into_iter().map(line).collect()
}

/// Audits a run of several partners, in the order of the run. Returns the acknowledgements with all unknown
/// outcomes settled.
pub async fn audit_all(
    accounts: &mut [AuditedPartner],
    mut acknowledgements: Acknowledgements,
) -> (Audit, Acknowledgements) {
    accounts.iter_mut().for_each(AuditedPartner::reconnect);
    let settled = settle::settle(accounts, &mut acknowledgements).await;
    let mut checks = check_responses(settled, &mut acknowledgements).to_vec();
    checks.extend([
        Check::new(
            "read back",
            check_samples(accounts, acknowledgements.samples(), samples::read_back).await,
        ),
        Check::new(
            "replayed",
            check_samples(accounts, acknowledgements.samples(), samples::replay).await,
        ),
    ]);
    if accounts.iter().any(AuditedPartner::has_exclusive_wallets) {
        checks.push(Check::new(
            "wallet",
            account::check_wallets_debited(accounts, &acknowledgements.partners).await,
        ));
    }
    if accounts.iter().any(AuditedPartner::has_order_baseline) {
        checks.push(Check::new(
            "listed",
            account::check_orders_listed(accounts, &mut acknowledgements.partners).await,
        ));
    }
    (Audit { checks }, acknowledgements)
}

/// Checks of the responses alone, given the result of settling unknown outcomes.
#[must_use]
pub fn check_responses(
    settled: Result<String, String>,
    acknowledgements: &mut Acknowledgements,
) -> [Check; 3] {
    [
        Check::new("unknown outcomes settled", settled),
        Check::new("orders acknowledged", check_well_formed(acknowledgements)),
        Check::new(
            "vouchers unique",
            check_vouchers_unique(&mut acknowledgements.vouchers),
        ),
    ]
}

fn check_well_formed(acknowledgements: &Acknowledgements) -> Result<String, String> {
    if let Some(first) = &acknowledgements.first_malformed {
        let first = String::from_utf8_lossy(first);
        return Err(format!(
            "{} of {} responses violate the API contract, first: {first}",
            acknowledgements.malformed, acknowledgements.orders
        ));
    }
    match acknowledgements.orders {
        0 => Err("no order was acknowledged; nothing is proven".to_owned()),
        orders => Ok(format!(
            "{orders} orders, {} vouchers",
            acknowledgements.vouchers.len()
        )),
    }
}

fn check_vouchers_unique(vouchers: &mut [u128]) -> Result<String, String> {
    // Sorting once after the run costs the run less than a hash set that grows during it.
    vouchers.sort_unstable();
    let repeated: Vec<_> = vouchers.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    match repeated.first() {
        None => Ok(format!("{} distinct", vouchers.len())),
        Some(pair) => Err(format!(
            "{} repeated, for example vch_{:032x}",
            repeated.len(),
            pair[0]
        )),
    }
}
