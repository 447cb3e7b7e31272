//! How does a running test write its history? An invocation before sending, a completion after the answer; each
//! line whole, in memory and, if asked for, in a file.
//!
//! Rule: with [`Durability::SyncInvoke`] the invocation is on disk before [`Recorder::invoke`] returns, so that no
//! order can exist that the history does not know. That call then blocks its thread for the length of an fsync.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::client::{ApiResponse, RequestFailure};
use crate::facts;
use crate::history::{Call, Event, EventKind, History};

/// When a line must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Handed to the operating system: survives the end of this process.
    Written,
    /// The invocation is synced before it is sent: survives the end of the machine.
    SyncInvoke,
}

/// What is about to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    proc: u32,
    call: Call,
    partner: &'a str,
    key: Option<&'a str>,
    body: Option<&'a [u8]>,
    order_id: Option<&'a str>,
}

impl<'a> Intent<'a> {
    /// Client `proc` of `partner` posts an order.
    #[must_use]
    pub fn order(proc: u32, partner: &'a str, key: &'a str, body: &'a [u8]) -> Self {
        Self {
            proc,
            call: Call::Order,
            partner,
            key: Some(key),
            body: Some(body),
            order_id: None,
        }
    }

    /// Client `proc` of `partner` reads an order back.
    #[must_use]
    pub fn get_order(proc: u32, partner: &'a str, order_id: &'a str) -> Self {
        Self {
            proc,
            call: Call::GetOrder,
            partner,
            key: None,
            body: None,
            order_id: Some(order_id),
        }
    }

    /// Client `proc` of `partner` fetches an order's codes.
    #[must_use]
    pub fn codes(proc: u32, partner: &'a str, order_id: &'a str) -> Self {
        Self {
            call: Call::Codes,
            ..Self::get_order(proc, partner, order_id)
        }
    }
}

/// An operation that was announced and not completed yet. Dropped, it stays open in the history.
#[must_use]
#[derive(Debug)]
pub struct PendingOperation(Event);

/// Writes a history; shared by all clients of a test.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    durability: SyncPolicy,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    events: Vec<Event>,
    file: Option<File>,
}

impl Recorder {
    /// Records in memory alone.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::over(None, SyncPolicy::Written)
    }

    /// Records in memory and into a new file.
    ///
    /// # Errors
    /// When the file exists already or cannot be made.
    pub fn create(path: &Path, durability: SyncPolicy) -> io::Result<Self> {
        Ok(Self::over(Some(File::create_new(path)?), durability))
    }

    fn over(file: Option<File>, durability: SyncPolicy) -> Self {
        Self {
            began: Instant::now(),
            durability,
            log: Mutex::new(Log {
                events: Vec::new(),
                file,
            }),
        }
    }

    /// Writes down what is about to be sent; send only after this returned.
    ///
    /// # Errors
    /// When the file cannot be written or synced.
    pub fn invoke(&self, intent: Intent<'_>) -> io::Result<PendingOperation> {
        let mut log = self.log();
        let event = Event {
            op_id: log.events.len() as u64,
            proc: intent.proc,
            kind: EventKind::Invoke,
            f: intent.call,
            partner: intent.partner.to_owned(),
            key: intent.key.map(str::to_owned),
            req_hash: intent.body.map(facts::sha256_hex),
            status: None,
            code: None,
            body_hash: None,
            order_id: intent.order_id.map(str::to_owned),
            order: None,
            codes: None,
            t_ns: self.now_ns(),
        };
        log.write(event.clone())?;
        if let (SyncPolicy::SyncInvoke, Some(file)) = (self.durability, &log.file) {
            file.sync_data()?;
        }
        Ok(PendingOperation(event))
    }

    /// Writes down what came back.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn complete(&self, pending: PendingOperation, outcome: &Result<ApiResponse, RequestFailure>) -> io::Result<()> {
        let mut event = Event {
            t_ns: self.now_ns(),
            ..pending.0
        };
        match outcome {
            Ok(answer) => facts::complete_event(&mut event, answer),
            Err(RequestFailure::NotSent(_)) => event.kind = EventKind::Fail,
            Err(RequestFailure::Unknown(_)) => event.kind = EventKind::Info,
        }
        self.log().write(event)
    }

    /// What was recorded so far.
    #[must_use]
    pub fn history(&self) -> History {
        let events = self.log().events.clone();
        let Ok(history) = History::from_events(events) else {
            unreachable!("a recorder gives each operation one id and one completion")
        };
        history
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A panic of another client while it wrote leaves whole lines behind, so the log stays usable.
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn write(&mut self, event: Event) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_vec(&event)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        self.events.push(event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper::{HeaderMap, StatusCode};

    fn answer(status: u16, body: &'static str) -> Result<ApiResponse, RequestFailure> {
        let status = StatusCode::from_u16(status).unwrap();
        Ok(ApiResponse {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        })
    }

    fn recorded(intent: Intent<'_>, outcome: &Result<ApiResponse, RequestFailure>) -> Event {
        let recorder = Recorder::in_memory();
        let pending = recorder.invoke(intent).unwrap();
        recorder.complete(pending, outcome).unwrap();
        recorder
            .history()
            .ops()
            .next()
            .unwrap()
            .completion
            .clone()
            .unwrap()
    }

    #[test]
    fn outcomes_are_definite_only_where_they_are() {
        let intent = Intent::order(0, "p", "k", b"{}");
        for (outcome, kind) in [
            (answer(201, "{}"), EventKind::Ok),
            (answer(409, "{}"), EventKind::Fail),
            (answer(429, "{}"), EventKind::Fail),
            (answer(503, "{}"), EventKind::Info),
            (Err(RequestFailure::NotSent("refused".into())), EventKind::Fail),
            (Err(RequestFailure::Unknown("reset".into())), EventKind::Info),
        ] {
            assert_eq!(recorded(intent, &outcome).kind, kind);
        }
    }

    #[test]
    fn an_order_leaves_its_facts_and_codes_only_their_hashes() {
        let body = r#"{"order_id":"ord_1","status":"DELIVERED","total_amount":25.00,"currency":"USD",
            "vouchers":[{"voucher_id":"vch_1"}]}"#;
        let event = recorded(Intent::order(0, "p", "k", b"{}"), &answer(201, body));
        assert_eq!(event.order_id.as_deref(), Some("ord_1"));
        assert_eq!(event.order.unwrap().total_amount, "25.00");

        let body = r#"{"order_id":"ord_1","data":[{"voucher_id":"vch_1","credentials":
            [{"type":"pin","value":"1234"},{"type":"code","value":"FAKE-CODE"},{"type":"serial","value":"9"}]}]}"#;
        let event = recorded(Intent::codes(0, "p", "ord_1"), &answer(200, body));
        assert!(!serde_json::to_string(&event).unwrap().contains("FAKE-CODE"));
        let swapped = r#"{"order_id":"ord_1","data":[{"voucher_id":"vch_1","credentials":
            [{"type":"code","value":"FAKE-CODE"},{"type":"pin","value":"1234"}]}]}"#;
        assert_eq!(
            event.codes,
            recorded(Intent::codes(0, "p", "ord_1"), &answer(200, swapped)).codes
        );
    }

    #[test]
    fn the_file_reads_back_as_what_was_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let recorder = Recorder::create(&path, SyncPolicy::SyncInvoke).unwrap();
        let first = recorder.invoke(Intent::order(1, "p", "k", b"{}")).unwrap();
        let open = recorder.invoke(Intent::get_order(2, "p", "ord_1")).unwrap();
        recorder
            .complete(first, &answer(404, r#"{"error":{"code":"PRODUCT_NOT_FOUND"}}"#))
            .unwrap();
        drop(open);
        let read = History::read(&path).unwrap();
        assert!(read.ops().eq(recorder.history().ops()));
        assert!(
            Recorder::create(&path, SyncPolicy::Written).is_err(),
            "a history is never overwritten"
        );
    }
}
