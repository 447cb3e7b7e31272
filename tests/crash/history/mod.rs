//! Operation history in Jepsen style: one JSON event per line; an operation is an invocation with its
//! completion, if any.
//!
//! Rule: `fail` is a definite refusal, `info` an unknown outcome. An invocation without a completion counts
//! as `info`. A history contains hashes of codes, never codes.

pub(crate) mod check;
mod facts;
pub(crate) mod recorder;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EventKind {
    /// Written before sending.
    Invoke,
    Ok,
    /// Definite refusal, or definitely not sent.
    Fail,
    /// Unknown outcome: no response, an incomplete response, or 5xx.
    Info,
}

/// Called endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    Order,
    GetOrder,
    Codes,
}

/// Facts of a 2xx order response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderFacts {
    /// For example `DELIVERED`.
    pub(crate) order_status: String,
    /// The digits of the response.
    pub(crate) total_amount: String,
    pub(crate) currency: String,
    /// Voucher ids, in the order of the response.
    pub(crate) vouchers: Vec<String>,
}

/// Hash of the code of one voucher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodeFact {
    pub(crate) voucher_id: String,
    /// SHA-256 of code and PIN, hex.
    pub(crate) code_hash: String,
}

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Links a completion to its invocation.
    pub(crate) op_id: u64,
    /// Client number; a client has one operation in flight.
    pub(crate) proc: u32,
    #[serde(rename = "type")]
    pub(crate) kind: EventKind,
    pub(crate) f: Call,
    pub(crate) partner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// SHA-256 of the request body, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) req_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// `error.code` of an error response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// SHA-256 of the response body, hex; of an order that is read, as if no code had been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<OrderFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) codes: Option<Vec<CodeFact>>,
    /// Monotonic nanoseconds since the start of the recording.
    pub(crate) t_ns: u64,
}

impl Event {
    /// Whether the outcome is definite.
    pub(crate) fn is_definite(&self) -> bool {
        matches!(self.kind, EventKind::Ok | EventKind::Fail)
    }
}

/// An invocation with its completion, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) invoke: Event,
    pub(crate) completion: Option<Event>,
}

impl Op {
    /// The completion, if its outcome is definite.
    pub(crate) fn definite(&self) -> Option<&Event> {
        self.completion.as_ref().filter(|event| event.is_definite())
    }

    /// The completion, if it is a 2xx response.
    pub(crate) fn ok(&self) -> Option<&Event> {
        self.completion
            .as_ref()
            .filter(|event| event.kind == EventKind::Ok)
    }
}

/// Reason for an unreadable history.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    #[error("cannot read the history")]
    Read(#[source] std::io::Error),
    #[error("line {line} is not an event")]
    Parse {
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    #[error("operation {0} has two invocations")]
    InvokedTwice(u64),
    #[error("operation {0} has a completion without an open invocation")]
    NotOpen(u64),
}

/// Operations in the order of their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    ops: BTreeMap<u64, Op>,
}

impl History {
    /// # Errors
    /// If an id has two invocations, or a completion without an open invocation.
    pub(crate) fn from_events(events: impl IntoIterator<Item = Event>) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        for event in events {
            history.add(event)?;
        }
        Ok(history)
    }

    /// # Errors
    /// As [`History::from_events`].
    pub(crate) fn add(&mut self, event: Event) -> Result<(), HistoryError> {
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

    /// Reads a file with one event per line. Ignores a last line without a newline: the client stopped while
    /// it wrote the line, so its operation was not sent or its response not seen.
    ///
    /// # Errors
    /// [`HistoryError`] if the file is unreadable or contains anything else.
    pub(crate) fn read(path: &Path) -> Result<Self, HistoryError> {
        Self::parse(&std::fs::read(path).map_err(HistoryError::Read)?)
    }

    fn parse(text: &[u8]) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        let complete = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        for (index, line) in text[..complete]
            .split_inclusive(|byte| *byte == b'\n')
            .enumerate()
        {
            let event = serde_json::from_slice(line);
            history.add(event.map_err(|source| HistoryError::Parse {
                line: index + 1,
                source,
            })?)?;
        }
        Ok(history)
    }

    /// The operations in the order of their ids.
    pub(crate) fn ops(&self) -> impl Iterator<Item = &Op> {
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
    fn invocation_and_completion_are_paired() {
        let history = History::parse(format!("{INVOKE}\n{OK}\n").as_bytes()).unwrap();
        let op = history.ops().next().unwrap();
        assert_eq!(op.ok().unwrap().status, Some(201));
        assert_eq!(op.invoke.kind, EventKind::Invoke);
    }

    #[test]
    fn incomplete_last_line_leaves_operation_open() {
        let history = History::parse(format!("{INVOKE}\n{}", &OK[..40]).as_bytes()).unwrap();
        assert!(history.ops().next().unwrap().completion.is_none());
    }

    #[test]
    fn unpaired_events_are_rejected() {
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
