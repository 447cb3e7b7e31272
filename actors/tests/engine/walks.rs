//! Random walks through everything that can go wrong. More of them: `VOUCHSAFE_WALK_SEEDS`, `VOUCHSAFE_WALK_STEPS`; others:
//! `VOUCHSAFE_WALK_FIRST`, the first seed.

use std::collections::BTreeMap;
use std::fmt::Debug;

use vouchsafe_actors::testing::FaultKind;
use vouchsafe_actors::testing::world::live;
use vouchsafe_actors::testing::world::vendors::Trouble;
use vouchsafe_actors::testing::world::walk::{ANSWERS, STEPS, Walked, walk};

use crate::panics::quietly;

/// After how many walks of a campaign it is told what was counted so far.
const TOLD_EVERY: u64 = 500;

fn from_env(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Walks on a thread of its own time; a failure prints the seed.
fn walk_alone(seed: u64, steps: u32) -> Walked {
    quietly();
    let outcome = std::panic::catch_unwind(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live(walk(seed, steps)))
    });
    outcome.unwrap_or_else(|panic| {
        eprintln!("the seed is {seed}, of {steps} steps");
        std::panic::resume_unwind(panic)
    })
}

fn add<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (kind, count) in counts {
        *sum.entry(*kind).or_default() += count;
    }
}

fn all_happened<K: Ord + Debug>(kinds: impl IntoIterator<Item = K>, counts: &BTreeMap<K, u64>) {
    for kind in kinds {
        assert!(
            counts.get(&kind).is_some_and(|count| *count > 0),
            "{kind:?} never happened: {counts:?}"
        );
    }
}

#[test]
fn whatever_goes_wrong_nothing_is_sold_twice_and_nobody_hears_two_things() {
    let first = u64::from(from_env("VOUCHSAFE_WALK_FIRST", 0));
    let seeds = u64::from(from_env("VOUCHSAFE_WALK_SEEDS", 12));
    let steps = from_env("VOUCHSAFE_WALK_STEPS", 300);
    let mut sum = Walked::default();
    for seed in first..first + seeds {
        let walked = walk_alone(seed, steps);
        add(&mut sum.faults, &walked.faults);
        add(&mut sum.steps, &walked.steps);
        add(&mut sum.answers, &walked.answers);
        add(&mut sum.troubles, &walked.troubles);
        let walks = seed + 1 - first;
        if walks.is_multiple_of(TOLD_EVERY) || walks == seeds {
            println!("{walks} walks of {steps} steps: {:?}", sum.steps);
            println!(
                "faults: {:?}
answers: {:?}",
                sum.faults, sum.answers
            );
            println!("vendors: {:?}", sum.troubles);
        }
    }
    all_happened(FaultKind::ALL, &sum.faults);
    all_happened(STEPS.map(|(name, _)| name), &sum.steps);
    all_happened(ANSWERS, &sum.answers);
    all_happened(Trouble::ALL, &sum.troubles);
}

#[test]
fn one_seed_gives_one_history() {
    for seed in [5, 11] {
        let [first, second] = [walk_alone(seed, 120), walk_alone(seed, 120)];
        assert_eq!(first, second, "the seed is {seed}");
    }
    assert_ne!(walk_alone(5, 60).lines, walk_alone(6, 60).lines);
}
