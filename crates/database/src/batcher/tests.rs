//! Batch composition, failure isolation and delays of the batcher, without a database.

use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Handle;

use super::*;
use crate::connection_class::{ConnectionMetrics, ConnectionSettings};
use crate::connection_pool::timeout_error;

/// Fails its batch, and fails alone, too.
const FAILS: u32 = 10_001;

/// Panics in a batch.
const PANICS: u32 = 10_002;

/// Is left out of its batch.
const DEFERRED: u32 = 10_003;

/// Fails without failing its batch.
const OWN_ERROR: u32 = 10_004;

/// Marks the responses of requests that ran alone.
const ALONE_OFFSET: u32 = 1_000_000;

/// Responds with the request itself and records the batches. Needs no database.
#[derive(Debug, Clone)]
struct Echo<const WORKERS: usize> {
    batch_time: Duration,
    batches: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl<const WORKERS: usize> Echo<WORKERS> {
    fn with_batch_time(batch_time: Duration) -> Self {
        Self {
            batch_time,
            batches: Arc::default(),
        }
    }

    fn batches(&self) -> Vec<Vec<u32>> {
        self.batches.lock().clone()
    }

    fn batcher(&self, kind: BatcherKind) -> Batcher<Self> {
        let (settings, metrics) = (ConnectionSettings::DEFAULT, ConnectionMetrics::default());
        let database = Database::new(
            &PgConnectOptions::new().into(),
            Handle::current(),
            settings,
            &metrics,
        );
        Batcher::start(&database, self, kind)
    }
}

impl<const WORKERS: usize> BatchOp for Echo<WORKERS> {
    type Request = u32;
    type Response = u32;

    const MAX_BATCH: usize = 32;

    const WORKERS: usize = WORKERS;

    async fn execute_batch(self, _: PgPool, requests: Vec<u32>) -> Result<BatchResponse<u32>, sqlx::Error> {
        self.batches.lock().push(requests.clone());
        sleep(self.batch_time).await;
        assert!(!requests.contains(&PANICS), "the test requested this panic");
        if requests.contains(&FAILS) {
            return Err(sqlx::Error::RowNotFound);
        }
        let respond = |request| match request {
            DEFERRED => None,
            OWN_ERROR => Some(Err(sqlx::Error::RowNotFound)),
            request => Some(Ok(request)),
        };
        Ok(requests.into_iter().map(respond).collect())
    }

    async fn execute_one(self, _: PgPool, request: u32) -> Result<u32, sqlx::Error> {
        match request {
            FAILS => Err(sqlx::Error::RowNotFound),
            request => Ok(request + ALONE_OFFSET),
        }
    }
}

const BATCH_TIME: Duration = Duration::from_millis(2);

#[test]
fn delay_grows_while_batches_are_slow_and_requests_wait() {
    let ms = Duration::from_millis;
    let slow = SLOW_BATCH;
    let fast = SLOW_BATCH / 2;
    for (previous, took, queue_length, expected) in [
        (0, slow, 0, 0),
        (0, fast, 1, 0),
        (0, slow, 1, 1),
        (1, slow, 1, 2),
        (2, slow, Echo::<1>::MAX_BATCH - 1, 4),
        (4, slow, 1, 4),
        (4, slow, Echo::<1>::MAX_BATCH, 0),
        (4, slow, 0, 2),
        (4, fast, 1, 2),
        (2, fast, 1, 1),
        (1, fast, 1, 0),
        (1, slow, 0, 0),
    ] {
        let delay = next_batch_delay(ms(previous), took, queue_length, Echo::<1>::MAX_BATCH);
        assert_eq!(
            delay,
            ms(expected),
            "{previous} ms, then {took:?}, {queue_length} queued"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn sequential_requests_are_not_delayed() {
    let echo = Echo::<1>::with_batch_time(BATCH_TIME);
    let batcher = echo.batcher(BatcherKind::Lookup);
    let started = Instant::now();
    for request in 0..100 {
        assert_eq!(batcher.submit(request).await, Ok(request));
    }
    assert_eq!(started.elapsed(), 100 * BATCH_TIME);
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_share_batches() {
    let echo = Echo::<1>::with_batch_time(BATCH_TIME);
    let batcher = echo.batcher(BatcherKind::Lookup);
    let submissions = (0..1_000).map(|request| {
        let batcher = batcher.clone();
        async move {
            sleep(Duration::from_millis(request.into())).await;
            let started = Instant::now();
            assert_eq!(batcher.submit(request).await, Ok(request));
            started.elapsed()
        }
    });
    let durations = join_all(submissions).await;
    assert!(
        durations
            .into_iter()
            .all(|duration| duration <= 2 * BATCH_TIME + MAX_DELAY)
    );
    let batches = echo.batches();
    assert!(
        batches.len() <= 1_000 / 5,
        "one request per millisecond took {} batches",
        batches.len()
    );
    assert!(
        batches.concat().into_iter().eq(0..1_000),
        "each request runs once and in order"
    );
}

#[tokio::test(start_paused = true)]
async fn full_batch_starts_without_delay() {
    let echo = Echo::<1>::with_batch_time(BATCH_TIME);
    let batcher = echo.batcher(BatcherKind::Lookup);
    let count = u32::try_from(4 * Echo::<1>::MAX_BATCH).unwrap();
    let started = Instant::now();
    join_all((0..count).map(|request| batcher.submit(request))).await;
    assert_eq!(echo.batches().len(), 4);
    assert!(started.elapsed() <= 4 * BATCH_TIME + MAX_DELAY);
}

#[tokio::test(start_paused = true)]
async fn request_queued_past_acquire_timeout_is_rejected() {
    let echo = Echo::<2>::with_batch_time(ACQUIRE_TIMEOUT * 2);
    let batcher = echo.batcher(BatcherKind::Write);
    let submissions = (1..=3).map(|request| {
        let batcher = batcher.clone();
        async move {
            sleep(BATCH_TIME * request).await;
            batcher.submit(request).await
        }
    });
    let responses = join_all(submissions).await;
    let rejected = Err(unavailable(&sqlx::Error::PoolTimedOut));
    assert_eq!(responses, [Ok(1), Ok(2), rejected]);
    assert_eq!(echo.batches(), [[1], [2]]);
}

#[tokio::test(start_paused = true)]
async fn blocked_operation_runs_alone_and_unblocks_the_queue() {
    let echo = Echo::<1>::with_batch_time(LOOKUP_DEADLINE * 10);
    let batcher = echo.batcher(BatcherKind::Lookup);
    let started = Instant::now();
    let second = async {
        sleep(BATCH_TIME).await;
        batcher.submit(2).await
    };
    let (first, second) = tokio::join!(batcher.submit(1), second);
    assert_eq!((first, second), (Ok(1 + ALONE_OFFSET), Ok(2 + ALONE_OFFSET)));
    assert!(started.elapsed() <= 2 * LOOKUP_DEADLINE + MAX_DELAY);
}

#[tokio::test(start_paused = true)]
async fn second_worker_runs_while_the_first_is_busy() {
    let echo = Echo::<2>::with_batch_time(BATCH_TIME);
    let batcher = echo.batcher(BatcherKind::Write);
    let started = Instant::now();
    let second = async {
        sleep(BATCH_TIME / 2).await;
        batcher.submit(2).await
    };
    let (first, second) = tokio::join!(batcher.submit(1), second);
    assert_eq!((first, second), (Ok(1), Ok(2)));
    assert_eq!(started.elapsed(), BATCH_TIME + BATCH_TIME / 2);
}

#[tokio::test(start_paused = true)]
async fn failure_in_a_batch_fails_no_other_request() {
    let echo = Echo::<1>::with_batch_time(BATCH_TIME);
    let batcher = echo.batcher(BatcherKind::Lookup);
    let failed = || Err(unavailable(&sqlx::Error::RowNotFound));
    for (requests, expected) in [
        (
            [1, 2, FAILS],
            [Ok(1 + ALONE_OFFSET), Ok(2 + ALONE_OFFSET), failed()],
        ),
        (
            [3, PANICS, 4],
            [
                Ok(3 + ALONE_OFFSET),
                Ok(PANICS + ALONE_OFFSET),
                Ok(4 + ALONE_OFFSET),
            ],
        ),
        (
            [5, DEFERRED, OWN_ERROR],
            [Ok(5), Ok(DEFERRED + ALONE_OFFSET), failed()],
        ),
    ] {
        let responses = join_all(requests.map(|request| batcher.submit(request))).await;
        assert_eq!(responses, expected, "{requests:?}");
    }
    assert_eq!(echo.batches().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn counts_of_a_failed_batch_do_not_run_alone() {
    let echo = Echo::<1>::with_batch_time(BATCH_TIME);
    let batcher = echo.batcher(BatcherKind::Count);
    let failed = Err(unavailable(&sqlx::Error::RowNotFound));
    let responses = join_all([1, 2, FAILS].map(|request| batcher.submit(request))).await;
    assert_eq!(responses, [failed.clone(), failed.clone(), failed]);
    assert_eq!(batcher.submit(3).await, Ok(3));

    let blocked = Echo::<1>::with_batch_time(LOOKUP_DEADLINE * 10);
    let batcher = blocked.batcher(BatcherKind::Count);
    let timed_out = Err(unavailable(&timeout_error(LOOKUP_DEADLINE)));
    assert_eq!(batcher.submit(1).await, timed_out);
}
