//! Condition on a figure of a report, such as `service_cpu > 1.05` or `latency_ms.p99 <= 50`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Comparison of a figure with a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    /// Name of a figure, or the path of a number in the JSON report with dots between the keys.
    pub figure: String,
    comparison: Operator,
    limit: f64,
}

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a condition: write a figure, one of < <= > >=, and a number, for example `service_cpu>1.05`"
)]
pub struct ConditionError(String);

/// Longer operators first: each begins with a shorter one.
const OPERATORS: [(&str, Operator); 4] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Below),
    (">", Operator::Above),
];

impl Condition {
    /// Whether the condition holds for a value of the figure.
    #[must_use]
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.comparison {
            Operator::Below => value < self.limit,
            Operator::AtMost => value <= self.limit,
            Operator::Above => value > self.limit,
            Operator::AtLeast => value >= self.limit,
        }
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let error = || ConditionError(text.to_owned());
        let start = text.find(['<', '>']).ok_or_else(error)?;
        let (figure, rest) = text.split_at(start);
        let (limit, comparison) = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((rest.strip_prefix(sign)?, *operator)))
            .ok_or_else(error)?;
        let limit: f64 = limit.trim().parse().map_err(|_| error())?;
        let figure = figure.trim();
        if figure.is_empty() || !limit.is_finite() {
            return Err(error());
        }
        Ok(Self {
            figure: figure.to_owned(),
            comparison,
            limit,
        })
    }
}

impl TryFrom<String> for Condition {
    type Error = ConditionError;

    fn try_from(text: String) -> Result<Self, ConditionError> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = OPERATORS
            .iter()
            .find(|(_, operator)| *operator == self.comparison);
        let sign = own.map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.figure, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_is_parsed_with_and_without_spaces() {
        for (text, shown, holds, fails) in [
            ("service_cpu>1.05", "service_cpu > 1.05", 1.06, 1.05),
            ("latency_ms.p99 <= 50", "latency_ms.p99 <= 50", 50.0, 50.1),
            ("orders_per_s>=950", "orders_per_s >= 950", 950.0, 949.0),
            (
                "outcomes.409 INSUFFICIENT_INVENTORY < 3",
                "outcomes.409 INSUFFICIENT_INVENTORY < 3",
                2.0,
                3.0,
            ),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), shown);
            assert!(
                condition.is_met_by(holds) && !condition.is_met_by(fails),
                "{text}"
            );
            assert!(!condition.is_met_by(f64::NAN), "{text}");
        }
    }

    #[test]
    fn other_text_is_rejected() {
        for text in [
            "", "p99", "p99=5", "p99>", "> 5", "p99>x", "p99>inf", "p99>>5", "p99>5ms",
        ] {
            assert_eq!(text.parse::<Condition>(), Err(ConditionError(text.to_owned())));
        }
    }
}
