//! What did a request come to, and how often? By status and error code, with the first text of each kind of error.

use std::collections::BTreeMap;
use std::fmt;

use crate::client::{ApiResponse, RequestFailure};

/// Bytes of an error body that are shown as an example.
const MAX_EXAMPLE_BYTES: usize = 300;

/// What one order came to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// An answer with this status and, for errors, this code.
    Response {
        status: u16,
        /// The `error.code`, if the answer has one.
        code: Option<String>,
    },
    NotSent,
    Unknown,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response {
                status,
                code: Some(code),
            } => write!(f, "{status} {code}"),
            Self::Response { status, code: None } => write!(f, "{status}"),
            Self::NotSent => f.write_str("not sent"),
            Self::Unknown => f.write_str("outcome unknown"),
        }
    }
}

/// How often an outcome was seen.
#[derive(Clone, Debug, Default)]
pub struct OutcomeCount {
    pub count: u64,
    /// The text of the first error of this kind.
    pub example: Option<String>,
}

/// Outcomes with their counts.
pub type Outcomes = BTreeMap<Outcome, OutcomeCount>;

/// Enters one.
pub(crate) fn record_outcome(outcomes: &mut Outcomes, outcome: &Result<ApiResponse, RequestFailure>) {
    let (kind, example) = match outcome {
        Ok(answer) => {
            let error = !answer.status.is_success();
            let code = error.then(|| answer.error_code()).flatten();
            (
                Outcome::Response {
                    status: answer.status.as_u16(),
                    code,
                },
                error.then(|| excerpt(answer)),
            )
        }
        Err(failure @ RequestFailure::NotSent(_)) => (Outcome::NotSent, Some(failure.to_string())),
        Err(failure @ RequestFailure::Unknown(_)) => (Outcome::Unknown, Some(failure.to_string())),
    };
    let seen = outcomes.entry(kind).or_default();
    seen.count += 1;
    seen.example = seen.example.take().or(example);
}

/// Adds what another thread saw.
pub(crate) fn merge_outcomes(mine: &mut Outcomes, theirs: Outcomes) {
    for (kind, seen) in theirs {
        let sum = mine.entry(kind).or_default();
        sum.count += seen.count;
        sum.example = sum.example.take().or(seen.example);
    }
}

fn excerpt(answer: &ApiResponse) -> String {
    String::from_utf8_lossy(&answer.body[..answer.body.len().min(MAX_EXAMPLE_BYTES)]).into_owned()
}
