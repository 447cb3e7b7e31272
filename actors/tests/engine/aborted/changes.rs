//! Every step of the life of an order and of a payout, aborted at each of its polls under each fate of its commit, and
//! repeated: its effect is there once, and nothing leaks.
//!
//! Whoever asked goes away and the node lives on, or the node dies with it and is started again.

use std::time::Duration;

use vouchsafe_actors::domain::payout::PayoutEnd;
use vouchsafe_actors::testing::world::{Node, World};
use vouchsafe_actors::testing::{Fault, FaultKind, Rates};

use super::abort_after;
use crate::in_a_world;
use crate::life::{Act, Scene, does, seen};
use crate::shop::{ALICE, SECOND, all_is_settled};

const MOMENT: Duration = Duration::from_millis(1);

/// A step: what it is done to, what it says, what it says when it is done again, and what is seen then.
type Row = (Scene, Act, &'static str, &'static str, &'static str);

/// One of three is delivered and was read.
const READ: Scene = Scene::Partly {
    bought: 0,
    read: true,
};
/// One of three is delivered, and so many were bought.
const BOUGHT_NONE: Scene = Scene::Partly {
    bought: 0,
    read: false,
};
const BOUGHT_ONE: Scene = Scene::Partly {
    bought: 1,
    read: false,
};
const BOUGHT_ALL: Scene = Scene::Partly {
    bought: 2,
    read: false,
};

const STEPS: [Row; 18] = [
    (
        Scene::Delivered,
        Act::Cancel,
        "REFUNDED",
        "REFUNDED",
        "REFUNDED 0/0/2 closed, 6 events, 5 free, 10000+0 after 3 entries",
    ),
    (
        Scene::Missed(1),
        Act::Cancel,
        "REFUNDED",
        "REFUNDED",
        "REFUNDED 0/0/3 closed, 3 events, 1 free, 10000+0 after 3 entries",
    ),
    (
        Scene::Delivered,
        Act::Revoke,
        "REFUNDED",
        "REFUNDED",
        "REFUNDED 0/0/2 closed, 6 events, 5 free, 10000+0 after 3 entries",
    ),
    (
        READ,
        Act::Revoke,
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED 1/0/2 closed, 6 events, 0 free, 9000+0 after 3 entries",
    ),
    (
        Scene::Waiting(2),
        Act::Approve,
        "DELIVERED",
        "NotWaiting",
        "DELIVERED 2/0/0 closed, 5 events, 0 free, 8000+0 after 2 entries",
    ),
    (
        Scene::Waiting(1),
        Act::Approve,
        "PARTIALLY_DELIVERED",
        "NotWaiting",
        "PARTIALLY_DELIVERED 1/1/0, 4 events, 0 free, 8000+1000 after 2 entries",
    ),
    (
        Scene::WaitingForStock(1),
        Act::Approve,
        "PARTIALLY_DELIVERED",
        "NotWaiting",
        "PARTIALLY_DELIVERED 1/0/1 closed, 6 events, 0 free, 9000+0 after 3 entries",
    ),
    (
        Scene::Waiting(2),
        Act::Reject,
        "REFUNDED",
        "NotWaiting",
        "REFUNDED 0/0/2 closed, 3 events, 2 free, 10000+0 after 3 entries",
    ),
    (
        Scene::Missed(3),
        Act::TakeUp,
        "DELIVERED",
        "DELIVERED",
        "DELIVERED 3/0/0 closed, 6 events, 0 free, 7000+0 after 2 entries",
    ),
    (
        Scene::Missed(1),
        Act::TakeUp,
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED 1/2/0, 4 events, 0 free, 7000+2000 after 2 entries",
    ),
    (
        BOUGHT_ALL,
        Act::Deliver,
        "DELIVERED",
        "DELIVERED",
        "DELIVERED 3/0/0 closed, 7 events, 0 free, 7000+0 after 2 entries",
    ),
    (
        BOUGHT_ONE,
        Act::Deliver,
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED 2/1/0, 6 events, 0 free, 7000+1000 after 2 entries",
    ),
    (
        BOUGHT_NONE,
        Act::GiveUp,
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED",
        "PARTIALLY_DELIVERED 1/0/2 closed, 6 events, 0 free, 9000+0 after 3 entries",
    ),
    (
        Scene::Missed(0),
        Act::GiveUp,
        "REFUNDED",
        "REFUNDED",
        "REFUNDED 0/0/3 closed, 4 events, 0 free, 10000+0 after 3 entries",
    ),
    (
        Scene::Money,
        Act::Ask,
        "asked",
        "asked before",
        "PENDING 1, 9300+700 after 2 entries",
    ),
    (
        Scene::Payout,
        Act::End(PayoutEnd::Paid),
        "PAID",
        "Over(Paid)",
        "PAID 2, 9300+0 after 2 entries",
    ),
    (
        Scene::Payout,
        Act::End(PayoutEnd::Rejected),
        "REJECTED",
        "Over(Rejected)",
        "REJECTED 2, 10000+0 after 3 entries",
    ),
    (
        Scene::Payout,
        Act::End(PayoutEnd::Failed),
        "FAILED",
        "Over(Failed)",
        "FAILED 2, 10000+0 after 3 entries",
    ),
];

/// What befalls its commits, or its reads.
const FATES: [&[Fault]; 13] = [
    &[],
    &[Fault::Slow(SECOND)],
    // Longer than a flow waits for its commit.
    &[Fault::Slow(SECOND.saturating_mul(15))],
    &[Fault::Busy; 2],
    &[Fault::Contended; 2],
    &[Fault::Poisoned; 2],
    &[Fault::AnswerLost],
    &[Fault::NeverSent],
    &[Fault::NeverSent; 3],
    &[Fault::NeverSent, Fault::AnswerLost],
    &[Fault::Late],
    &[Fault::Adrift(Duration::ZERO)],
    &[Fault::Adrift(SECOND)],
];

/// Who goes away in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    Caller,
    Node,
}

/// How often a step was done by the attempt that was aborted, and how often by its repetition.
#[derive(Debug, Default)]
struct Count {
    at_once: u32,
    again: u32,
}

/// Aborts a step after so many polls and repeats it. Says whether it had come to its end.
async fn aborted_once(
    (scene, act, first, again, end): Row,
    fate: &[Fault],
    gone: Gone,
    polls: usize,
    count: &mut Count,
) -> bool {
    let what = format!("{scene:?} {act:?}, {fate:?}, {gone:?} gone after {polls}");
    let (world, node) = scene.set().await;
    // Every read is waited for, so that it is a step at which the flow can be aborted.
    let every_read = Rates::none(MOMENT).with(FaultKind::SlowRead, 1_000);
    world.db.fail_by_chance(polls as u64, every_read);
    fate.iter().for_each(|fault| world.db.fail_commit("one", *fault));
    let heard = abort_after(&node, polls, act.on(&world, &node)).await;
    let node = match gone {
        Gone::Caller => node,
        Gone::Node => {
            drop(node);
            world.start("one").await
        }
    };
    all_is_settled(&world, &node).await;
    world.db.heal();
    let done = seen(&world) == end;
    assert!(
        done || heard.as_deref() != Some(first),
        "{what}: told {heard:?}, and it is {}",
        seen(&world)
    );
    *(if done {
        &mut count.at_once
    } else {
        &mut count.again
    }) += 1;
    repeat(
        &world,
        &node,
        act,
        [if done { again } else { first }, again],
        end,
        &what,
    )
    .await;
    heard.is_some()
}

/// Does it twice more: once it may have an effect, and never twice.
async fn repeat(world: &World, node: &Node, act: Act, words: [&str; 2], end: &str, what: &str) {
    for expected in words {
        assert_eq!(does(world, node, act).await, expected, "{what}, and again");
        all_is_settled(world, node).await;
        assert_eq!(seen(world), end, "{what}, and again");
    }
    assert!(node.knows_balance(ALICE).await, "{what}");
}

in_a_world! {
    async fn a_step_of_an_orders_life_aborted_anywhere_is_done_once() {
        for row in STEPS {
            let (scene, act, ..) = row;
            let (mut count, mut longest) = (Count::default(), 0);
            for fate in FATES {
                for gone in [Gone::Caller, Gone::Node] {
                    let mut polls = 1;
                    while !aborted_once(row, fate, gone, polls, &mut count).await {
                        polls += 1;
                    }
                    longest = longest.max(polls);
                }
            }
            println!("{scene:?} {act:?}: {longest} polls, {count:?}");
            assert!(longest >= 3 && count.at_once > 0 && count.again > 0, "{scene:?} {act:?}: {count:?}");
        }
    }

    async fn a_step_whose_reads_fail_is_done_when_it_is_repeated() {
        for row in STEPS {
            let (scene, act, first, again, end) = row;
            for failing in 1..=8 {
                let (world, node) = scene.set().await;
                world.db.fail_calls("one", FaultKind::ReadFails, failing);
                let heard = does(&world, &node, act).await;
                all_is_settled(&world, &node).await;
                world.db.heal();
                let done = seen(&world) == end;
                assert!(done || heard != first, "{scene:?} {act:?}: {heard}");
                let words = [if done { again } else { first }, again];
                repeat(&world, &node, act, words, end, &format!("{scene:?} {act:?}, {failing} reads failed")).await;
            }
        }
    }
}
