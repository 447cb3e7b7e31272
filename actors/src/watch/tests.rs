//! Waiting, in time that stands still until everybody waits.

use std::cell::Cell;
use std::convert::Infallible;

use time::macros::datetime;

use super::*;

/// An order as another process might change it, and how often it was looked at.
#[derive(Default)]
struct Row {
    changed: Cell<bool>,
    looks: Cell<u32>,
}

impl Row {
    fn look(&self) -> std::future::Ready<Result<bool, Infallible>> {
        self.looks.set(self.looks.get() + 1);
        std::future::ready(Ok(self.changed.get()))
    }
}

fn order() -> OrderId {
    OrderId::at(datetime!(2026-11-20 12:00 UTC))
}

/// Waits so long for the row, while something else happens; gives how long it took.
async fn wait(
    watch: &Arc<Watch>,
    order_id: OrderId,
    row: &Row,
    seconds: u64,
    meanwhile: impl Future,
) -> Duration {
    let seat = watch.seat(CredentialId::generate(), order_id).unwrap();
    let begin = Instant::now();
    let waiting = async {
        seat.wait(Duration::from_secs(seconds), || row.look())
            .await
            .unwrap();
        begin.elapsed()
    };
    tokio::join!(waiting, meanwhile).0
}

async fn after(ms: u64, happens: impl FnOnce()) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    happens();
}

fn assert_empty(watch: &Watch) {
    assert!(watch.bells.is_empty() && watch.by_key.is_empty());
    assert_eq!(watch.places.available_permits(), MAX_WAITERS);
}

#[tokio::test(start_paused = true)]
async fn what_has_changed_already_is_not_waited_for() {
    let (watch, row) = (Watch::new(), Row::default());
    row.changed.set(true);
    assert_eq!(wait(&watch, order(), &row, 30, async {}).await, Duration::ZERO);
    assert_empty(&watch);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_this_process_wakes_at_once() {
    let (watch, row, order_id) = (Watch::new(), Row::default(), order());
    let commit = after(1_234, || {
        row.changed.set(true);
        watch.changed(order_id);
    });
    assert_eq!(
        wait(&watch, order_id, &row, 30, commit).await,
        Duration::from_millis(1_234)
    );
    assert_empty(&watch);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_left_the_status_is_waited_past() {
    let (watch, row, order_id) = (Watch::new(), Row::default(), order());
    let commit = after(100, || watch.changed(order_id));
    assert_eq!(
        wait(&watch, order_id, &row, 2, commit).await,
        Duration::from_secs(2)
    );
}

#[tokio::test(start_paused = true)]
async fn another_orders_commit_wakes_nobody() {
    let (watch, row) = (Watch::new(), Row::default());
    let commit = after(100, || {
        row.changed.set(true);
        watch.changed(order());
    });
    assert_eq!(wait(&watch, order(), &row, 30, commit).await, LOOK_EVERY);
}

#[tokio::test(start_paused = true)]
async fn what_another_process_commits_is_seen_within_half_a_second() {
    let (watch, row) = (Watch::new(), Row::default());
    let commit = after(3_100, || row.changed.set(true));
    assert_eq!(
        wait(&watch, order(), &row, 30, commit).await,
        Duration::from_millis(3_500)
    );
    assert_eq!(row.looks.get(), 8);
}

#[tokio::test(start_paused = true)]
async fn patience_ends() {
    let (watch, row) = (Watch::new(), Row::default());
    for seconds in [0, 1, 30] {
        assert_eq!(
            wait(&watch, order(), &row, seconds, async {}).await,
            Duration::from_secs(seconds)
        );
    }
    assert_empty(&watch);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_service_wakes_everybody() {
    let (watch, row) = (Watch::new(), Row::default());
    let end = after(700, || watch.close());
    assert_eq!(
        wait(&watch, order(), &row, 30, end).await,
        Duration::from_millis(700)
    );
    assert!(watch.seat(CredentialId::generate(), order()).is_none());
    assert_empty(&watch);
}

#[tokio::test(start_paused = true)]
async fn a_failed_look_ends_the_wait() {
    let watch = Watch::new();
    let seat = watch.seat(CredentialId::generate(), order()).unwrap();
    let waited = seat
        .wait(Duration::from_secs(30), || std::future::ready(Err("no answer")))
        .await;
    assert_eq!(waited, Err("no answer"));
    assert_empty(&watch);
}

#[test]
fn a_key_has_so_many_seats_and_gets_them_back() {
    let (watch, key, order_id) = (Watch::new(), CredentialId::generate(), order());
    let seats: Vec<_> = (0..MAX_WAITERS_PER_KEY)
        .map(|_| watch.seat(key, order_id).unwrap())
        .collect();
    assert!(watch.seat(key, order_id).is_none());
    assert!(watch.seat(CredentialId::generate(), order_id).is_some());
    drop(seats);
    assert!(watch.seat(key, order_id).is_some());
    assert_empty(&watch);
}

#[test]
fn all_keys_together_have_so_many_seats() {
    let watch = Watch::new();
    let mut seats: Vec<_> = (0..MAX_WAITERS)
        .map(|_| watch.seat(CredentialId::generate(), order()).unwrap())
        .collect();
    assert!(watch.seat(CredentialId::generate(), order()).is_none());
    seats.pop();
    assert!(watch.seat(CredentialId::generate(), order()).is_some());
    drop(seats);
    assert_empty(&watch);
}
