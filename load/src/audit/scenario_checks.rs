//! Audit checks of scenarios: expected refusals, stable responses, sold stock, and database invariants.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use vouchsafe_api_client::wire::ListView;

use super::Check;
use crate::deployment::operator::Operator;
use crate::deployment::seed::PRODUCT_PREFIX;
use crate::tally::sent_orders::ResponseMismatches;
use crate::tally::{Outcome, Tally};
use crate::traffic::request::RequestKind;

/// Page size: the maximum of the API.
const PAGE: usize = 100;

/// A duplicate may always receive this while its order is in progress.
const IN_PROGRESS: &str = "409 IDEMPOTENCY_IN_PROGRESS";

#[derive(Deserialize)]
struct StockLevel {
    product_id: String,
    sold: u64,
}

/// Checks that all outcomes are successes or expected refusals.
#[must_use]
pub fn check_refusals(tally: &Tally, refusals: &[String]) -> Check {
    let orders = tally.measured.iter().chain(&tally.warm_up);
    let orders = orders.map(|(outcome, count)| (RequestKind::Order, outcome, count.count));
    let background = tally.background.iter().flat_map(|(kind, background)| {
        let outcomes = background.measured.iter();
        outcomes.map(|(outcome, count)| (*kind, outcome, count.count))
    });
    let (mut expected, mut unexpected) = (0, Vec::new());
    for (kind, outcome, count) in orders.chain(background) {
        if matches!(outcome, Outcome::Response { status: 200..300, .. }) {
            continue;
        }
        let text = outcome.to_string();
        let in_progress = kind == RequestKind::Duplicate && text == IN_PROGRESS;
        if in_progress || refusals.contains(&text) {
            expected += count;
        } else {
            unexpected.push(format!("{kind}: {text} × {count}"));
        }
    }
    let result = if unexpected.is_empty() {
        Ok(format!("{expected}, all expected"))
    } else {
        Err(unexpected.join(", "))
    };
    Check::new("expected refusals", result)
}

/// Checks that duplicates and reads returned the stored responses.
#[must_use]
pub fn check_stable_responses(mismatches: &ResponseMismatches) -> Check {
    let ResponseMismatches {
        compared,
        count,
        first,
    } = mismatches;
    let result = match first {
        None => Ok(format!("{compared} compared")),
        Some(first) => Err(format!("{count} of {compared} differ, first: {first}")),
    };
    Check::new("stable responses", result)
}

/// Checks that the number of sold vouchers equals the number of acknowledged ones.
pub(crate) async fn check_stock_sold(operator: &mut Operator, acknowledged: usize) -> Check {
    let result = match count_sold(operator).await {
        Ok(sold) if sold == acknowledged as u64 => Ok(format!("{sold} sold")),
        Ok(sold) => Err(format!("{sold} sold, {acknowledged} acknowledged")),
        Err(error) => Err(error),
    };
    Check::new("stock", result)
}

async fn count_sold(operator: &mut Operator) -> Result<u64, String> {
    let (mut sold, mut path) = (0, format!("/admin/v1/stock?limit={PAGE}"));
    loop {
        let response = operator.get(&path).await.map_err(|error| error.to_string())?;
        let page: ListView<StockLevel> = response
            .json()
            .map_err(|error| format!("invalid list of stock levels: {error}"))?;
        let load_products = page
            .data
            .iter()
            .filter(|level| level.product_id.starts_with(PRODUCT_PREFIX));
        sold += load_products.map(|level| level.sold).sum::<u64>();
        let Some(cursor) = page.next_cursor else {
            return Ok(sold);
        };
        path = format!("/admin/v1/stock?limit={PAGE}&cursor={cursor}");
    }
}

/// Runs `vouchsafe verify` on the database of a data directory. Blocks.
#[must_use]
pub fn check_invariants(program: &Path, data_dir: &Path) -> Check {
    let mut command = Command::new(program);
    command
        .arg("verify")
        .arg("--data-dir")
        .arg(data_dir)
        .env_remove("DATABASE_URL");
    let result = match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let last = text.lines().last().unwrap_or_default().to_owned();
            if output.status.success() {
                Ok(last)
            } else {
                let violations: Vec<_> = text.lines().filter(|line| line.starts_with("BROKEN")).collect();
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(format!("{} {}{error}", output.status, violations.join("; ")))
            }
        }
        Err(error) => Err(format!("{}: {error}", program.display())),
    };
    Check::new("database invariants", result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::OutcomeCount;

    fn tally_with(outcomes: &[(&str, u16)]) -> Tally {
        let mut tally = Tally::new(0, std::time::Instant::now());
        for (code, status) in outcomes {
            let outcome = Outcome::Response {
                status: *status,
                code: (!code.is_empty()).then(|| (*code).to_owned()),
            };
            let count = OutcomeCount {
                count: 2,
                example: None,
            };
            tally.measured.insert(outcome, count);
        }
        tally
    }

    #[test]
    fn unexpected_refusal_fails() {
        let tally = tally_with(&[("", 201), ("INSUFFICIENT_INVENTORY", 409)]);
        let check = check_refusals(&tally, &["409 INSUFFICIENT_INVENTORY".to_owned()]);
        assert!(check.passed && check.detail.starts_with("2,"), "{}", check.detail);
        let check = check_refusals(&tally, &[]);
        assert!(!check.passed);
        assert_eq!(check.detail, "order: 409 INSUFFICIENT_INVENTORY × 2");
    }

    #[test]
    fn changed_response_fails() {
        let mut mismatches = ResponseMismatches::default();
        assert!(check_stable_responses(&mismatches).passed);
        mismatches.count = 1;
        mismatches.first = Some("different response under the key".to_owned());
        assert!(!check_stable_responses(&mismatches).passed);
    }

    #[test]
    fn verifier_that_cannot_run_fails() {
        let check = check_invariants(Path::new("/nonexistent/vouchsafe"), Path::new("/nonexistent"));
        assert!(!check.passed, "{}", check.detail);
    }
}
