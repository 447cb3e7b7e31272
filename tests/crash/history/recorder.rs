//! Recorder of operation histories: an invocation before sending and a completion after the response, in
//! memory and optionally in a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::{Call, Event, EventKind, History, facts};
use vouchsafe_api_client::{ApiResponse, RequestFailure};

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intent<'a> {
    proc: u32,
    call: Call,
    partner: &'a str,
    key: Option<&'a str>,
    body: Option<&'a [u8]>,
    order_id: Option<&'a str>,
}

impl<'a> Intent<'a> {
    /// `POST /orders` by client `proc` of `partner`.
    pub(crate) fn order(proc: u32, partner: &'a str, key: &'a str, body: &'a [u8]) -> Self {
        Self {
            proc,
            call: Call::Order,
            partner,
            key: Some(key),
            body: Some(body),
            order_id: None,
        }
    }

    /// `GET` of an order.
    pub(crate) fn get_order(proc: u32, partner: &'a str, order_id: &'a str) -> Self {
        Self {
            proc,
            call: Call::GetOrder,
            partner,
            key: None,
            body: None,
            order_id: Some(order_id),
        }
    }

    /// `GET` of an order's codes.
    pub(crate) fn codes(proc: u32, partner: &'a str, order_id: &'a str) -> Self {
        Self {
            call: Call::Codes,
            ..Self::get_order(proc, partner, order_id)
        }
    }
}

/// An operation without a completion. Dropping it leaves the operation open in the history.
#[derive(Debug)]
pub(crate) struct PendingOperation(Event);

/// Writes a history; all clients of a test share it.
#[derive(Debug)]
pub(crate) struct Recorder {
    started: Instant,
    event_log: Mutex<EventLog>,
}

#[derive(Debug)]
struct EventLog {
    events: Vec<Event>,
    file: Option<File>,
}

impl Recorder {
    pub(crate) fn in_memory() -> Self {
        Self::with_file(None)
    }

    /// Records in memory and in a new file.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::with_file(Some(File::create_new(path)?)))
    }

    fn with_file(file: Option<File>) -> Self {
        Self {
            started: Instant::now(),
            event_log: Mutex::new(EventLog {
                events: Vec::new(),
                file,
            }),
        }
    }

    /// Records an invocation. Send the request only after this returns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn invoke(&self, intent: Intent<'_>) -> io::Result<PendingOperation> {
        let mut event_log = self.event_log();
        let event = Event {
            op_id: event_log.events.len() as u64,
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
        event_log.write(event.clone())?;
        Ok(PendingOperation(event))
    }

    /// Records a completion.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn complete(
        &self,
        pending: PendingOperation,
        outcome: &Result<ApiResponse, RequestFailure>,
    ) -> io::Result<()> {
        let mut event = Event {
            t_ns: self.now_ns(),
            ..pending.0
        };
        match outcome {
            Ok(response) => facts::complete_event(&mut event, response),
            Err(RequestFailure::NotSent(_)) => event.kind = EventKind::Fail,
            Err(RequestFailure::Unknown(_)) => event.kind = EventKind::Info,
        }
        self.event_log().write(event)
    }

    pub(crate) fn history(&self) -> History {
        let events = self.event_log().events.clone();
        let Ok(history) = History::from_events(events) else {
            unreachable!("the recorder creates one invocation and at most one completion per id")
        };
        history
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A panic during a write leaves only complete lines behind, so a poisoned log is usable.
    fn event_log(&self) -> MutexGuard<'_, EventLog> {
        self.event_log.lock()
    }
}

impl EventLog {
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
    use bytes::Bytes;
    use hyper::Response;

    use super::*;

    fn response(status: u16, body: &'static str) -> Result<ApiResponse, RequestFailure> {
        let response = Response::builder().status(status).body(Bytes::from(body));
        Ok(response.unwrap().into())
    }

    fn record(intent: Intent<'_>, outcome: &Result<ApiResponse, RequestFailure>) -> Event {
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
    fn completion_kind_follows_outcome() {
        let intent = Intent::order(0, "p", "k", b"{}");
        for (outcome, kind) in [
            (response(201, "{}"), EventKind::Ok),
            (response(409, "{}"), EventKind::Fail),
            (response(429, "{}"), EventKind::Fail),
            (response(503, "{}"), EventKind::Info),
            (Err(RequestFailure::NotSent("refused".into())), EventKind::Fail),
            (Err(RequestFailure::Unknown("reset".into())), EventKind::Info),
        ] {
            assert_eq!(record(intent, &outcome).kind, kind);
        }
    }

    #[test]
    fn order_facts_are_recorded_and_codes_are_hashed() {
        let body = r#"{"order_id":"ord_1","status":"DELIVERED","total_amount":25.00,"currency":"USD",
            "vouchers":[{"voucher_id":"vch_1"}]}"#;
        let event = record(Intent::order(0, "p", "k", b"{}"), &response(201, body));
        assert_eq!(event.order_id.as_deref(), Some("ord_1"));
        assert_eq!(event.order.unwrap().total_amount, "25.00");

        let body = r#"{"order_id":"ord_1","data":[{"voucher_id":"vch_1","credentials":
            [{"type":"pin","value":"1234"},{"type":"code","value":"FAKE-CODE"},{"type":"serial","value":"9"}]}]}"#;
        let event = record(Intent::codes(0, "p", "ord_1"), &response(200, body));
        assert!(!serde_json::to_string(&event).unwrap().contains("FAKE-CODE"));
        let swapped = r#"{"order_id":"ord_1","data":[{"voucher_id":"vch_1","credentials":
            [{"type":"code","value":"FAKE-CODE"},{"type":"pin","value":"1234"}]}]}"#;
        assert_eq!(
            event.codes,
            record(Intent::codes(0, "p", "ord_1"), &response(200, swapped)).codes
        );
    }

    #[test]
    fn file_reads_back_as_recorded_history() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let recorder = Recorder::create(&path).unwrap();
        let first = recorder.invoke(Intent::order(1, "p", "k", b"{}")).unwrap();
        let open = recorder.invoke(Intent::get_order(2, "p", "ord_1")).unwrap();
        recorder
            .complete(first, &response(404, r#"{"error":{"code":"PRODUCT_NOT_FOUND"}}"#))
            .unwrap();
        drop(open);
        let read = History::read(&path).unwrap();
        assert!(read.ops().eq(recorder.history().ops()));
        assert!(
            Recorder::create(&path).is_err(),
            "an existing history is never overwritten"
        );
    }
}
