//! Tests of the directory: eviction, totals, the busiest actors.

use std::time::Duration;

use tokio::task::LocalSet;

use super::*;

struct Idle {
    _lineage: Lineage,
}

impl Actor for Idle {
    type Context = Context<Self>;
}

fn directory(capacity: usize) -> Directory<u32, Idle> {
    Directory::new(Spawner::CurrentThread, |_, lineage| Idle { _lineage: lineage }).with_capacity(capacity)
}

#[tokio::test(start_paused = true)]
async fn idle_actor_is_evicted_and_actor_with_hold_stays() {
    let test = async {
        let directory = directory(2);
        let held = directory.get(&1).unwrap().lineage.holds.open_hold();
        drop(directory.get(&2));
        assert!(directory.get(&3).is_some(), "the second actor was idle");
        assert!(directory.find(&1).is_some() && directory.find(&2).is_none());
        let also_held = directory.get(&3).unwrap().lineage.holds.open_hold();
        assert!(directory.get(&4).is_none(), "both actors have holds");
        assert!(
            directory.get(&1).is_some(),
            "a live actor is found in a full directory"
        );
        drop((held, also_held));
        assert!(directory.get(&4).is_some());
        assert_eq!(directory.stats().len(), 2);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn least_recently_used_actors_are_evicted_and_stay_counted() {
    let test = async {
        let directory = directory(24);
        for key in 0..24 {
            let actor = directory.get(&key).unwrap();
            actor.lineage.metrics.record_handled(Duration::ZERO);
            actor.lineage.metrics.record_restart();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(directory.find(&0));
        let before = directory.totals();
        drop(directory.get(&24));
        let evicted_keys: Vec<_> = (0..24).filter(|key| directory.find(key).is_none()).collect();
        assert_eq!(evicted_keys, [1, 2, 3]);
        let after = directory.totals();
        assert_eq!((before.actors, after.actors), (24, 22));
        assert_eq!((before.handled, before.restarts), (24, 24));
        assert_eq!((after.handled, after.restarts), (24, 24));
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn busiest_actors_come_first_with_details() {
    let test = async {
        let directory = directory(100);
        for key in 0..50 {
            let actor = directory.get(&key).unwrap();
            for _ in 0..key % 10 {
                actor.lineage.metrics.record_handled(Duration::from_micros(3));
            }
        }
        let queued = directory.get(&20).unwrap().lineage.metrics.enqueue();
        directory
            .get(&9)
            .unwrap()
            .lineage
            .metrics
            .record_error("cannot read".to_owned());
        let ActorScan { totals, busiest } = directory.scan(6);
        assert_eq!(totals, directory.totals());
        let loads: Vec<_> = busiest.iter().map(|actor| actor.stats.load()).collect();
        assert_eq!(loads, [(1, 0), (0, 9), (0, 9), (0, 9), (0, 9), (0, 9)]);
        assert_eq!(busiest[0].key, 20);
        assert_eq!(busiest[0].details.handling_p50, None);
        assert_eq!(busiest[1].details.handling_p99, Some(Duration::from_micros(4)));
        let errors: Vec<_> = busiest
            .iter()
            .filter_map(|actor| actor.details.last_error.as_ref())
            .collect();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].message, "cannot read");
        drop(queued);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn full_directory_makes_room_and_keeps_actor_with_hold() {
    let test = async {
        let directory = directory(MAX_ACTORS);
        let held = directory.get(&0).unwrap().lineage.holds.open_hold();
        let max_actors = u32::try_from(MAX_ACTORS).unwrap();
        for key in 1..max_actors + 10 {
            assert!(directory.get(&key).is_some());
        }
        let left = MAX_ACTORS - MAX_ACTORS / EVICTION_DIVISOR + 10;
        assert_eq!(directory.stats().len(), left);
        assert!(directory.find(&0).is_some());
        drop(held);
    };
    LocalSet::new().run_until(test).await;
}
