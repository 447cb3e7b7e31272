//! What do all clients of a run share? The record of what was asked and answered, and what is still open.
//!
//! Rule: whatever is asked is written down before it is sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use vouchsafe_load::client::{Answer, Failure};
use vouchsafe_load::history::History;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::recorder::{Durability, Intent, Recorder};

use crate::chance::Chance;
use crate::world::Buyer;

/// An order under its key, as it is sent and sent again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    /// Whose, as a number.
    pub(crate) buyer: usize,
    pub(crate) key: String,
    pub(crate) body: Bytes,
}

/// An order that was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) buyer: usize,
    pub(crate) order_id: String,
    /// Whether its codes can be read.
    pub(crate) delivered: bool,
}

/// What a client asks.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    Order(Wish),
    /// How an order stands.
    Read(Taken),
    /// For an order's codes.
    Codes(Taken),
}

impl Question {
    /// Whose it is.
    pub(crate) const fn buyer(&self) -> usize {
        match self {
            Self::Order(wish) => wish.buyer,
            Self::Read(taken) | Self::Codes(taken) => taken.buyer,
        }
    }
}

/// What is shared.
pub(crate) struct Front {
    pub(crate) buyers: Vec<Buyer>,
    recorder: Recorder,
    closed: AtomicBool,
    wishes: Mutex<Vec<Wish>>,
    taken: Mutex<BTreeMap<String, Taken>>,
    open: Mutex<Vec<Wish>>,
}

impl Front {
    /// Writes the history into a new file, too.
    pub(crate) fn new(buyers: Vec<Buyer>, history: &Path) -> Self {
        Self {
            buyers,
            recorder: Recorder::create(history, Durability::Written).unwrap(),
            closed: AtomicBool::new(true),
            wishes: Mutex::default(),
            taken: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// Lets clients begin, or tells them to come to an end.
    pub(crate) fn open_doors(&self, open: bool) {
        self.closed.store(!open, Ordering::Relaxed);
    }

    /// Whether clients shall come to an end.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Asks, and writes down question and answer. With `gives_up`, goes away after that time, whatever is on its way.
    pub(crate) async fn ask(
        &self,
        proc: u32,
        client: &mut PartnerClient,
        question: &Question,
        gives_up: Option<Duration>,
    ) -> Result<Answer, Failure> {
        let partner = &self.buyers[question.buyer()].partner_id;
        let intent = match question {
            Question::Order(wish) => Intent::order(proc, partner, &wish.key, &wish.body),
            Question::Read(taken) => Intent::get_order(proc, partner, &taken.order_id),
            Question::Codes(taken) => Intent::codes(proc, partner, &taken.order_id),
        };
        let pending = self.recorder.invoke(intent).unwrap();
        let patience = gives_up.unwrap_or(Duration::MAX);
        let outcome = match tokio::time::timeout(patience, send(client, question)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Unknown("went away".to_owned())),
        };
        self.recorder.complete(pending, &outcome).unwrap();
        if let Question::Order(wish) = question {
            self.note(wish, &outcome);
        }
        outcome
    }

    fn note(&self, wish: &Wish, outcome: &Result<Answer, Failure>) {
        match outcome {
            Ok(answer) if answer.status.is_success() => {
                let order_id = order_id_of(answer);
                let delivered = answer.status.as_u16() == 201;
                let taken = Taken {
                    buyer: wish.buyer,
                    order_id: order_id.clone(),
                    delivered,
                };
                lock(&self.taken).insert(order_id, taken);
            }
            Ok(answer) if answer.status.is_server_error() => lock(&self.open).push(wish.clone()),
            Err(Failure::Unknown(_)) => lock(&self.open).push(wish.clone()),
            Ok(_) | Err(Failure::NotSent(_)) => {}
        }
    }

    /// Everybody may order this again.
    pub(crate) fn remember(&self, wish: &Wish) {
        lock(&self.wishes).push(wish.clone());
    }

    /// Looks at what was ordered so far.
    pub(crate) fn wishes<T>(&self, look: impl FnOnce(&[Wish]) -> T) -> T {
        look(&lock(&self.wishes))
    }

    /// One of the last orders that a partner was acknowledged.
    pub(crate) fn taken_by(&self, buyer: usize, chance: &mut Chance) -> Option<Taken> {
        let taken = lock(&self.taken);
        let lately: Vec<_> = taken
            .values()
            .rev()
            .filter(|taken| taken.buyer == buyer)
            .take(50)
            .collect();
        chance.pick(&lately).map(|&taken| taken.clone())
    }

    /// What was acknowledged so far, in the order of its ids, so of its time.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        lock(&self.taken).values().cloned().collect()
    }

    /// What nobody knows the outcome of; each once. From now on the caller has to see to it.
    pub(crate) fn take_open(&self) -> Vec<Wish> {
        let mut open = std::mem::take(&mut *lock(&self.open));
        open.sort();
        open.dedup();
        open
    }

    /// The number of the next operation.
    pub(crate) fn next_operation(&self) -> u64 {
        self.recorder
            .history()
            .ops()
            .map(|op| op.invoke.op_id + 1)
            .max()
            .unwrap_or_default()
    }

    /// What was recorded so far.
    pub(crate) fn history(&self) -> History {
        self.recorder.history()
    }
}

async fn send(client: &mut PartnerClient, question: &Question) -> Result<Answer, Failure> {
    match question {
        Question::Order(wish) => client.order(&wish.key, wish.body.clone()).await,
        Question::Read(taken) => client.get(&format!("/orders/{}", taken.order_id)).await,
        Question::Codes(taken) => client.codes(&taken.order_id).await,
    }
}

fn order_id_of(answer: &Answer) -> String {
    let body: serde_json::Value = answer.json().unwrap();
    body["order_id"].as_str().unwrap().to_owned()
}

/// Nothing here can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
