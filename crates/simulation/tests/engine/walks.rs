//! Random walks through the simulation. `VOUCHSAFE_WALK_SEEDS` and `VOUCHSAFE_WALK_STEPS` set their number
//! and length, `VOUCHSAFE_WALK_FIRST` the first seed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use strum::VariantArray as _;
use vouchsafe_simulation::FaultKind;
use vouchsafe_simulation::walk::random::{REPLIES, STEPS, WalkReport, random_walk};
use vouchsafe_simulation::walk::run_local;
use vouchsafe_simulation::walk::vendors::VendorFault;

use crate::panics::silence_intended_panics;

/// Number of walks between two printed summaries.
const REPORT_INTERVAL: u64 = 500;

fn from_env(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs a walk on paused time; a failure prints the seed.
fn run_walk(seed: u64, steps: u32) -> WalkReport {
    silence_intended_panics();
    let outcome = std::panic::catch_unwind(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run_local(random_walk(seed, steps)))
    });
    outcome.unwrap_or_else(|panic| {
        eprintln!("seed {seed}, {steps} steps");
        std::panic::resume_unwind(panic)
    })
}

fn add<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (kind, count) in counts {
        *sum.entry(*kind).or_default() += count;
    }
}

fn assert_all_occurred<K: Ord + Debug>(kinds: impl IntoIterator<Item = K>, counts: &BTreeMap<K, u64>) {
    for kind in kinds {
        assert!(
            counts.get(&kind).is_some_and(|count| *count > 0),
            "{kind:?} never occurred: {counts:?}"
        );
    }
}

#[test]
fn random_walks_violate_no_invariant() {
    let first = u64::from(from_env("VOUCHSAFE_WALK_FIRST", 0));
    let seeds = u64::from(from_env("VOUCHSAFE_WALK_SEEDS", 12));
    let steps = from_env("VOUCHSAFE_WALK_STEPS", 300);
    let next = AtomicU64::new(first);
    let sum = Mutex::new((0_u64, WalkReport::default()));
    // A walk uses one thread.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        break;
                    }
                    let report = run_walk(seed, steps);
                    let (walks, sum) = &mut *sum.lock().unwrap();
                    *walks += 1;
                    add(&mut sum.faults, &report.faults);
                    add(&mut sum.steps, &report.steps);
                    add(&mut sum.replies, &report.replies);
                    add(&mut sum.vendor_faults, &report.vendor_faults);
                    if walks.is_multiple_of(REPORT_INTERVAL) || *walks == seeds {
                        println!("{walks} walks of {steps} steps: {:?}", sum.steps);
                        println!(
                            "faults: {:?}
answers: {:?}",
                            sum.faults, sum.replies
                        );
                        println!("vendors: {:?}", sum.vendor_faults);
                    }
                }
            });
        }
    });
    let (_, sum) = sum.into_inner().unwrap();
    assert_all_occurred(FaultKind::VARIANTS.iter().copied(), &sum.faults);
    assert_all_occurred(STEPS.map(|(name, _)| name), &sum.steps);
    assert_all_occurred(REPLIES, &sum.replies);
    assert_all_occurred(VendorFault::VARIANTS.iter().copied(), &sum.vendor_faults);
}

#[test]
fn seed_reproduces_the_walk() {
    // Not every seed: `tokio::sync::watch` wakes several waiters for one key in random order.
    for seed in [5, 12] {
        let [first, second] = [run_walk(seed, 120), run_walk(seed, 120)];
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(run_walk(5, 60).lines, run_walk(6, 60).lines);
}
