//! Two things done to one order or payout at once, on one node and on two, each pair under many schedules.
//!
//! `races/allowed.txt` says for each pair which ends there may be: what each of the two hears, and what is seen of the order
//! afterwards. Rule: nothing else ever happens, and each of these happens under some schedule, so that they really race.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;
use vouchsafe_actors::domain::payout::PayoutEnd;
use vouchsafe_actors::testing::world::{Node, World};
use vouchsafe_actors::testing::{FaultKind, Guard, MemoryDatabase, Rates};

use crate::in_a_world;
use crate::life::{Act, Scene, seen};
use crate::shop::all_is_settled;

/// Schedules of each pair, on one node and on two. More of them: `VOUCHSAFE_RACE_SEEDS`.
const SEEDS: u64 = 60;

/// How long what is slow takes at most, and how much later than the other one of the two begins.
const LONGEST: Duration = Duration::from_millis(5);

/// What is raced over, and by whom: everybody against everybody, and against the like.
const RACES: [(Scene, &[Act]); 6] = [
    (Scene::Delivered, &[Act::Cancel, Act::Revoke, Act::Read]),
    (
        Scene::Waiting(2),
        &[Act::Cancel, Act::Revoke, Act::Approve, Act::Reject],
    ),
    (
        Scene::Missed(1),
        &[Act::Cancel, Act::Revoke, Act::TakeUp, Act::GiveUp],
    ),
    (
        Scene::Partly {
            bought: 1,
            read: false,
        },
        &[Act::Cancel, Act::Revoke, Act::Read, Act::Deliver, Act::GiveUp],
    ),
    (Scene::Money, &[Act::Ask]),
    (
        Scene::Payout,
        &[
            Act::End(PayoutEnd::Paid),
            Act::End(PayoutEnd::Rejected),
            Act::End(PayoutEnd::Failed),
        ],
    ),
];

/// The ends of each race, by its name.
type Ends = BTreeMap<String, BTreeSet<String>>;

fn allowed() -> Ends {
    let mut ends = Ends::new();
    let mut race = String::new();
    for line in include_str!("races/allowed.txt").lines() {
        match line.strip_prefix("    ") {
            Some(end) => drop(ends.entry(race.clone()).or_default().insert(end.to_owned())),
            None => race = line.to_owned(),
        }
    }
    ends
}

/// One schedule of one race: how it ends.
async fn race(scene: Scene, acts: [Act; 2], nodes: usize, seed: u64) -> String {
    race_in(World::new(), scene, acts, nodes, seed).await
}

async fn race_in(world: World, scene: Scene, acts: [Act; 2], nodes: usize, seed: u64) -> String {
    let (world, one) = scene.set_in(world).await;
    let mut alive = vec![one];
    if nodes == 2 {
        alive.push(world.start("two").await);
    }
    let mut chance = StdRng::seed_from_u64(seed);
    let slow = Rates::none(LONGEST)
        .with(FaultKind::SlowRead, 500)
        .with(FaultKind::Slow, 300);
    world.db.fail_by_chance(seed, slow);
    let first = chance.random_range(0..nodes);
    let [one, other] = [(0, first), (1, nodes - 1 - first)].map(|(place, node)| {
        let later = LONGEST.mul_f64(chance.random_range(0.0..1.0));
        begins(&world, &alive[node], acts[place], later)
    });
    let mut heard = [one.await.unwrap(), other.await.unwrap()];
    world.db.heal();
    for node in &alive {
        all_is_settled(&world, node).await;
    }
    // Of two of a kind nobody says which was which.
    if acts[0] == acts[1] {
        heard.sort();
    }
    format!("{} | {} | {}", heard[0], heard[1], seen(&world))
}

fn begins(world: &World, node: &Node, act: Act, later: Duration) -> tokio::task::JoinHandle<String> {
    let doing = act.on(world, node);
    node.spawn(async move {
        sleep(later).await;
        doing.await
    })
}

/// Every pair of these, and each with its like.
fn pairs(acts: &[Act]) -> impl Iterator<Item = [Act; 2]> {
    let places = (0..acts.len()).flat_map(|first| (first..acts.len()).map(move |second| [first, second]));
    places.map(|places| places.map(|place| acts[place]))
}

fn seeds() -> u64 {
    std::env::var("VOUCHSAFE_RACE_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"))
}

in_a_world! {
    async fn of_two_at_once_one_stands_and_the_other_is_told_so() {
        let mut allowed = allowed();
        for (scene, acts) in RACES {
            for pair in pairs(acts) {
                for nodes in [1, 2] {
                    let name = format!("{scene:?}: {:?} and {:?}, nodes: {nodes}", pair[0], pair[1]);
                    let mut ends = BTreeSet::new();
                    for seed in 0..seeds() {
                        ends.insert(race(scene, pair, nodes, seed).await);
                    }
                    assert_eq!(ends, allowed.remove(&name).unwrap_or_default(), "{name}");
                }
            }
        }
        assert_eq!(allowed, Ends::new(), "nobody races so");
    }

    async fn without_what_the_commit_verifies_something_else_happens() {
        for seed in 0..SEEDS {
            let mut world = World::new();
            world.db = MemoryDatabase::without(Guard::Retrieved);
            let race = race_in(world, Scene::Delivered, [Act::Cancel, Act::Read], 1, seed);
            if AssertUnwindSafe(race).catch_unwind().await.is_err() {
                return;
            }
        }
        panic!("codes that were read went back to stock, and nobody noticed");
    }

    async fn one_schedule_has_one_end() {
        for seed in 0..20 {
            let [first, second] = [(); 2].map(|()| race(Scene::Waiting(2), [Act::Cancel, Act::Approve], 2, seed));
            assert_eq!(first.await, second.await, "the seed is {seed}");
        }
    }
}
