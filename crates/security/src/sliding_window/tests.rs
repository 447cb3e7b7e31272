//! Tests of the sliding window: exact to the nanosecond, bounded in memory.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const NANOSECOND: Duration = Duration::from_nanos(1);

fn limit(quota: u32, window_s: u32) -> Limit {
    Limit { quota, window_s }
}

#[test]
fn request_over_quota_waits_until_the_first_expires() {
    let limit = limit(100, 60);
    let mut window = SlidingWindow::new(limit);
    for n in 0..100 {
        let status = window.try_acquire(limit, SECOND + n * MILLISECOND).unwrap();
        assert_eq!(status.remaining, 99 - n);
        assert_eq!(status.next_slot_in, 60 * SECOND - n * MILLISECOND);
    }
    for (at, more_in) in [
        (2 * SECOND, 59 * SECOND),
        (60 * SECOND, SECOND),
        (61 * SECOND - NANOSECOND, NANOSECOND),
    ] {
        let Err(Exhausted(status)) = window.try_acquire(limit, at) else {
            panic!("the request at {at:?} passes")
        };
        assert_eq!((status.remaining, status.next_slot_in), (0, more_in), "{at:?}");
    }
    assert!(window.try_acquire(limit, 61 * SECOND).is_ok());
    let Err(Exhausted(status)) = window.try_acquire(limit, 61 * SECOND) else {
        panic!("one slot is free, and two requests pass")
    };
    assert_eq!(
        status.next_slot_in, MILLISECOND,
        "the second request expires next"
    );
}

#[test]
fn peek_counts_no_request() {
    let limit = limit(1, 60);
    let mut window = SlidingWindow::new(limit);
    for _ in 0..3 {
        let status = window.peek(limit, SECOND).unwrap();
        assert_eq!((status.remaining, status.next_slot_in), (1, 60 * SECOND));
    }
    assert!(window.try_acquire(limit, SECOND).is_ok());
    assert!(window.peek(limit, SECOND).is_err());
}

#[test]
fn limit_changed_keeps_counted_requests() {
    let mut window = SlidingWindow::new(limit(10, 60));
    for n in 1..=10 {
        assert!(window.try_acquire(limit(10, 60), n * SECOND).is_ok());
    }
    // Raised: two more pass. Lowered: nine must expire before one passes. Shorter: the old ones have expired.
    let raised = limit(12, 60);
    assert_eq!(window.try_acquire(raised, 10 * SECOND).unwrap().remaining, 1);
    assert_eq!(window.try_acquire(raised, 10 * SECOND).unwrap().remaining, 0);
    assert!(window.try_acquire(raised, 10 * SECOND).is_err());
    let Err(Exhausted(status)) = window.try_acquire(limit(4, 60), 11 * SECOND) else {
        panic!("a lowered limit applies at once")
    };
    assert_eq!(
        (status.remaining, status.next_slot_in),
        (0, (60 + 9 - 11) * SECOND)
    );
    assert_eq!(
        window.try_acquire(limit(12, 5), 11 * SECOND).unwrap().remaining,
        12 - 7
    );
    assert!(window.try_acquire(limit(1, 60), 11 * SECOND).is_err());
}

#[test]
fn large_quota_is_exact_to_a_tick_in_bounded_memory() {
    let (limit, tick) = (limit(1_000_000, 60), 60 * SECOND / RESOLUTION + NANOSECOND);
    let mut window = SlidingWindow::new(limit);
    let mut now = SECOND;
    for _ in 0..1_000_000 {
        assert!(window.try_acquire(limit, now).is_ok());
        now += 59 * MILLISECOND / 1_000;
    }
    assert!(window.try_acquire(limit, now).is_err());
    assert!(
        window.buckets.len() <= RESOLUTION as usize + 2,
        "{}",
        window.buckets.len()
    );
    assert!(
        window.try_acquire(limit, 61 * SECOND - NANOSECOND).is_err(),
        "no slot is free early"
    );
    assert!(
        window.try_acquire(limit, 61 * SECOND + tick).is_ok(),
        "a slot is free at most a tick late"
    );
}

#[test]
fn limit_changed_repeatedly_stays_in_bounded_memory() {
    let mut window = SlidingWindow::new(limit(MAX, 1));
    let mut now = SECOND;
    for n in 0..200_000_u32 {
        let change = n / 12_000;
        assert!(window.try_acquire(limit(MAX - change, 1 << change), now).is_ok());
        now += 97 * Duration::from_micros(1);
    }
    assert!(
        window.buckets.len() <= RESOLUTION as usize + 2,
        "{}",
        window.buckets.len()
    );
}

/// A quota that no test exhausts.
const MAX: u32 = vouchsafe_domain::limits::MAX_QUOTA;

#[test]
fn window_is_idle_once_all_requests_expired() {
    let limit = limit(5, 60);
    let mut window = SlidingWindow::new(limit);
    assert!(window.is_idle(Duration::ZERO));
    assert!(window.try_acquire(limit, SECOND).is_ok());
    for (at, idle) in [
        (SECOND, false),
        (61 * SECOND - NANOSECOND, false),
        (61 * SECOND, true),
    ] {
        assert_eq!(window.is_idle(at), idle, "{at:?}");
    }
}

#[test]
fn clock_stepping_back_frees_no_slot() {
    let limit = limit(2, 10);
    let mut window = SlidingWindow::new(limit);
    assert!(window.try_acquire(limit, 5 * SECOND).is_ok());
    assert!(window.try_acquire(limit, 4 * SECOND).is_ok());
    assert!(window.try_acquire(limit, 3 * SECOND).is_err());
    assert!(window.try_acquire(limit, 15 * SECOND - NANOSECOND).is_err());
    assert!(window.try_acquire(limit, 15 * SECOND).is_ok());
}

/// The naive implementation: a log of every request.
#[derive(Default)]
struct Log(Vec<Duration>);

impl Log {
    /// Requests in the span of this length that ends at `now`.
    fn held(&self, length: Duration, now: Duration) -> u32 {
        let held = self.0.iter().filter(|at| **at + length > now);
        u32::try_from(held.count()).unwrap()
    }
}

proptest! {
    #[test]
    fn small_quota_equals_a_naive_log(
        quota in 1_u32..8,
        window_s in 1_u32..4,
        gaps_ms in prop::collection::vec(0_u64..1_500, 1..80),
    ) {
        let limit = limit(quota, window_s);
        let (mut window, mut log, mut now) = (SlidingWindow::new(limit), Log::default(), Duration::ZERO);
        for gap_ms in gaps_ms {
            now += Duration::from_millis(gap_ms);
            let held = log.held(window.length(), now);
            match window.try_acquire(limit, now) {
                Ok(status) => {
                    prop_assert!(held < quota);
                    prop_assert_eq!(status.remaining, quota - held - 1);
                    log.0.push(now);
                }
                Err(Exhausted(status)) => {
                    prop_assert_eq!(held, quota);
                    // Exact to the nanosecond: no slot just before, one from then on.
                    let next_slot_at = now + status.next_slot_in;
                    prop_assert_eq!(log.held(window.length(), next_slot_at - NANOSECOND), quota);
                    prop_assert!(log.held(window.length(), next_slot_at) < quota);
                }
            }
        }
    }

    #[test]
    fn changing_limits_are_never_exceeded(
        requests in prop::collection::vec((1_u32..6, 0_u64..900), 1..80),
    ) {
        let (mut window, mut log, mut now) = (SlidingWindow::new(limit(1, 2)), Log::default(), Duration::ZERO);
        for (quota, gap_ms) in requests {
            now += Duration::from_millis(gap_ms);
            if window.try_acquire(limit(quota, 2), now).is_ok() {
                log.0.push(now);
                prop_assert!(log.held(2 * SECOND, now) <= quota);
            } else {
                prop_assert!(log.held(2 * SECOND, now) >= quota);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn large_quota_is_never_exceeded_and_at_most_a_tick_late(
        extra in 1_u32..200,
        bursts in prop::collection::vec((0_u64..700_000, 1_u32..1_500), 1..25),
    ) {
        let quota = RESOLUTION + extra;
        let limit = limit(quota, 1);
        let (mut window, mut log, mut now) = (SlidingWindow::new(limit), Log::default(), Duration::ZERO);
        let tick = Duration::from_nanos(window.tick_ns());
        for (gap_us, count) in bursts {
            now += Duration::from_micros(gap_us);
            let exact = log.held(SECOND, now);
            let late = log.held(SECOND + tick, now);
            let passed = (0..count).take_while(|_| window.try_acquire(limit, now).is_ok()).count();
            let passed = u32::try_from(passed).unwrap();
            prop_assert!(exact + passed <= quota);
            prop_assert!(passed == count || late + passed >= quota);
            log.0.extend(std::iter::repeat_n(now, passed as usize));
            prop_assert!(window.buckets.len() <= RESOLUTION as usize + 2);
        }
    }
}
