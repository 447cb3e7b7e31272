//! A receiver that answers as it is told, and remembers what it got and when.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use vouchsafe_actors::delivery::outbox::Sender;
use vouchsafe_actors::domain::delivery::{Answered, Fault, Letter, Target};
use vouchsafe_actors::store::StoreFuture;

/// What it answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mood {
    /// This status, after so long.
    Answers(u16, Duration),
    /// 429, and asks to be tried again after so long.
    Later(Duration),
    Hangs,
    /// The connection is refused.
    Refuses,
}

pub(crate) const TAKES: Mood = Mood::Answers(204, Duration::ZERO);
pub(crate) const FAILS: Mood = Mood::Answers(500, Duration::ZERO);

/// An attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) number: i64,
    pub(crate) began: Instant,
    /// When it was answered with a 2xx.
    pub(crate) taken: Option<Instant>,
}

#[derive(Debug)]
struct Memory {
    began: Instant,
    mood: Mood,
    /// For single events, by number.
    moods: HashMap<i64, Mood>,
    seen: Vec<Seen>,
    under_way: usize,
    most_at_once: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Receiver(Arc<Mutex<Memory>>);

impl Receiver {
    pub(crate) fn new(mood: Mood) -> Self {
        Self(Arc::new(Mutex::new(Memory {
            began: Instant::now(),
            mood,
            moods: HashMap::new(),
            seen: Vec::new(),
            under_way: 0,
            most_at_once: 0,
        })))
    }

    pub(crate) fn is(&self, mood: Mood) {
        self.0.lock().unwrap().mood = mood;
    }

    pub(crate) fn answers(&self, number: i64, mood: Mood) {
        self.0.lock().unwrap().moods.insert(number, mood);
    }

    /// The numbers of what came, with the second at which it came.
    pub(crate) fn seen(&self) -> Vec<(i64, u64)> {
        let memory = self.0.lock().unwrap();
        let second = |seen: &Seen| (seen.began - memory.began).as_secs();
        memory
            .seen
            .iter()
            .map(|seen| (seen.number, second(seen)))
            .collect()
    }

    pub(crate) fn attempts(&self) -> Vec<Seen> {
        self.0.lock().unwrap().seen.clone()
    }

    pub(crate) fn numbers(&self) -> Vec<i64> {
        self.seen().into_iter().map(|(number, _)| number).collect()
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.0.lock().unwrap().most_at_once
    }

    fn begin(&self, number: i64) -> (Mood, UnderWay) {
        let mut memory = self.0.lock().unwrap();
        memory.seen.push(Seen {
            number,
            began: Instant::now(),
            taken: None,
        });
        memory.under_way += 1;
        memory.most_at_once = memory.most_at_once.max(memory.under_way);
        let mood = memory.moods.get(&number).copied().unwrap_or(memory.mood);
        let under_way = UnderWay {
            receiver: self.clone(),
            place: memory.seen.len() - 1,
        };
        (mood, under_way)
    }
}

/// Counted until it is dropped: an attempt that is given up ends, too.
struct UnderWay {
    receiver: Receiver,
    place: usize,
}

impl UnderWay {
    fn taken(&self) {
        self.receiver.0.lock().unwrap().seen[self.place].taken = Some(Instant::now());
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.receiver.0.lock().unwrap().under_way -= 1;
    }
}

impl Sender for Receiver {
    fn send(&self, _: Arc<Target>, letter: Letter) -> StoreFuture<'static, Answered> {
        let (mood, under_way) = self.begin(letter.number);
        let answered = |status, retry_after| Answered {
            status: Ok(status),
            retry_after,
            answer: "é".repeat(1_000),
        };
        Box::pin(async move {
            match mood {
                Mood::Answers(status, after) => {
                    sleep(after).await;
                    if (200..300).contains(&status) {
                        under_way.taken();
                    }
                    answered(status, None)
                }
                Mood::Later(after) => answered(429, Some(after)),
                Mood::Hangs => std::future::pending().await,
                Mood::Refuses => Answered::not(Fault::Connection),
            }
        })
    }
}
