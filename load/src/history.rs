//! What was asked and answered, in which order? Events, one JSON object a line, and operations: an invocation with
//! its completion, if there was one.
//!
//! Rule: `fail` is a definite refusal, `info` an outcome nobody knows yet; an invocation without a completion counts
//! as `info`. Codes never enter a history, only their hashes do.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What kind of line this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// About to be sent.
    Invoke,
    Ok,
    /// Definitely refused, or definitely never sent.
    Fail,
    /// Unknown: no answer, half an answer, or 5xx.
    Info,
}

/// What was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Order,
    GetOrder,
    Codes,
}

/// What a 2xx order answer says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderFacts {
    /// Its status, such as `DELIVERED`.
    pub order_status: String,
    /// The total as the digits that were sent.
    pub total_amount: String,
    pub currency: String,
    /// The voucher ids, in the order of the answer.
    pub vouchers: Vec<String>,
}

/// One voucher's code, as a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFact {
    pub voucher_id: String,
    /// SHA-256 over its code and pin, hex.
    pub code_hash: String,
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Ties a completion to its invocation.
    pub op_id: u64,
    /// The client that acted; it does one thing at a time.
    pub proc: u32,
    /// Invocation or kind of completion.
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub f: Call,
    pub partner: String,
    /// The Idempotency-Key of an order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// SHA-256 of the request's body, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub req_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The `error.code` of an error answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// SHA-256 of the answer's body, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<String>,
    /// The order asked for or answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// What a 2xx order answer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderFacts>,
    /// What a 2xx code answer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<CodeFact>>,
    /// Monotonic nanoseconds since the recording began.
    pub t_ns: u64,
}

impl Event {
    /// Whether it is a definite completion.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        matches!(self.kind, EventKind::Ok | EventKind::Fail)
    }
}

/// An invocation with its completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The line written before sending.
    pub invoke: Event,
    /// The line written after the answer; `None` if the client ended first.
    pub completion: Option<Event>,
}

impl Op {
    /// The completion, if the outcome is certain.
    #[must_use]
    pub fn definite(&self) -> Option<&Event> {
        self.completion.as_ref().filter(|event| event.is_definite())
    }

    /// The completion, if it is a 2xx answer.
    #[must_use]
    pub fn ok(&self) -> Option<&Event> {
        self.completion
            .as_ref()
            .filter(|event| event.kind == EventKind::Ok)
    }
}

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file could not be read.
    #[error("cannot read the history")]
    Read(#[source] std::io::Error),
    /// A whole line is not an event.
    #[error("line {line} is not an event")]
    Parse {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Two invocations carry one id.
    #[error("operation {0} is invoked twice")]
    InvokedTwice(u64),
    /// A completion without an open invocation.
    #[error("operation {0} completes without being open")]
    NotOpen(u64),
}

/// Operations in the order of their invocation ids.
#[derive(Clone, Debug, Default)]
pub struct History {
    ops: BTreeMap<u64, Op>,
}

impl History {
    /// Pairs invocations with completions.
    ///
    /// # Errors
    /// When an id is invoked twice or completes without being open.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        for event in events {
            history.add(event)?;
        }
        Ok(history)
    }

    /// Adds the next event.
    ///
    /// # Errors
    /// When its id is invoked twice or completes without being open.
    pub fn add(&mut self, event: Event) -> Result<(), HistoryError> {
        let op_id = event.op_id;
        if event.kind == EventKind::Invoke {
            return match self.ops.insert(
                op_id,
                Op {
                    invoke: event,
                    completion: None,
                },
            ) {
                None => Ok(()),
                Some(_) => Err(HistoryError::InvokedTwice(op_id)),
            };
        }
        match self.ops.get_mut(&op_id) {
            Some(op) if op.completion.is_none() => {
                op.completion = Some(event);
                Ok(())
            }
            _ => Err(HistoryError::NotOpen(op_id)),
        }
    }

    /// Reads a file of one event a line. A last line without its line end is left out: the client was stopped while
    /// writing it, and what it announces was never sent or never heard.
    ///
    /// # Errors
    /// [`HistoryError`] when the file is unreadable or holds anything else.
    pub fn read(path: &Path) -> Result<Self, HistoryError> {
        Self::parse(&std::fs::read(path).map_err(HistoryError::Read)?)
    }

    fn parse(text: &[u8]) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        for (index, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            let event = serde_json::from_slice(line);
            history.add(event.map_err(|source| HistoryError::Parse {
                line: index + 1,
                source,
            })?)?;
        }
        Ok(history)
    }

    /// The operations, by invocation id.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.ops.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVOKE: &str =
        r#"{"op_id":1,"proc":0,"type":"invoke","f":"order","partner":"p","key":"k","t_ns":1}"#;
    const OK: &str =
        r#"{"op_id":1,"proc":0,"type":"ok","f":"order","partner":"p","key":"k","status":201,"t_ns":2}"#;

    #[test]
    fn lines_pair_up() {
        let history = History::parse(format!("{INVOKE}\n{OK}\n").as_bytes()).unwrap();
        let op = history.ops().next().unwrap();
        assert_eq!(op.ok().unwrap().status, Some(201));
        assert_eq!(op.invoke.kind, EventKind::Invoke);
    }

    #[test]
    fn a_torn_last_line_leaves_the_operation_open() {
        let history = History::parse(format!("{INVOKE}\n{}", &OK[..40]).as_bytes()).unwrap();
        assert!(history.ops().next().unwrap().completion.is_none());
    }

    #[test]
    fn what_does_not_pair_is_refused() {
        let parse = |text: String| History::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(
            parse(format!("{INVOKE}\n{INVOKE}\n")),
            HistoryError::InvokedTwice(1)
        ));
        assert!(matches!(parse(format!("{OK}\n")), HistoryError::NotOpen(1)));
        assert!(matches!(
            parse(format!("{INVOKE}\n{OK}\n{OK}\n")),
            HistoryError::NotOpen(1)
        ));
        assert!(matches!(
            parse(format!("{INVOKE}\n{{}}\n")),
            HistoryError::Parse { line: 2, .. }
        ));
    }
}
