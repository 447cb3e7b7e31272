//! Wait queue of requests that an actor cannot decide yet. Pure.
//!
//! A refusal must rest on what the store said *after* the request arrived. Reads of the store are therefore
//! numbered, and a request is confirmed by the first read that starts after it arrived and after the last
//! change that invalidates earlier reads.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::Reply;

/// Maximum number of requests waiting for one actor: four times the records that the engine admits, so honest
/// traffic never reaches it. While no request is decided for long, it bounds the memory of requests whose
/// callers have left.
const MAX_WAITING: usize = 4_096;

/// Length from which the queue is swept for callers that have left, then again each time it has doubled: a
/// sweep costs as much as the queue is long.
const MIN_SWEEP_LENGTH: usize = 64;

struct QueuedRequest<Q, A> {
    request: Q,
    reply: oneshot::Sender<A>,
    /// How many reads had started when it was queued.
    queued_at_read: u64,
}

/// The wait queue, in order of arrival.
pub struct WaitQueue<Q, A> {
    queue: VecDeque<QueuedRequest<Q, A>>,
    /// Length at which callers that have left are swept.
    sweep_at: usize,
    reads_started: u64,
    reads_finished: u64,
    /// How many reads had started at the last invalidation.
    invalidated_at_read: u64,
}

impl<Q, A> Default for WaitQueue<Q, A> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            sweep_at: MIN_SWEEP_LENGTH,
            reads_started: 0,
            reads_finished: 0,
            invalidated_at_read: 0,
        }
    }
}

impl<Q, A> WaitQueue<Q, A> {
    /// Appends a request if there is room.
    pub fn enqueue(&mut self, request: Q) -> Reply<A> {
        if self.queue.len() >= self.sweep_at {
            self.drop_disconnected();
            self.sweep_at = (2 * self.queue.len()).clamp(MIN_SWEEP_LENGTH, MAX_WAITING);
        }
        if self.queue.len() >= MAX_WAITING {
            return Reply::WaitQueueFull;
        }
        let (reply, reply_receiver) = oneshot::channel();
        self.queue.push_back(QueuedRequest {
            request,
            reply,
            queued_at_read: self.reads_started,
        });
        Reply::Later(reply_receiver)
    }

    /// A read of the store starts.
    pub fn start_read(&mut self) {
        self.reads_started += 1;
    }

    /// The last read has finished.
    pub fn finish_read(&mut self) {
        self.reads_finished = self.reads_started;
    }

    /// Invalidates all reads that have started: they confirm no request.
    pub const fn invalidate_reads(&mut self) {
        self.invalidated_at_read = self.reads_started;
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The waiting requests, in order of arrival.
    pub fn requests(&self) -> impl Iterator<Item = &Q> {
        self.queue.iter().map(|queued| &queued.request)
    }

    /// Removes requests whose callers have left.
    pub fn drop_disconnected(&mut self) {
        self.queue.retain(|queued| !queued.reply.is_closed());
    }

    /// Retries every request in order of arrival. `decide` receives whether a read confirms the request; it
    /// returns the reply, or `None` to keep the request waiting.
    pub fn retry_all(&mut self, mut decide: impl FnMut(&Q, bool) -> Option<A>) {
        for _ in 0..self.queue.len() {
            let Some(queued) = self.queue.pop_front() else {
                return;
            };
            if queued.reply.is_closed() {
                continue;
            }
            let confirmed = queued.queued_at_read.max(self.invalidated_at_read) < self.reads_finished;
            match decide(&queued.request, confirmed) {
                // The caller may have left: the reply is dropped, and a hold in it releases itself.
                Some(decision) => drop(queued.reply.send(decision)),
                None => self.queue.push_back(queued),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enqueue<Q, A>(queue: &mut WaitQueue<Q, A>, request: Q) -> oneshot::Receiver<A> {
        match queue.enqueue(request) {
            Reply::Later(reply_receiver) => reply_receiver,
            Reply::Now(_) | Reply::WaitQueueFull => panic!("the queue has room"),
        }
    }

    #[test]
    fn request_is_confirmed_by_a_read_that_starts_after_it() {
        let mut queue = WaitQueue::<&str, bool>::default();
        queue.start_read();
        let mut early = enqueue(&mut queue, "queued while a read was in flight");
        queue.finish_read();
        queue.retry_all(|_, confirmed| confirmed.then_some(true));
        assert!(early.try_recv().is_err());
        queue.start_read();
        queue.finish_read();
        queue.retry_all(|_, confirmed| confirmed.then_some(true));
        assert_eq!(early.try_recv(), Ok(true));
    }

    #[test]
    fn invalidation_voids_every_started_read() {
        let mut queue = WaitQueue::<&str, bool>::default();
        let mut reply_receiver = enqueue(&mut queue, "queued before every read");
        let mut is_confirmed = |queue: &mut WaitQueue<_, _>| {
            queue.retry_all(|_, confirmed| confirmed.then_some(true));
            reply_receiver.try_recv().is_ok()
        };
        queue.start_read();
        queue.finish_read();
        queue.invalidate_reads();
        assert!(!is_confirmed(&mut queue), "invalidated after the read");
        queue.start_read();
        queue.invalidate_reads();
        queue.finish_read();
        assert!(!is_confirmed(&mut queue), "invalidated during the read");
        queue.start_read();
        queue.finish_read();
        assert!(is_confirmed(&mut queue));
    }

    #[test]
    fn requests_are_retried_in_order_and_disconnected_ones_dropped() {
        let mut queue = WaitQueue::<u32, u32>::default();
        let _first = enqueue(&mut queue, 1);
        drop(enqueue(&mut queue, 2));
        let _third = enqueue(&mut queue, 3);
        let mut retried = Vec::new();
        queue.retry_all(|request, _| {
            retried.push(*request);
            None
        });
        assert_eq!(retried, [1, 3]);
        queue.retry_all(|request, _| Some(*request));
        assert!(queue.is_empty());
    }

    #[test]
    fn disconnected_requests_are_dropped_without_a_decision() {
        let mut queue = WaitQueue::<u32, u32>::default();
        drop(enqueue(&mut queue, 1));
        let _second = enqueue(&mut queue, 2);
        queue.drop_disconnected();
        assert_eq!(queue.requests().collect::<Vec<_>>(), [&2]);
    }

    #[test]
    fn disconnected_requests_do_not_fill_the_queue_and_length_is_limited() {
        let mut queue = WaitQueue::<usize, usize>::default();
        for index in 0..10 * MAX_WAITING {
            drop(queue.enqueue(index));
            assert!(queue.queue.len() <= MIN_SWEEP_LENGTH);
        }
        let mut queued: Vec<_> = (0..MAX_WAITING).map(|index| enqueue(&mut queue, index)).collect();
        assert!(matches!(queue.enqueue(0), Reply::WaitQueueFull));
        queued.pop();
        let _last = enqueue(&mut queue, 0);
        assert!(matches!(queue.enqueue(0), Reply::WaitQueueFull));
    }
}
