//! Did a scenario do what it is for, and what does the service's own side say? Refusals that belong to it, answers that
//! stay the same, stock that is gone, and every invariant on the database.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::Check;
use crate::sent_orders::ResponseMismatches;
use crate::deployment::seed::PRODUCT_PREFIX;
use crate::deployment::operator::Operator;
use crate::tally::{Outcome, Tally};
use crate::traffic::RequestKind;
use crate::wire::ListView;

/// SKUs of one page of stock levels: the most that a list gives.
const PAGE: usize = 100;

/// What a duplicate may always be told: its order is still under way.
const IN_PROGRESS: &str = "409 IDEMPOTENCY_IN_PROGRESS";

#[derive(Deserialize)]
struct Level {
    product_id: String,
    sold: u64,
}

/// No outcome but success and those that belong to the scenario.
#[must_use]
pub fn check_refusals(tally: &Tally, refusals: &[String]) -> Check {
    let orders = tally.measured.iter().chain(&tally.warm_up);
    let orders = orders.map(|(outcome, seen)| (RequestKind::Order, outcome, seen.count));
    let beside = tally.background.iter().flat_map(|(kind, beside)| {
        let outcomes = beside.measured.iter();
        outcomes.map(|(outcome, seen)| (*kind, outcome, seen.count))
    });
    let (mut expected, mut strange) = (0, Vec::new());
    for (kind, outcome, count) in orders.chain(beside) {
        if matches!(outcome, Outcome::Response { status: 200..300, .. }) {
            continue;
        }
        let text = outcome.to_string();
        let in_progress = kind == RequestKind::Duplicate && text == IN_PROGRESS;
        if in_progress || refusals.contains(&text) {
            expected += count;
        } else {
            strange.push(format!("{kind}: {text} × {count}"));
        }
    }
    let result = if strange.is_empty() {
        Ok(format!("{expected}, all of them kinds that belong to it"))
    } else {
        Err(strange.join(", "))
    };
    Check::new("refusals expected", result)
}

/// Whatever was kept under a key, or read again, was the same.
#[must_use]
pub fn check_stable_responses(broken: &ResponseMismatches) -> Check {
    let ResponseMismatches {
        compared,
        count,
        first,
    } = broken;
    let result = match first {
        None => Ok(format!("{compared} compared")),
        Some(first) => Err(format!("{count} of {compared} differ, the first {first}")),
    };
    Check::new("answers stay the same", result)
}

/// As many vouchers are sold as were acknowledged.
pub async fn check_stock_sold(operator: &mut Operator, acknowledged: usize) -> Check {
    let result = match sold(operator).await {
        Ok(sold) if sold == acknowledged as u64 => Ok(format!("{sold} sold")),
        Ok(sold) => Err(format!("{sold} sold, {acknowledged} acknowledged")),
        Err(error) => Err(error),
    };
    Check::new("stock", result)
}

async fn sold(operator: &mut Operator) -> Result<u64, String> {
    let (mut sold, mut path) = (0, format!("/admin/v1/stock?limit={PAGE}"));
    loop {
        let answer = operator.get(&path).await.map_err(|error| error.to_string())?;
        let page: ListView<Level> = answer
            .json()
            .map_err(|error| format!("no list of levels: {error}"))?;
        let ours = page
            .data
            .iter()
            .filter(|level| level.product_id.starts_with(PRODUCT_PREFIX));
        sold += ours.map(|level| level.sold).sum::<u64>();
        let Some(cursor) = page.next_cursor else {
            return Ok(sold);
        };
        path = format!("/admin/v1/stock?limit={PAGE}&cursor={cursor}");
    }
}

/// `vouchsafe verify` finds every invariant kept on the database of this data directory. Blocks.
#[must_use]
pub fn check_invariants(program: &Path, data_dir: &Path) -> Check {
    let mut command = Command::new(program);
    command
        .arg("verify")
        .arg("--data-dir")
        .arg(data_dir)
        .env_remove("DATABASE_URL");
    let result = match command.output() {
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            let last = text.lines().last().unwrap_or_default().to_owned();
            if said.status.success() {
                Ok(last)
            } else {
                let broken: Vec<_> = text.lines().filter(|line| line.starts_with("BROKEN")).collect();
                let error = String::from_utf8_lossy(&said.stderr).into_owned();
                Err(format!("{} {}{error}", said.status, broken.join("; ")))
            }
        }
        Err(error) => Err(format!("{}: {error}", program.display())),
    };
    Check::new("invariants on the database", result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::OutcomeCount;

    fn seen(outcomes: &[(&str, u16)]) -> Tally {
        let mut tally = Tally::new(0);
        for (code, status) in outcomes {
            let outcome = Outcome::Response {
                status: *status,
                code: (!code.is_empty()).then(|| (*code).to_owned()),
            };
            let seen = OutcomeCount {
                count: 2,
                example: None,
            };
            tally.measured.insert(outcome, seen);
        }
        tally
    }

    #[test]
    fn a_refusal_that_does_not_belong_fails() {
        let tally = seen(&[("", 201), ("INSUFFICIENT_INVENTORY", 409)]);
        let check = check_refusals(&tally, &["409 INSUFFICIENT_INVENTORY".to_owned()]);
        assert!(check.passed && check.detail.starts_with("2,"), "{}", check.detail);
        let check = check_refusals(&tally, &[]);
        assert!(!check.passed);
        assert_eq!(check.detail, "order: 409 INSUFFICIENT_INVENTORY × 2");
    }

    #[test]
    fn an_answer_that_changed_fails() {
        let mut broken = ResponseMismatches::default();
        assert!(check_stable_responses(&broken).passed);
        broken.count = 1;
        broken.first = Some("under its key, otherwise".to_owned());
        assert!(!check_stable_responses(&broken).passed);
    }

    #[test]
    fn a_verifier_that_cannot_run_fails() {
        let check = check_invariants(Path::new("/nonexistent/vouchsafe"), Path::new("/nonexistent"));
        assert!(!check.passed, "{}", check.detail);
    }
}
