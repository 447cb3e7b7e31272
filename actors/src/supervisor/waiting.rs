//! Requests that an actor cannot answer yet: they wait, in the order they came, until something changes. Pure.
//!
//! A refusal must rest on what the store says *after* the request came. So reads of the store are counted in rounds, and
//! a request is confirmed by the first round that begins after it, and after the last change to what that round says.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::Reply;

/// Most who wait for one actor at once: as many as the engine admits. So an honest line never reaches it, and where
/// nobody is answered for long, those who came and went do not fill the memory.
const MAX_WAITING: usize = 4_096;

/// From how many on those who have gone are looked for, and then each time that the line has doubled: a look costs as much
/// as the line is long.
const FIRST_SWEEP: usize = 64;

struct Waiting<Q, A> {
    question: Q,
    reply: oneshot::Sender<A>,
    /// How many rounds had begun when it came.
    came_in: u64,
}

/// The line of those who wait.
pub struct WaitingLine<Q, A> {
    line: VecDeque<Waiting<Q, A>>,
    /// At which length those who have gone are looked for.
    sweep_at: usize,
    rounds_begun: u64,
    rounds_ended: u64,
    /// How many rounds had begun when what they tell of last changed.
    changed_in: u64,
}

impl<Q, A> Default for WaitingLine<Q, A> {
    fn default() -> Self {
        Self {
            line: VecDeque::new(),
            sweep_at: FIRST_SWEEP,
            rounds_begun: 0,
            rounds_ended: 0,
            changed_in: 0,
        }
    }
}

impl<Q, A> WaitingLine<Q, A> {
    /// Puts a question at the end of the line, if there is room in it.
    pub fn join(&mut self, question: Q) -> Reply<A> {
        if self.line.len() >= self.sweep_at {
            self.forget_gone();
            self.sweep_at = (2 * self.line.len()).clamp(FIRST_SWEEP, MAX_WAITING);
        }
        if self.line.len() >= MAX_WAITING {
            return Reply::Crowded;
        }
        let (reply, answer) = oneshot::channel();
        self.line.push_back(Waiting {
            question,
            reply,
            came_in: self.rounds_begun,
        });
        Reply::Later(answer)
    }

    /// A read of the store begins.
    pub fn round_begins(&mut self) {
        self.rounds_begun += 1;
    }

    /// The read that began last has brought its answer.
    pub fn round_ends(&mut self) {
        self.rounds_ended = self.rounds_begun;
    }

    /// What the rounds tell of is no longer as they told it: nobody is confirmed by one that has begun.
    pub const fn changed(&mut self) {
        self.changed_in = self.rounds_begun;
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

    /// Asks everybody's question again. `decide` is told whether the store was read since the question came and since the
    /// last change; it answers or says that the question must go on waiting.
    pub fn ask_again(&mut self, mut decide: impl FnMut(&Q, bool) -> Option<A>) {
        for _ in 0..self.line.len() {
            let Some(waiting) = self.line.pop_front() else {
                return;
            };
            if waiting.reply.is_closed() {
                continue;
            }
            let confirmed = waiting.came_in.max(self.changed_in) < self.rounds_ended;
            match decide(&waiting.question, confirmed) {
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

    fn join<Q, A>(line: &mut WaitingLine<Q, A>, question: Q) -> oneshot::Receiver<A> {
        match line.join(question) {
            Reply::Later(answer) => answer,
            Reply::Now(_) | Reply::Crowded => panic!("there is room"),
        }
    }

    #[test]
    fn a_question_is_confirmed_by_a_round_that_begins_after_it() {
        let mut line = WaitingLine::<&str, bool>::default();
        line.round_begins();
        let mut early = join(&mut line, "came while the round was under way");
        line.round_ends();
        line.ask_again(|_, confirmed| confirmed.then_some(true));
        assert!(early.try_recv().is_err());
        line.round_begins();
        line.round_ends();
        line.ask_again(|_, confirmed| confirmed.then_some(true));
        assert_eq!(early.try_recv(), Ok(true));
    }

    #[test]
    fn a_change_takes_the_word_back_of_every_round_that_has_begun() {
        let mut line = WaitingLine::<&str, bool>::default();
        let mut answer = join(&mut line, "came before all of it");
        let mut is_confirmed = |line: &mut WaitingLine<_, _>| {
            line.ask_again(|_, confirmed| confirmed.then_some(true));
            answer.try_recv().is_ok()
        };
        line.round_begins();
        line.round_ends();
        line.changed();
        assert!(!is_confirmed(&mut line), "it changed after the round");
        line.round_begins();
        line.changed();
        line.round_ends();
        assert!(!is_confirmed(&mut line), "it changed during the round");
        line.round_begins();
        line.round_ends();
        assert!(is_confirmed(&mut line));
    }

    #[test]
    fn those_who_wait_are_asked_in_the_order_they_came_and_the_gone_are_forgotten() {
        let mut line = WaitingLine::<u32, u32>::default();
        let _first = join(&mut line, 1);
        drop(join(&mut line, 2));
        let _third = join(&mut line, 3);
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
        drop(join(&mut line, 1));
        let _second = join(&mut line, 2);
        line.forget_gone();
        assert_eq!(line.questions().collect::<Vec<_>>(), [&2]);
    }

    #[test]
    fn those_who_came_and_went_do_not_fill_the_line_and_no_more_wait_than_may() {
        let mut line = WaitingLine::<usize, usize>::default();
        for gone in 0..10 * MAX_WAITING {
            drop(line.join(gone));
            assert!(line.line.len() <= FIRST_SWEEP);
        }
        let mut waiting: Vec<_> = (0..MAX_WAITING).map(|place| join(&mut line, place)).collect();
        assert!(matches!(line.join(0), Reply::Crowded));
        waiting.pop();
        let _last = join(&mut line, 0);
        assert!(matches!(line.join(0), Reply::Crowded));
    }
}
