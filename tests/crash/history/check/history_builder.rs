//! Builder of operation histories for tests.

use Completion::{Codes, Nothing, Order, Pending, Refused, Unknown};

use super::{HistorySummary, Violation, check};
use crate::history::{Call, CodeFact, Event, EventKind, History, OrderFacts};

/// Builds a history; each step is one complete operation unless its completion is [`Completion::Nothing`].
#[derive(Default)]
pub(super) struct HistoryBuilder {
    events: Vec<Event>,
    ops: u64,
}

/// Completion of an operation.
pub(super) enum Completion {
    Order(&'static str, &'static [&'static str]),
    Pending(&'static str),
    Codes(&'static str, &'static [(&'static str, &'static str)]),
    Refused(u16, &'static str),
    Unknown,
    Nothing,
}

impl HistoryBuilder {
    fn step(mut self, f: Call, key: Option<&str>, order_id: Option<&str>, completion: Completion) -> Self {
        let invoke = Event {
            op_id: self.ops,
            proc: 0,
            kind: EventKind::Invoke,
            f,
            partner: "amzn-us".into(),
            key: key.map(str::to_owned),
            req_hash: key.map(|_| "request".into()),
            status: None,
            code: None,
            body_hash: None,
            order_id: order_id.map(str::to_owned),
            order: None,
            codes: None,
            t_ns: self.events.len() as u64,
        };
        self.ops += 1;
        self.events.push(invoke.clone());
        if !matches!(completion, Nothing) {
            let t_ns = self.events.len() as u64;
            self.events.push(complete(Event { t_ns, ..invoke }, completion));
        }
        self
    }

    pub(super) fn order(self, key: &str, completion: Completion) -> Self {
        self.step(Call::Order, Some(key), None, completion)
    }

    pub(super) fn get(self, order_id: &str, completion: Completion) -> Self {
        self.step(Call::GetOrder, None, Some(order_id), completion)
    }

    pub(super) fn codes(self, order_id: &str, completion: Completion) -> Self {
        self.step(Call::Codes, None, Some(order_id), completion)
    }

    /// Changes the last event, to introduce a violation.
    pub(super) fn alter_last_event(mut self, change: impl FnOnce(&mut Event)) -> Self {
        change(self.events.last_mut().unwrap());
        self
    }

    pub(super) fn check(self) -> Result<HistorySummary, Violation> {
        check(&History::from_events(self.events).unwrap())
    }
}

fn complete(event: Event, completion: Completion) -> Event {
    let order = |order_id: &str, status: &str, vouchers: &[&str]| Event {
        kind: EventKind::Ok,
        status: Some(if status == "DELIVERED" { 201 } else { 202 }),
        body_hash: Some(format!("{order_id}{vouchers:?}")),
        order_id: Some(order_id.into()),
        order: Some(OrderFacts {
            order_status: status.into(),
            total_amount: "25.00".into(),
            currency: "USD".into(),
            vouchers: vouchers.iter().map(ToString::to_string).collect(),
        }),
        ..event.clone()
    };
    let fact = |(voucher, code): &(&str, &str)| CodeFact {
        voucher_id: (*voucher).into(),
        code_hash: (*code).into(),
    };
    match completion {
        Order(order_id, vouchers) => order(order_id, "DELIVERED", vouchers),
        Pending(order_id) => order(order_id, "PENDING", &[]),
        Codes(order_id, codes) => Event {
            kind: EventKind::Ok,
            status: Some(200),
            order_id: Some(order_id.into()),
            codes: Some(codes.iter().map(fact).collect()),
            ..event
        },
        Refused(status, code) => Event {
            kind: if status < 500 {
                EventKind::Fail
            } else {
                EventKind::Info
            },
            status: Some(status),
            code: Some(code.into()),
            body_hash: Some(format!("{status}{code}")),
            ..event
        },
        Unknown | Nothing => Event {
            kind: EventKind::Info,
            ..event
        },
    }
}

pub(super) fn history() -> HistoryBuilder {
    HistoryBuilder::default()
}
