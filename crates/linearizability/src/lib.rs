//! Checker of strict serialisability: whether the operations of a concurrent history have an order that a
//! sequential model permits and that keeps the order of operations which did not overlap.
//!
//! The search of Wing and Gong with the memoisation of Lowe, as in Porcupine: it tries the operations that
//! may come next, and visits each pair of operations done and state of the model once. Exponential in the
//! number of operations that overlap, not in the length of the history.

use std::collections::HashSet;
use std::hash::Hash;

/// The sequential behaviour of what the operations use.
pub trait Model {
    type State: Clone + Eq + Hash;
    type Operation;

    fn initial(&self) -> Self::State;

    /// The state after an operation with its response; `None` if the operation has another response in this
    /// state.
    fn apply(&self, state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;
}

/// An operation with the times of its request and its response, on one clock of all clients.
#[derive(Debug, Clone)]
pub struct Call<O> {
    pub operation: O,
    pub began: u64,
    /// `None`: no response. The operation took effect at any time after its request, or never.
    pub ended: Option<u64>,
}

/// A history that has no order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The operations of the longest order that was found, as positions in the history.
    pub ordered: Vec<usize>,
    /// The operations of which one had to come next; the model permits none of them.
    pub next: Vec<usize>,
}

/// A set of positions of a history.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Positions(Vec<u64>);

impl Positions {
    fn new(length: usize) -> Self {
        Self(vec![0; length.div_ceil(64)])
    }

    fn contains(&self, position: usize) -> bool {
        self.0[position / 64] & (1 << (position % 64)) != 0
    }

    fn insert(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }

    fn remove(&mut self, position: usize) {
        self.0[position / 64] &= !(1 << (position % 64));
    }
}

/// One level of the search: the state before the next operation, and the candidates that were not tried yet.
struct Level<S> {
    state: S,
    candidates: Vec<usize>,
}

/// Finds an order of the history, as positions. Operations without a response may be left out.
///
/// # Errors
/// [`Violation`] if there is none.
pub fn check<M: Model>(model: &M, history: &[Call<M::Operation>]) -> Result<Vec<usize>, Violation> {
    let mut by_begin: Vec<usize> = (0..history.len()).collect();
    by_begin.sort_by_key(|position| history[*position].began);
    let mut done = Positions::new(history.len());
    let mut order = Vec::new();
    let mut visited = HashSet::new();
    let mut longest = Violation {
        ordered: Vec::new(),
        next: candidates(history, &by_begin, &done),
    };
    let mut levels = vec![Level {
        state: model.initial(),
        candidates: longest.next.clone(),
    }];
    if is_complete(history, &done) {
        return Ok(order);
    }
    while let Some(level) = levels.last_mut() {
        let Some(next) = level.candidates.pop() else {
            levels.pop();
            if let Some(last) = order.pop() {
                done.remove(last);
            }
            continue;
        };
        let Some(state) = model.apply(&level.state, &history[next].operation) else {
            continue;
        };
        done.insert(next);
        if !visited.insert((done.clone(), state.clone())) {
            done.remove(next);
            continue;
        }
        order.push(next);
        if is_complete(history, &done) {
            return Ok(order);
        }
        let candidates = candidates(history, &by_begin, &done);
        if order.len() > longest.ordered.len() {
            longest = Violation {
                ordered: order.clone(),
                next: candidates.clone(),
            };
        }
        levels.push(Level { state, candidates });
    }
    Err(longest)
}

/// Whether every operation with a response is done.
fn is_complete<O>(history: &[Call<O>], done: &Positions) -> bool {
    let mut open = history.iter().enumerate();
    open.all(|(position, call)| call.ended.is_none() || done.contains(position))
}

/// The operations that may come next: none of those that are not done had ended before they began. The last
/// to begin comes first, since the search takes them from the end.
fn candidates<O>(history: &[Call<O>], by_begin: &[usize], done: &Positions) -> Vec<usize> {
    let open = || {
        by_begin
            .iter()
            .copied()
            .filter(|position| !done.contains(*position))
    };
    let first_end = open().filter_map(|position| history[position].ended).min();
    let may_be_next = |position: &usize| first_end.is_none_or(|end| history[*position].began <= end);
    let mut found: Vec<usize> = open().take_while(may_be_next).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests;
