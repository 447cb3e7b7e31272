//! When the breaker opens, and when it closes again.

use super::*;

/// What happens at a moment, in seconds.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A call passes and is answered.
    Answered,
    /// A call passes and fails.
    Failed,
    /// A call passes, and nothing is heard of it.
    Lost,
    /// A call is held back for so many seconds.
    HeldBack(u64),
}

use Step::{Answered, Failed, HeldBack as Held, Lost};

fn play(steps: &[(u64, Step)]) {
    let mut breaker = CircuitBreaker::new();
    for (number, &(at, step)) in steps.iter().enumerate() {
        let now = Duration::from_secs(at);
        match (breaker.try_acquire(now), step) {
            (Ok(pass), Answered) => breaker.record_success(pass),
            (Ok(pass), Failed) => drop(breaker.record_failure(pass, now)),
            (Ok(_), Lost) => {}
            (Err(CircuitOpen(wait)), Held(expected)) => {
                assert_eq!(wait, Duration::from_secs(expected), "step {number} of {steps:?}");
            }
            (entered, _) => panic!("step {number} of {steps:?}: {entered:?}"),
        }
    }
}

#[test]
fn it_opens_closes_and_opens_again() {
    let failures = [(0, Failed); 5];
    let after = |steps: &[(u64, Step)]| [&failures[..], steps].concat();
    for steps in [
        // Four failures, an answer, four failures: it stays closed.
        [&failures[..4], &[(0, Answered)], &failures[..4], &[(0, Answered)]].concat(),
        // The fifth opens it, for a second.
        after(&[(0, Held(1))]),
        // One call passes then, and its answer closes it for all.
        after(&[(1, Answered), (1, Answered), (1, Failed), (1, Answered)]),
        // While that one is under way the others are held back, a second at a time: it may end at any moment.
        after(&[(1, Lost), (1, Held(1)), (31, Held(1)), (60, Held(1))]),
        // It is not waited for for ever.
        after(&[(1, Lost), (61, Answered), (61, Answered)]),
        // Its failure opens it for twice as long each time, a minute at most.
        after(&[
            (1, Failed),
            (1, Held(2)),
            (3, Failed),
            (3, Held(4)),
            (7, Failed),
            (15, Failed),
            (31, Failed),
            (63, Failed),
            (63, Held(60)),
            (123, Failed),
            (123, Held(60)),
        ]),
        // After an answer it begins with the short pause again.
        [
            after(&[(1, Failed), (3, Answered)]),
            vec![(4, Failed); 5],
            vec![(4, Held(1))],
        ]
        .concat(),
    ] {
        play(&steps);
    }
}

#[test]
fn a_call_from_before_says_nothing_after() {
    let now = Duration::ZERO;
    let mut breaker = CircuitBreaker::new();
    let [early, late] = [(); 2].map(|()| breaker.try_acquire(now).unwrap());
    for left in (0..FAILURE_THRESHOLD).rev() {
        let pass = breaker.try_acquire(now).unwrap();
        assert_eq!(breaker.record_failure(pass, now).is_some(), left == 0);
    }
    breaker.record_success(early);
    assert_eq!(breaker.record_failure(late, now), None);
    assert_eq!(breaker.try_acquire(now).unwrap_err(), CircuitOpen(OPEN_DURATION.0));
}
