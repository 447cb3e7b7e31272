//! What every partner heard under every key, held against the rules of idempotency.
//!
//! Rule: it knows only what a partner can know. An answer that is kept is the same for ever after, as long as its key
//! lives; whoever hears nothing certain asks again.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::{Ask, Heard};
use crate::domain::answer::{Answer, KeyHash};
use crate::flows::Unanswered;

#[derive(Default)]
struct Story {
    /// The request that was answered, and how.
    kept: Option<(Ask, Answer)>,
    fresh: u32,
    /// Requests that were told that the key is another's.
    reused: Vec<Ask>,
    /// All requests, each once, to close what is open.
    asked: Vec<Ask>,
}

/// The keys that live, and what is wrong with them.
#[derive(Default)]
pub struct History {
    stories: BTreeMap<KeyHash, Story>,
    acknowledged: BTreeSet<(KeyHash, Vec<u8>)>,
    wrongs: Vec<String>,
}

impl History {
    /// A partner heard this.
    pub fn hear(&mut self, ask: &Ask, heard: &Heard) {
        let story = self.stories.entry(ask.key_hash()).or_default();
        if !story.asked.contains(ask) {
            story.asked.push(ask.clone());
        }
        // Two nodes that refuse alike at once may each take the refusal for its own, where one of them lost its answer:
        // there is nothing in it that tells them apart, and nothing was executed.
        if let Heard::Fresh(answer) = heard
            && answer.status < 300
        {
            story.fresh += 1;
        }
        if heard.unanswered() == Some(&Unanswered::KeyReused) {
            story.reused.push(ask.clone());
        }
        if let Some(answer) = heard.answer() {
            self.acknowledged.insert((ask.key_hash(), answer.body.to_vec()));
            let (asked, kept) = story.kept.get_or_insert_with(|| (ask.clone(), answer.clone()));
            if (&*asked, &*kept) != (ask, answer) {
                self.wrongs.push(format!(
                    "{asked:?} was answered {:?}, and then {}",
                    kept.body,
                    heard.in_words()
                ));
            }
        }
    }

    /// What broke a rule so far.
    #[must_use]
    pub fn wrongs(&self) -> Vec<String> {
        let twice = self.stories.values().filter(|story| story.fresh > 1);
        let twice = twice.map(|story| format!("executed {} times: {:?}", story.fresh, story.asked));
        let own = |story: &&Story| {
            story
                .kept
                .as_ref()
                .is_some_and(|(asked, _)| story.reused.contains(asked))
        };
        let own = self.stories.values().filter(own);
        let own = own.map(|story| format!("told of another request, and was it: {:?}", story.asked));
        self.wrongs.iter().cloned().chain(twice).chain(own).collect()
    }

    /// The requests under each key that nobody has an answer of.
    #[must_use]
    pub fn open(&self) -> Vec<Vec<Ask>> {
        let open = self.stories.values().filter(|story| story.kept.is_none());
        open.map(|story| story.asked.clone()).collect()
    }

    /// The first request of every key.
    #[must_use]
    pub fn asked(&self) -> Vec<&Ask> {
        self.stories
            .values()
            .filter_map(|story| story.asked.first())
            .collect()
    }

    /// The request and the answer of every key that has one.
    pub fn kept(&self) -> impl Iterator<Item = &(Ask, Answer)> {
        self.stories.values().filter_map(|story| story.kept.as_ref())
    }

    /// The day of all keys is over.
    pub fn forget_keys(&mut self) {
        self.stories.clear();
    }
}
