//! Windows of simulated nodes that exchange their counts through a simulated database.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Any time that leaves room for older requests.
const START: Duration = Duration::from_secs(100_000);

const STEP: Duration = Duration::from_millis(10);

const fn sharing(nodes: u32) -> Sharing {
    Sharing {
        nodes,
        is_degraded: false,
    }
}

/// Counts as `count_requests_v1` does.
#[derive(Default)]
struct Counts(BTreeMap<u64, u32>);

impl Counts {
    fn exchange(
        &mut self,
        limit: Limit,
        published: &Publication,
        wanted: u32,
        now: Duration,
    ) -> (u32, UsageView) {
        let window_us = u64::from(limit.window_s) * 1_000_000;
        let length_us = window_us / BUCKETS;
        let now_us = nanoseconds(now) / 1_000;
        let end_of = |at_us: u64| (at_us / length_us + 1) * length_us;
        for (age_us, count) in published.ages_us(now) {
            *self.0.entry(end_of(now_us - age_us.unsigned_abs())).or_default() += count;
        }
        self.0.retain(|at_us, _| at_us + window_us > now_us);
        let used: u32 = self.0.values().sum();
        let admitted = wanted.min(limit.quota.saturating_sub(used));
        if admitted > 0 {
            *self.0.entry(end_of(now_us)).or_default() += admitted;
        }
        let age_us = |at_us: u64| now_us.cast_signed() - at_us.cast_signed();
        let view = self.0.iter().map(|(at_us, count)| (age_us(*at_us), *count));
        (admitted, view.collect())
    }
}

struct Deployment {
    limit: Limit,
    counts: Counts,
    nodes: Vec<SharedWindow>,
    exchanges: u32,
    admitted_at: Vec<Duration>,
}

impl Deployment {
    fn new(limit: Limit, nodes: usize) -> Self {
        Self {
            limit,
            counts: Counts::default(),
            nodes: (0..nodes).map(|_| SharedWindow::new(limit)).collect(),
            exchanges: 0,
            admitted_at: Vec::new(),
        }
    }

    fn sharing(&self) -> Sharing {
        sharing(u32::try_from(self.nodes.len()).unwrap())
    }

    fn exchange(&mut self, node: usize, wanted: u32, now: Duration) -> bool {
        let window = &mut self.nodes[node];
        let publication = window.begin_publication();
        let (admitted, view) = self.counts.exchange(self.limit, &publication, wanted, now);
        window.confirm(&publication);
        if self.nodes.len() > 1 {
            self.nodes[node].apply_view(&view, now);
        }
        admitted > 0
    }

    fn request(&mut self, node: usize, now: Duration) -> bool {
        let sharing = self.sharing();
        let is_admitted = match self.nodes[node].try_acquire(self.limit, sharing, now) {
            Ok(Admission::Admitted(_)) => true,
            Ok(Admission::ExchangeRequired) => {
                self.exchanges += 1;
                self.exchange(node, 1, now)
            }
            Err(_) => false,
        };
        if is_admitted {
            self.admitted_at.push(now);
        }
        is_admitted
    }

    /// The most requests that were admitted in any window.
    fn busiest_window(&self) -> usize {
        let length = Duration::from_secs(self.limit.window_s.into());
        let mut first = 0;
        let mut busiest = 0;
        for (last, at) in self.admitted_at.iter().enumerate() {
            while *at - self.admitted_at[first] >= length {
                first += 1;
            }
            busiest = busiest.max(last + 1 - first);
        }
        busiest
    }
}

/// Node, weight of its traffic.
fn traffic() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        // Evenly, and mostly to a few nodes.
        prop::collection::vec(Just(1_u32), 1..=20),
        prop::collection::vec(prop_oneof![4 => Just(0_u32), 1 => 1..100_u32], 1..=20),
        prop::collection::vec(0..1_000_u32, 1..=20),
    ]
    .prop_filter("some node has traffic", |weights| {
        weights.iter().any(|weight| *weight > 0)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Three windows of requests at three times the quota, at random times, of nodes with random shares of
    /// the traffic, whose rounds have different phases.
    #[test]
    fn deployment_admits_its_quota_within_ten_percent(
        quota in prop_oneof![1..20_u32, 20..300_u32, 300..3_000_u32],
        window_s in 5..90_u32,
        weights in traffic(),
        seed in any::<u64>(),
    ) {
        let mut deployment = Deployment::new(Limit { quota, window_s }, weights.len());
        let mut random = seed | 1;
        let mut next = |bound: u64| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        let steps = 3 * u64::from(window_s) * 100;
        let requests = 9 * u64::from(quota);
        for step in 0..steps {
            let now = START + STEP * u32::try_from(step).unwrap();
            for node in 0..weights.len() {
                if step % 100 == (node as u64 * 37) % 100 {
                    deployment.exchange(node, 0, now);
                }
            }
            for _ in 0..(requests * (step + 1) / steps - requests * step / steps) {
                let mut at = next(total);
                let node = weights.iter().position(|weight| {
                    let found = at < u64::from(*weight);
                    at = at.saturating_sub(u64::from(*weight));
                    found
                });
                deployment.request(node.unwrap(), now);
            }
        }
        let busiest = deployment.busiest_window() as u64;
        prop_assert!(busiest * 10 <= u64::from(quota) * 11, "{busiest} of {quota} in {window_s} s");
        let admitted = deployment.admitted_at.len() as u64;
        prop_assert!(admitted * 10 >= 3 * u64::from(quota) * 9, "{admitted} of 3 x {quota}");
        if weights.len() == 1 {
            prop_assert!(busiest <= u64::from(quota), "a node that is alone is exact");
            prop_assert_eq!(deployment.exchanges, 0);
        }
    }

    /// A burst within a round: no node has heard of the others.
    #[test]
    fn burst_at_all_nodes_at_once_admits_the_quota_within_ten_percent(
        quota in 1..2_000_u32,
        nodes in 2..=20_usize,
    ) {
        let mut deployment = Deployment::new(Limit { quota, window_s: 60 }, nodes);
        for n in 0..quota as usize * 2 {
            deployment.request(n % nodes, START);
        }
        let admitted = deployment.admitted_at.len() as u64;
        let quota = u64::from(quota);
        prop_assert!((quota * 9..=quota * 11).contains(&(admitted * 10)), "{admitted} of {quota}");
    }
}

#[test]
fn requests_of_a_large_quota_need_few_exchanges() {
    let mut deployment = Deployment::new(
        Limit {
            quota: 100_000,
            window_s: 60,
        },
        4,
    );
    for n in 0..90_000 {
        assert!(deployment.request(n % 4, START));
    }
    assert!(deployment.exchanges < 500, "{}", deployment.exchanges);
}

#[test]
fn exhausted_quota_of_the_deployment_is_refused_without_exchange() {
    let mut deployment = Deployment::new(
        Limit {
            quota: 50,
            window_s: 60,
        },
        2,
    );
    for _ in 0..50 {
        assert!(deployment.request(0, START));
    }
    assert!(!deployment.request(1, START), "the first exchange shows it");
    let exchanges = deployment.exchanges;
    for _ in 0..1_000 {
        assert!(!deployment.request(1, START));
        assert!(!deployment.request(0, START));
    }
    assert!(deployment.exchanges <= exchanges + 1);
}

#[test]
fn nodes_without_database_admit_their_parts() {
    let limit = Limit {
        quota: 100,
        window_s: 60,
    };
    let degraded = Sharing {
        nodes: 4,
        is_degraded: true,
    };
    let mut window = SharedWindow::new(limit);
    // The last view: 20 requests that expire in 10 s.
    window.apply_view(&[(50_000_000, 20)], START);
    let mut admit = |at: Duration| {
        let admitted = (0..200).filter(|_| window.try_acquire(limit, degraded, at).is_ok());
        admitted.count()
    };
    assert_eq!(admit(START), 20, "a quarter of what remains");
    assert_eq!(admit(START + 10 * SECOND), 5, "a quarter of the quota in all");
    assert_eq!(admit(START + 59 * SECOND), 0);
    assert_eq!(admit(START + 60 * SECOND), 20, "the first have expired");
    let small = Limit {
        quota: 2,
        window_s: 60,
    };
    let mut window = SharedWindow::new(small);
    assert!(window.try_acquire(small, degraded, START).is_ok(), "at least one");
    assert!(window.try_acquire(small, degraded, START).is_err());
}

#[test]
fn restored_publication_is_published_again() {
    let limit = Limit {
        quota: 100,
        window_s: 60,
    };
    let mut window = SharedWindow::new(limit);
    for n in 0..3 {
        window.try_acquire(limit, sharing(1), START + n * SECOND).unwrap();
    }
    let lost = window.begin_publication();
    assert!(!window.has_unpublished());
    window.try_acquire(limit, sharing(1), START + 3 * SECOND).unwrap();
    window.restore(lost);
    let publication = window.begin_publication();
    let ages: Vec<_> = publication.ages_us(START + 4 * SECOND).collect();
    assert_eq!(
        ages,
        [(4_000_000, 1), (3_000_000, 1), (2_000_000, 1), (1_000_000, 1)]
    );
    assert!(!window.is_idle(START + 1_000 * SECOND), "in flight");
    window.confirm(&publication);
    assert!(window.is_idle(START + 1_000 * SECOND));
}

#[test]
fn view_and_unpublished_requests_count_together() {
    let limit = Limit {
        quota: 100,
        window_s: 60,
    };
    let mut window = SharedWindow::new(limit);
    window.try_acquire(limit, sharing(1), START).unwrap();
    window.apply_view(&[(59_000_000, 7), (-500_000, 2)], START);
    assert_eq!(window.peek(limit, START).unwrap().remaining, 90);
    assert_eq!(window.peek(limit, START + SECOND).unwrap().remaining, 97);
    assert_eq!(window.peek(limit, START + 60 * SECOND).unwrap().remaining, 98);
    assert_eq!(window.peek(limit, START + 61 * SECOND).unwrap().remaining, 100);
}
