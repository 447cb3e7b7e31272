//! Did the service do what it acknowledged? After a run: every unknown outcome settled by its key, no voucher twice,
//! sampled orders read back and replayed byte for byte, every order listed and no other, and each wallet fallen by exactly
//! what was acknowledged.
//!
//! Rule: what could not be checked has failed. A figure counts only with a clean audit.

mod account;
mod samples;
mod settle;
mod scenario_checks;

use std::fmt;

use serde::Serialize;

use crate::acknowledgements::Acknowledgements;
use crate::partner::PartnerClient;

pub use self::account::{AuditedPartner, WalletBalances, read_wallets};
pub use self::scenario_checks::{check_refusals, check_stable_responses, check_stock_sold, check_invariants};

/// One question and its answer.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    /// The numbers behind it, or what broke it.
    pub detail: String,
}

impl Check {
    pub(crate) fn new(name: &'static str, result: Result<String, String>) -> Self {
        let passed = result.is_ok();
        let (Ok(detail) | Err(detail)) = result;
        Self { name, passed, detail }
    }
}

/// All checks of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    /// The checks, in the order they were made.
    pub checks: Vec<Check>,
}

impl Audit {
    /// Whether every check holds.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let verdict = if check.passed { "ok    " } else { "FAILED" };
            writeln!(f, "  {verdict} {}: {}", check.name, check.detail)?;
        }
        Ok(())
    }
}

/// Audits a run of one partner. `opening` are the balances from before its first order; `None` if others spend from the
/// same wallets, so that their fall proves nothing.
pub async fn audit(client: &mut PartnerClient, books: Acknowledgements, opening: Option<WalletBalances>) -> Audit {
    audit_all(&mut [AuditedPartner::without_order_check(client.new_connection(), opening)], books)
        .await
        .0
}

/// Audits a run of several partners, in the order in which the run had them; gives the books back, in which all is settled.
pub async fn audit_all(accounts: &mut [AuditedPartner], mut books: Acknowledgements) -> (Audit, Acknowledgements) {
    accounts.iter_mut().for_each(AuditedPartner::reconnect);
    let settled = settle::settle(accounts, &mut books).await;
    let mut checks = vec![
        Check::new("unknown outcomes settled", settled),
        Check::new("orders acknowledged", well_formed(&books)),
        Check::new("no voucher twice", vouchers_unique(&mut books.vouchers)),
        Check::new("read back", samples::check_read_back(accounts, books.samples()).await),
        Check::new("replayed", samples::check_replay(accounts, books.samples()).await),
    ];
    if accounts.iter().any(AuditedPartner::has_exclusive_wallets) {
        checks.push(Check::new(
            "wallet",
            account::check_wallets_debited(accounts, &books.partners).await,
        ));
    }
    if accounts.iter().any(AuditedPartner::has_order_baseline) {
        checks.push(Check::new(
            "listed",
            account::check_orders_listed(accounts, &mut books.partners).await,
        ));
    }
    (Audit { checks }, books)
}

fn well_formed(books: &Acknowledgements) -> Result<String, String> {
    if let Some(first) = &books.first_malformed {
        let first = String::from_utf8_lossy(first);
        return Err(format!(
            "{} of {} are not as the contract says: {first}",
            books.malformed, books.orders
        ));
    }
    match books.orders {
        0 => Err("none, so nothing is proven".to_owned()),
        orders => Ok(format!("{orders} orders, {} vouchers", books.vouchers.len())),
    }
}

fn vouchers_unique(vouchers: &mut [u128]) -> Result<String, String> {
    // Sorting once is cheaper on the run than a set that is kept while the clock is ticking.
    vouchers.sort_unstable();
    let twice: Vec<_> = vouchers.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    match twice.first() {
        None => Ok(format!("{} distinct", vouchers.len())),
        Some(pair) => Err(format!("{} repeated, such as vch_{:032x}", twice.len(), pair[0])),
    }
}
