//! Cancellation safety of changes to orders and payouts: aborted at each poll under each commit fault, and
//! repeated.
//!
//! Either the caller disconnects, or the node crashes and restarts. The effect occurs once and nothing leaks.

use std::time::Duration;

use vouchsafe_domain::payout::PayoutOutcome;
use vouchsafe_simulation::walk::{Node, Simulation};
use vouchsafe_simulation::{Fault, FaultKind, FaultRates};

use super::abort_after;
use crate::fixture::{ALICE, SECOND, assert_settled};
use crate::operations::{InitialState, Operation, observe, run_operation};
use crate::simulation_tests;

const MOMENT: Duration = Duration::from_millis(1);

/// Initial state, operation, and the observed state afterwards.
type ChangeCase = (InitialState, Operation, &'static str);

/// Labels of an operation that ends in this state, and of its repetition.
fn labels(operation: Operation, end: &str) -> [String; 2] {
    let status = end.split(' ').next().unwrap_or_default().to_owned();
    match operation {
        Operation::RequestPayout => ["requested", "replayed"].map(str::to_owned),
        Operation::Approve | Operation::Reject => [status, "NotAwaitingApproval".to_owned()],
        Operation::DecidePayout(PayoutOutcome::Cancelled) => [status.clone(), status],
        Operation::DecidePayout(outcome) => [status, format!("AlreadyDecided({outcome:?})")],
        _ => [status.clone(), status],
    }
}

/// One of three is delivered and retrieved.
const ONE_RETRIEVED: InitialState = InitialState::PartiallyDelivered {
    bought: 0,
    retrieved: true,
};
/// One of three is delivered, and this many are bought.
const BOUGHT_NONE: InitialState = InitialState::PartiallyDelivered {
    bought: 0,
    retrieved: false,
};
const BOUGHT_ONE: InitialState = InitialState::PartiallyDelivered {
    bought: 1,
    retrieved: false,
};
const BOUGHT_ALL: InitialState = InitialState::PartiallyDelivered {
    bought: 2,
    retrieved: false,
};

const CASES: [ChangeCase; 19] = [
    (
        InitialState::Delivered,
        Operation::Cancel,
        "REFUNDED 0/0/2 closed, 6 events, 5 free, 10000+0 after 3 entries",
    ),
    (
        InitialState::AwaitingVendor(1),
        Operation::Cancel,
        "REFUNDED 0/0/3 closed, 3 events, 1 free, 10000+0 after 3 entries",
    ),
    (
        InitialState::Delivered,
        Operation::Revoke,
        "REFUNDED 0/0/2 closed, 6 events, 5 free, 10000+0 after 3 entries",
    ),
    (
        ONE_RETRIEVED,
        Operation::Revoke,
        "PARTIALLY_DELIVERED 1/0/2 closed, 6 events, 0 free, 9000+0 after 3 entries",
    ),
    (
        InitialState::AwaitingApproval(2),
        Operation::Approve,
        "DELIVERED 2/0/0 closed, 5 events, 0 free, 8000+0 after 2 entries",
    ),
    (
        InitialState::AwaitingApproval(1),
        Operation::Approve,
        "PARTIALLY_DELIVERED 1/1/0, 4 events, 0 free, 8000+1000 after 2 entries",
    ),
    (
        InitialState::AwaitingApprovalStockOnly(1),
        Operation::Approve,
        "PARTIALLY_DELIVERED 1/0/1 closed, 6 events, 0 free, 9000+0 after 3 entries",
    ),
    (
        InitialState::AwaitingApproval(2),
        Operation::Reject,
        "REFUNDED 0/0/2 closed, 3 events, 2 free, 10000+0 after 3 entries",
    ),
    (
        InitialState::AwaitingVendor(3),
        Operation::Advance,
        "DELIVERED 3/0/0 closed, 6 events, 0 free, 7000+0 after 2 entries",
    ),
    (
        InitialState::AwaitingVendor(1),
        Operation::Advance,
        "PARTIALLY_DELIVERED 1/2/0, 4 events, 0 free, 7000+2000 after 2 entries",
    ),
    (
        BOUGHT_ALL,
        Operation::Deliver,
        "DELIVERED 3/0/0 closed, 7 events, 0 free, 7000+0 after 2 entries",
    ),
    (
        BOUGHT_ONE,
        Operation::Deliver,
        "PARTIALLY_DELIVERED 2/1/0, 6 events, 0 free, 7000+1000 after 2 entries",
    ),
    (
        BOUGHT_NONE,
        Operation::GiveUp,
        "PARTIALLY_DELIVERED 1/0/2 closed, 6 events, 0 free, 9000+0 after 3 entries",
    ),
    (
        InitialState::AwaitingVendor(0),
        Operation::GiveUp,
        "REFUNDED 0/0/3 closed, 4 events, 0 free, 10000+0 after 3 entries",
    ),
    (
        InitialState::Funded,
        Operation::RequestPayout,
        "PENDING 1, 9300+700 after 2 entries",
    ),
    (
        InitialState::PayoutPending,
        Operation::DecidePayout(PayoutOutcome::Paid),
        "PAID 2, 9300+0 after 2 entries",
    ),
    (
        InitialState::PayoutPending,
        Operation::DecidePayout(PayoutOutcome::Rejected),
        "REJECTED 2, 10000+0 after 3 entries",
    ),
    (
        InitialState::PayoutPending,
        Operation::DecidePayout(PayoutOutcome::Failed),
        "FAILED 2, 10000+0 after 3 entries",
    ),
    (
        InitialState::PayoutPending,
        Operation::DecidePayout(PayoutOutcome::Cancelled),
        "REJECTED 2, 10000+0 after 3 entries",
    ),
];

/// Faults of the operation's commits.
const COMMIT_FAULTS: [&[Fault]; 13] = [
    &[],
    &[Fault::Slow(SECOND)],
    // Longer than a flow waits for its commit.
    &[Fault::Slow(SECOND.saturating_mul(15))],
    &[Fault::Busy; 2],
    &[Fault::Contended; 2],
    &[Fault::Poisoned; 2],
    &[Fault::ResponseLost],
    &[Fault::NeverSent],
    &[Fault::NeverSent; 3],
    &[Fault::NeverSent, Fault::ResponseLost],
    &[Fault::Delayed],
    &[Fault::Detached(Duration::ZERO)],
    &[Fault::Detached(SECOND)],
];

/// Party that fails during the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Casualty {
    Caller,
    Node,
}

/// Number of effects by the aborted attempt and by its repetition.
#[derive(Debug, Default)]
struct EffectCount {
    before_retry: u32,
    after_retry: u32,
}

/// Aborts an operation after this many polls and repeats it. Returns whether it had finished.
async fn abort_once(
    (state, operation, end): ChangeCase,
    faults: &[Fault],
    casualty: Casualty,
    polls: usize,
    count: &mut EffectCount,
) -> bool {
    let [first, again] = labels(operation, end);
    let context = format!("{state:?} {operation:?}, {faults:?}, {casualty:?} failed after {polls}");
    let (sim, node) = state.create().await;
    // Every read is delayed, so that the flow can be aborted at it.
    let every_read = FaultRates::none(MOMENT).with(FaultKind::SlowRead, 1_000);
    sim.db.fail_randomly(polls as u64, every_read);
    faults.iter().for_each(|fault| sim.db.fail_commit("one", *fault));
    let reply = abort_after(&node, polls, operation.start(&sim, &node)).await;
    let node = match casualty {
        Casualty::Caller => node,
        Casualty::Node => {
            drop(node);
            sim.start("one").await
        }
    };
    assert_settled(&sim, &node).await;
    sim.db.heal();
    let done = observe(&sim) == end;
    assert!(
        done || reply.as_ref() != Some(&first),
        "{context}: got {reply:?}, observed {}",
        observe(&sim)
    );
    *(if done {
        &mut count.before_retry
    } else {
        &mut count.after_retry
    }) += 1;
    assert_repeatable(
        &sim,
        &node,
        operation,
        [if done { again.clone() } else { first }, again],
        end,
        &context,
    )
    .await;
    reply.is_some()
}

/// Repeats the operation twice; it must take effect at most once.
async fn assert_repeatable(
    sim: &Simulation,
    node: &Node,
    operation: Operation,
    labels: [String; 2],
    end: &str,
    context: &str,
) {
    for expected in labels {
        assert_eq!(
            run_operation(sim, node, operation).await,
            expected,
            "{context}, repeated"
        );
        assert_settled(sim, node).await;
        assert_eq!(observe(sim), end, "{context}, repeated");
    }
    assert!(node.has_current_balance(ALICE).await, "{context}");
}

simulation_tests! {
    async fn change_aborted_at_each_poll_takes_effect_once() {
        for row in CASES {
            let (state, operation, ..) = row;
            let (mut count, mut longest) = (EffectCount::default(), 0);
            for faults in COMMIT_FAULTS {
                for casualty in [Casualty::Caller, Casualty::Node] {
                    let mut polls = 1;
                    while !abort_once(row, faults, casualty, polls, &mut count).await {
                        polls += 1;
                    }
                    longest = longest.max(polls);
                }
            }
            println!("{state:?} {operation:?}: {longest} polls, {count:?}");
            assert!(longest >= 3 && count.before_retry > 0 && count.after_retry > 0, "{state:?} {operation:?}: {count:?}");
        }
    }

    async fn change_with_failing_reads_takes_effect_when_repeated() {
        for row in CASES {
            let (state, operation, end) = row;
            let [first, again] = labels(operation, end);
            for failing in 1..=8 {
                let (sim, node) = state.create().await;
                sim.db.fail_calls("one", FaultKind::ReadError, failing);
                let reply = run_operation(&sim, &node, operation).await;
                assert_settled(&sim, &node).await;
                sim.db.heal();
                let done = observe(&sim) == end;
                assert!(done || reply != first, "{state:?} {operation:?}: {reply}");
                let labels = [if done { &again } else { &first }, &again].map(String::clone);
                assert_repeatable(&sim, &node, operation, labels, end, &format!("{state:?} {operation:?}, {failing} failed reads")).await;
            }
        }
    }
}
