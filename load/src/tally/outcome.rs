//! Request outcomes by status and error code, with counts and the first error text of each kind.

use std::collections::BTreeMap;
use std::fmt;

use vouchsafe_api_client::{ApiResponse, RequestFailure};

/// Maximum length of an error body in reports, in bytes.
const MAX_EXAMPLE_BYTES: usize = 300;

/// Outcome of one request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A response with this status and, for errors, this code.
    Response {
        status: u16,
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

/// Count of one outcome.
#[derive(Clone, Debug, Default)]
pub struct OutcomeCount {
    pub count: u64,
    /// Text of the first error of this kind.
    pub example: Option<String>,
}

pub type Outcomes = BTreeMap<Outcome, OutcomeCount>;

pub(crate) fn record_outcome(outcomes: &mut Outcomes, outcome: &Result<ApiResponse, RequestFailure>) {
    let (kind, example) = match outcome {
        Ok(response) => {
            let error = !response.status.is_success();
            let code = error.then(|| response.error_code()).flatten();
            (
                Outcome::Response {
                    status: response.status.as_u16(),
                    code,
                },
                error.then(|| excerpt(response)),
            )
        }
        Err(failure @ RequestFailure::NotSent(_)) => (Outcome::NotSent, Some(failure.to_string())),
        Err(failure @ RequestFailure::Unknown(_)) => (Outcome::Unknown, Some(failure.to_string())),
    };
    let count = outcomes.entry(kind).or_default();
    count.count += 1;
    count.example = count.example.take().or(example);
}

pub(crate) fn merge_outcomes(own: &mut Outcomes, added: Outcomes) {
    for (kind, count) in added {
        let sum = own.entry(kind).or_default();
        sum.count += count.count;
        sum.example = sum.example.take().or(count.example);
    }
}

/// The beginning of a response body.
pub(crate) fn excerpt(response: &ApiResponse) -> String {
    String::from_utf8_lossy(&response.body[..response.body.len().min(MAX_EXAMPLE_BYTES)]).into_owned()
}
