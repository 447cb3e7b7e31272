//! Long-poll tests with paused time.

use std::cell::Cell;
use std::convert::Infallible;

use time::macros::datetime;

use super::*;

/// An order row that the test changes, and the number of times it was polled.
#[derive(Default)]
struct Row {
    changed: Cell<bool>,
    polls: Cell<u32>,
}

impl Row {
    fn poll(&self) -> std::future::Ready<Result<bool, Infallible>> {
        self.polls.set(self.polls.get() + 1);
        std::future::ready(Ok(self.changed.get()))
    }
}

fn order() -> OrderId {
    OrderId::generate_at(datetime!(2026-11-20 12:00 UTC))
}

/// Long-polls the row for up to `seconds` while `meanwhile` runs; returns the elapsed time.
async fn wait(
    registry: &Arc<LongPollRegistry>,
    order_id: OrderId,
    row: &Row,
    seconds: u64,
    meanwhile: impl Future,
) -> Duration {
    let subscription = registry
        .subscribe(CredentialId::generate(), order_id.as_uuid())
        .unwrap();
    let begin = Instant::now();
    let waiting = async {
        subscription
            .wait(Duration::from_secs(seconds), || row.poll())
            .await
            .unwrap();
        begin.elapsed()
    };
    tokio::join!(waiting, meanwhile).0
}

async fn after(ms: u64, action: impl FnOnce()) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    action();
}

fn assert_empty(registry: &LongPollRegistry) {
    assert!(registry.topics.is_empty() && registry.per_family.is_empty());
    assert_eq!(registry.permits.available_permits(), MAX_WAITERS);
}

#[tokio::test(start_paused = true)]
async fn wait_for_changed_order_returns_at_once() {
    let (registry, row) = (LongPollRegistry::new(), Row::default());
    row.changed.set(true);
    assert_eq!(wait(&registry, order(), &row, 30, async {}).await, Duration::ZERO);
    assert_empty(&registry);
}

#[tokio::test(start_paused = true)]
async fn commit_of_this_process_wakes_waiter_at_once() {
    let (registry, row, order_id) = (LongPollRegistry::new(), Row::default(), order());
    let commit = after(1_234, || {
        row.changed.set(true);
        registry.notify(order_id);
    });
    assert_eq!(
        wait(&registry, order_id, &row, 30, commit).await,
        Duration::from_millis(1_234)
    );
    assert_empty(&registry);
}

#[tokio::test(start_paused = true)]
async fn commit_without_status_change_does_not_end_wait() {
    let (registry, row, order_id) = (LongPollRegistry::new(), Row::default(), order());
    let commit = after(100, || registry.notify(order_id));
    assert_eq!(
        wait(&registry, order_id, &row, 2, commit).await,
        Duration::from_secs(2)
    );
}

#[tokio::test(start_paused = true)]
async fn commit_of_other_order_does_not_wake_waiter() {
    let (registry, row) = (LongPollRegistry::new(), Row::default());
    let commit = after(100, || {
        row.changed.set(true);
        registry.notify(order());
    });
    assert_eq!(wait(&registry, order(), &row, 30, commit).await, POLL_INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn commit_of_other_process_is_seen_within_half_a_second() {
    let (registry, row) = (LongPollRegistry::new(), Row::default());
    let commit = after(3_100, || row.changed.set(true));
    assert_eq!(
        wait(&registry, order(), &row, 30, commit).await,
        Duration::from_millis(3_500)
    );
    assert_eq!(row.polls.get(), 8);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_at_its_timeout() {
    let (registry, row) = (LongPollRegistry::new(), Row::default());
    for seconds in [0, 1, 30] {
        assert_eq!(
            wait(&registry, order(), &row, seconds, async {}).await,
            Duration::from_secs(seconds)
        );
    }
    assert_empty(&registry);
}

#[tokio::test(start_paused = true)]
async fn shutdown_wakes_all_waiters() {
    let (registry, row) = (LongPollRegistry::new(), Row::default());
    let end = after(700, || registry.close());
    assert_eq!(
        wait(&registry, order(), &row, 30, end).await,
        Duration::from_millis(700)
    );
    assert!(
        registry
            .subscribe(CredentialId::generate(), order().as_uuid())
            .is_none()
    );
    assert_empty(&registry);
}

#[tokio::test(start_paused = true)]
async fn failed_poll_ends_the_wait() {
    let registry = LongPollRegistry::new();
    let subscription = registry
        .subscribe(CredentialId::generate(), order().as_uuid())
        .unwrap();
    let waited = subscription
        .wait(Duration::from_secs(30), || {
            std::future::ready(Err("store unavailable"))
        })
        .await;
    assert_eq!(waited, Err("store unavailable"));
    assert_empty(&registry);
}

#[test]
fn subscriptions_per_key_are_limited_and_released_on_drop() {
    let (registry, key, order_id) = (LongPollRegistry::new(), CredentialId::generate(), order());
    let subscriptions: Vec<_> = (0..MAX_WAITERS_PER_FAMILY)
        .map(|_| registry.subscribe(key, order_id.as_uuid()).unwrap())
        .collect();
    assert!(registry.subscribe(key, order_id.as_uuid()).is_none());
    assert!(
        registry
            .subscribe(CredentialId::generate(), order_id.as_uuid())
            .is_some()
    );
    drop(subscriptions);
    assert!(registry.subscribe(key, order_id.as_uuid()).is_some());
    assert_empty(&registry);
}

#[test]
fn subscriptions_in_total_are_limited_and_released_on_drop() {
    let registry = LongPollRegistry::new();
    let mut subscriptions: Vec<_> = (0..MAX_WAITERS)
        .map(|_| {
            registry
                .subscribe(CredentialId::generate(), order().as_uuid())
                .unwrap()
        })
        .collect();
    assert!(
        registry
            .subscribe(CredentialId::generate(), order().as_uuid())
            .is_none()
    );
    subscriptions.pop();
    assert!(
        registry
            .subscribe(CredentialId::generate(), order().as_uuid())
            .is_some()
    );
    drop(subscriptions);
    assert_empty(&registry);
}
