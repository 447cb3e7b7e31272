//! Thresholds of a run: conditions on its figures, and on their ratios to a baseline.

use serde_json::Value;

use super::figures::figure_of;
use crate::audit::Check;
use crate::condition::Condition;
use crate::resources::costs::format_value;

/// One check per threshold. It passes if the condition holds for the run.
pub(super) fn check_thresholds(thresholds: &[Condition], run: &Value) -> Vec<Check> {
    let check = |threshold: &Condition| {
        let value = figure_of(run, &threshold.figure);
        let detail = format!("{threshold}: {}", format_value(value));
        let is_met = value.is_some_and(|value| threshold.is_met_by(value));
        Check::new("threshold", if is_met { Ok(detail) } else { Err(detail) })
    };
    thresholds.iter().map(check).collect()
}

/// One check per condition. It fails if the condition holds for the ratio to the baseline, or if there is no
/// ratio.
pub(super) fn check_ratios(conditions: &[Condition], baseline: &Value, run: &Value) -> Vec<Check> {
    let check = |condition: &Condition| {
        let [earlier, current] = [baseline, run].map(|run| figure_of(run, &condition.figure));
        let ratio = earlier
            .zip(current)
            .filter(|(earlier, _)| *earlier > 0.0)
            .map(|(earlier, current)| current / earlier);
        let values = format!("{} then, {} now", format_value(earlier), format_value(current));
        let result = match ratio {
            None => Err(format!("{condition}: no ratio, {values}")),
            Some(ratio) => {
                let detail = format!("{condition}: {ratio:.3} ×, {values}");
                if condition.is_met_by(ratio) {
                    Err(detail)
                } else {
                    Ok(detail)
                }
            }
        };
        Check::new("fail if", result)
    };
    conditions.iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conditions(texts: &[&str]) -> Vec<Condition> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn threshold_without_a_value_is_missed() {
        let run = json!({ "failed_share": 0.25, "memory": null });
        let checks = check_thresholds(
            &conditions(&[
                "failed_share <= 0.25",
                "failed_share<0.25",
                "memory < 9",
                "unknown < 9",
            ]),
            &run,
        );
        let shown: Vec<_> = checks
            .iter()
            .map(|check| (check.passed, check.detail.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                (true, "failed_share <= 0.25: 0.250"),
                (false, "failed_share < 0.25: 0.250"),
                (false, "memory < 9: not measured"),
                (false, "unknown < 9: not measured"),
            ]
        );
    }

    #[test]
    fn ratio_beyond_the_limit_fails() {
        let (earlier, current) = (
            json!({ "orders_per_s": 1_000.0, "measured_s": 0.0 }),
            json!({ "orders_per_s": 150.0, "measured_s": 1.0 }),
        );
        let checks = |earlier, current, text| check_ratios(&conditions(&[text]), earlier, current);
        let slower = &checks(&earlier, &current, "orders_per_s<0.95")[0];
        assert!(!slower.passed && slower.detail.contains("0.150 ×"), "{slower:?}");
        assert!(checks(&current, &earlier, "orders_per_s<0.95")[0].passed);
        // 0 cannot be compared, and a gate that cannot decide does not pass.
        assert!(!checks(&earlier, &current, "measured_s>1.05")[0].passed);
    }
}
