//! Tests of the circuit breaker's transitions.

use super::*;

/// An event at a time in seconds.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A call passes and gets a response.
    Answered,
    /// A call passes and fails.
    Failed,
    /// A call passes and never ends.
    Lost,
    /// A call is rejected for this many seconds.
    Rejected(u64),
}

use Step::{Answered, Failed, Lost, Rejected};

fn run(steps: &[(u64, Step)]) {
    let mut breaker = CircuitBreaker::new();
    for (number, &(at, step)) in steps.iter().enumerate() {
        let now = Duration::from_secs(at);
        match (breaker.try_acquire(now), step) {
            (Ok(permit), Answered) => breaker.record_success(permit, now),
            (Ok(permit), Failed) => drop(breaker.record_failure(permit, now)),
            (Ok(_), Lost) => {}
            (Err(CircuitOpen(wait)), Rejected(expected)) => {
                assert_eq!(wait, Duration::from_secs(expected), "step {number} of {steps:?}");
            }
            (result, _) => panic!("step {number} of {steps:?}: {result:?}"),
        }
    }
}

#[test]
fn circuit_opens_closes_and_opens_again() {
    let failures = [(0, Failed); 5];
    let after = |steps: &[(u64, Step)]| [&failures[..], steps].concat();
    for steps in [
        // Four failures, a response, four failures: it stays closed.
        [&failures[..4], &[(0, Answered)], &failures[..4], &[(0, Answered)]].concat(),
        // The fifth opens it for one second.
        after(&[(0, Rejected(1))]),
        // One trial call passes; its response closes the circuit.
        after(&[(1, Answered), (1, Answered), (1, Failed), (1, Answered)]),
        // While the trial call is in flight others are rejected for one second at a time.
        after(&[(1, Lost), (1, Rejected(1)), (31, Rejected(1)), (60, Rejected(1))]),
        // A trial call that never ends times out.
        after(&[(1, Lost), (61, Answered), (61, Answered)]),
        // Each failed trial doubles the pause, up to one minute.
        after(&[
            (1, Failed),
            (1, Rejected(2)),
            (3, Failed),
            (3, Rejected(4)),
            (7, Failed),
            (15, Failed),
            (31, Failed),
            (63, Failed),
            (63, Rejected(60)),
            (123, Failed),
            (123, Rejected(60)),
        ]),
        // After a response the pause is short again.
        [
            after(&[(1, Failed), (3, Answered)]),
            vec![(4, Failed); 5],
            vec![(4, Rejected(1))],
        ]
        .concat(),
    ] {
        run(&steps);
    }
}

#[test]
fn call_from_before_opening_is_ignored() {
    let now = Duration::ZERO;
    let mut breaker = CircuitBreaker::new();
    let [early, late] = [(); 2].map(|()| breaker.try_acquire(now).unwrap());
    for left in (0..FAILURE_THRESHOLD).rev() {
        let permit = breaker.try_acquire(now).unwrap();
        assert_eq!(breaker.record_failure(permit, now).is_some(), left == 0);
    }
    breaker.record_success(early, now);
    assert_eq!(breaker.record_failure(late, now), None);
    assert_eq!(
        breaker.try_acquire(now).unwrap_err(),
        CircuitOpen(OPEN_DURATION.0)
    );
}

#[test]
fn snapshot_shows_state_its_beginning_and_the_next_probe() {
    let second = Duration::from_secs;
    let mut breaker = CircuitBreaker::new();
    let expect =
        |breaker: &CircuitBreaker, state, since: Option<u64>, failures, next_probe_at: Option<u64>| {
            let expected = CircuitSnapshot {
                state,
                since: since.map(second),
                failures,
                next_probe_at: next_probe_at.map(second),
            };
            assert_eq!(breaker.snapshot(), expected);
        };
    let fail = |breaker: &mut CircuitBreaker, at| {
        let permit = breaker.try_acquire(second(at)).unwrap();
        let _ = breaker.record_failure(permit, second(at));
    };
    expect(&breaker, CircuitState::Closed, None, 0, None);
    (1..=4).for_each(|at| fail(&mut breaker, at));
    expect(&breaker, CircuitState::Closed, None, 4, None);
    fail(&mut breaker, 10);
    expect(&breaker, CircuitState::Open, Some(10), 5, Some(11));
    fail(&mut breaker, 12);
    expect(&breaker, CircuitState::Open, Some(12), 6, Some(14));
    let permit = breaker.try_acquire(second(15)).unwrap();
    expect(&breaker, CircuitState::HalfOpen, Some(15), 6, None);
    breaker.record_success(permit, second(16));
    expect(&breaker, CircuitState::Closed, Some(16), 0, None);
    let permit = breaker.try_acquire(second(20)).unwrap();
    breaker.record_success(permit, second(20));
    expect(&breaker, CircuitState::Closed, Some(16), 0, None);
}
