//! Requests that an actor cannot answer yet: they wait, in the order they came, until something changes. Pure.
//!
//! A refusal must rest on what the store says *after* the request came. So reads of the store are counted in rounds, and
//! a request is confirmed by the first round that begins after it.

use std::collections::VecDeque;

use tokio::sync::oneshot;

struct Waiting<Q, A> {
    question: Q,
    reply: oneshot::Sender<A>,
    /// How many rounds had begun when it came.
    came_in: u64,
}

/// The line of those who wait.
pub struct WaitingLine<Q, A> {
    line: VecDeque<Waiting<Q, A>>,
    rounds_begun: u64,
    rounds_ended: u64,
}

impl<Q, A> Default for WaitingLine<Q, A> {
    fn default() -> Self {
        Self {
            line: VecDeque::new(),
            rounds_begun: 0,
            rounds_ended: 0,
        }
    }
}

impl<Q, A> WaitingLine<Q, A> {
    /// Puts a question at the end of the line.
    pub fn join(&mut self, question: Q) -> oneshot::Receiver<A> {
        let (reply, answer) = oneshot::channel();
        self.line.push_back(Waiting {
            question,
            reply,
            came_in: self.rounds_begun,
        });
        answer
    }

    /// A read of the store begins.
    pub fn round_begins(&mut self) {
        self.rounds_begun += 1;
    }

    /// The read that began last has brought its answer.
    pub fn round_ends(&mut self) {
        self.rounds_ended = self.rounds_begun;
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// What those who wait have asked, in the order they came.
    pub fn questions(&self) -> impl Iterator<Item = &Q> {
        self.line.iter().map(|waiting| &waiting.question)
    }

    /// Forgets those who have gone, while there is no answer for anybody.
    pub fn forget_gone(&mut self) {
        self.line.retain(|waiting| !waiting.reply.is_closed());
    }

    /// Asks everybody's question again. `decide` is told whether the store was read since the question came; it answers
    /// or says that the question must go on waiting.
    pub fn ask_again(&mut self, mut decide: impl FnMut(&Q, bool) -> Option<A>) {
        for _ in 0..self.line.len() {
            let Some(waiting) = self.line.pop_front() else {
                return;
            };
            if waiting.reply.is_closed() {
                continue;
            }
            match decide(&waiting.question, waiting.came_in < self.rounds_ended) {
                // Who asked may be gone by now: then the answer is dropped, and a hold in it gives itself back.
                Some(answer) => drop(waiting.reply.send(answer)),
                None => self.line.push_back(waiting),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_confirmed_by_a_round_that_begins_after_it() {
        let mut line = WaitingLine::<&str, bool>::default();
        line.round_begins();
        let mut early = line.join("came while the round was under way");
        line.round_ends();
        line.ask_again(|_, confirmed| confirmed.then_some(true));
        assert!(early.try_recv().is_err());
        line.round_begins();
        line.round_ends();
        line.ask_again(|_, confirmed| confirmed.then_some(true));
        assert_eq!(early.try_recv(), Ok(true));
    }

    #[test]
    fn those_who_wait_are_asked_in_the_order_they_came_and_the_gone_are_forgotten() {
        let mut line = WaitingLine::<u32, u32>::default();
        let _first = line.join(1);
        drop(line.join(2));
        let _third = line.join(3);
        let mut asked = Vec::new();
        line.ask_again(|question, _| {
            asked.push(*question);
            None
        });
        assert_eq!(asked, [1, 3]);
        line.ask_again(|question, _| Some(*question));
        assert!(line.is_empty());
    }

    #[test]
    fn those_who_have_gone_are_forgotten_though_nobody_is_answered() {
        let mut line = WaitingLine::<u32, u32>::default();
        drop(line.join(1));
        let _second = line.join(2);
        line.forget_gone();
        assert_eq!(line.questions().collect::<Vec<_>>(), [&2]);
    }
}
