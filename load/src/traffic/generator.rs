//! Request generator: draws requests from the shares of a scenario. The same seed yields the same requests in
//! the same order, whatever the responses.

use std::collections::BTreeSet;

use bytes::Bytes;
use rand::RngExt as _;
use rand::distr::Distribution as _;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::StdRng;

use super::request::{RequestKind, RequestSpec};
use super::scenario::{OrderForm, Scenario, ScenarioError, weighted};
use super::workload::{Item, order_body};
use crate::deployment::seed::{DENOMINATION, product_id};

/// Attempts to draw a SKU that the order does not have yet, before taking the next free one.
const REDRAWS: usize = 8;

/// Request mix of a run.
#[derive(Clone, Debug)]
pub struct Traffic {
    partners: usize,
    kinds: Vec<RequestKind>,
    shares: WeightedIndex<f64>,
    orders: OrderGenerator,
}

#[derive(Clone, Debug)]
enum OrderGenerator {
    /// One of these bodies.
    Fixed(Vec<Bytes>),
    Random {
        shapes: Vec<OrderForm>,
        shares: WeightedIndex<f64>,
        popularity: WeightedIndex<f64>,
        skus: Vec<String>,
    },
}

impl Traffic {
    /// One partner that sends one of these order bodies each time, with equal shares.
    ///
    /// # Panics
    /// Without a body.
    #[must_use]
    pub fn fixed(bodies: Vec<Bytes>) -> Self {
        assert!(!bodies.is_empty(), "a load needs an order to send");
        Self {
            partners: 1,
            kinds: vec![RequestKind::Order],
            shares: only_share(),
            orders: OrderGenerator::Fixed(bodies),
        }
    }

    /// Restricts the mix to duplicates of earlier orders.
    #[must_use]
    pub fn into_replays(self) -> Self {
        self.with_only(RequestKind::Duplicate)
    }

    /// Restricts the mix to whole lives of orders.
    #[must_use]
    pub fn into_lives(self) -> Self {
        self.with_only(RequestKind::Life)
    }

    fn with_only(self, kind: RequestKind) -> Self {
        Self {
            kinds: vec![kind],
            shares: only_share(),
            ..self
        }
    }

    /// Creates the request mix of a scenario.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] if its weights are invalid.
    pub fn from_scenario(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let count = scenario.skus.count;
        let orders = OrderGenerator::Random {
            shapes: scenario.orders.clone(),
            shares: weighted(scenario.orders.iter().map(|shape| shape.weight))?,
            popularity: scenario.skus.popularity.weights(count)?,
            skus: (0..count).map(product_id).collect(),
        };
        let (kinds, shares) = match scenario.requests.as_slice() {
            [] => (vec![RequestKind::Order], only_share()),
            requests => (
                requests.iter().map(|share| share.kind).collect(),
                weighted(requests.iter().map(|share| share.weight))?,
            ),
        };
        Ok(Self {
            partners: scenario.partners,
            kinds,
            shares,
            orders,
        })
    }

    /// Descriptions of the order forms, by index.
    #[must_use]
    pub fn forms(&self) -> Vec<String> {
        match &self.orders {
            OrderGenerator::Fixed(_) => vec!["all orders".to_owned()],
            OrderGenerator::Random { shapes, .. } => shapes.iter().map(ToString::to_string).collect(),
        }
    }

    /// Whether the mix includes lives of orders, which need to know of arrived events.
    pub(crate) fn has_lives(&self) -> bool {
        self.kinds.contains(&RequestKind::Life)
    }

    /// Whether the mix includes requests for earlier orders, which must then be recorded.
    pub(crate) fn needs_past_orders(&self) -> bool {
        let is_past_order_kind = |kind: &RequestKind| {
            matches!(
                kind,
                RequestKind::Life | RequestKind::Duplicate | RequestKind::Read | RequestKind::Codes
            )
        };
        self.kinds.iter().any(is_past_order_kind)
    }

    /// Draws the next request.
    pub(crate) fn draw(&self, rng: &mut StdRng) -> RequestSpec {
        let kind = self.kinds[self.shares.sample(rng)];
        let partner = rng.random_range(0..self.partners);
        match kind {
            RequestKind::Order | RequestKind::Life => {
                let (form, body) = self.orders.draw(rng);
                RequestSpec::Order {
                    partner,
                    form,
                    body,
                    is_life: kind == RequestKind::Life,
                }
            }
            RequestKind::Duplicate | RequestKind::Read | RequestKind::Codes => RequestSpec::PastOrder {
                kind,
                at: rng.random(),
            },
            RequestKind::Wallets | RequestKind::Feed => RequestSpec::PartnerRead { kind, partner },
        }
    }
}

impl OrderGenerator {
    /// Draws the form index and body of an order.
    fn draw(&self, rng: &mut StdRng) -> (usize, Bytes) {
        match self {
            Self::Fixed(bodies) => (0, bodies[rng.random_range(0..bodies.len())].clone()),
            Self::Random {
                shapes,
                shares,
                popularity,
                skus,
            } => {
                let form = shares.sample(rng);
                let shape = shapes[form];
                let drawn = draw_distinct(popularity, skus.len(), shape.skus, rng).into_iter();
                let items = drawn.map(|sku| Item {
                    product_id: &skus[sku],
                    denomination: DENOMINATION,
                    quantity: shape.quantity,
                });
                (form, order_body(&items.collect::<Vec<_>>()))
            }
        }
    }
}

/// The distribution over a single choice.
fn only_share() -> WeightedIndex<f64> {
    let Ok(shares) = WeightedIndex::new([1.0]) else {
        unreachable!("one weight above zero is valid")
    };
    shares
}

/// Draws `count` distinct SKU indexes.
fn draw_distinct(
    popularity: &WeightedIndex<f64>,
    sku_count: usize,
    count: usize,
    rng: &mut StdRng,
) -> Vec<usize> {
    let (mut drawn, mut used) = (Vec::with_capacity(count), BTreeSet::new());
    while drawn.len() < count.min(sku_count) {
        let mut next = popularity.sample(rng);
        for _ in 0..REDRAWS {
            if !used.contains(&next) {
                break;
            }
            next = popularity.sample(rng);
        }
        while !used.insert(next) {
            next = (next + 1) % sku_count;
        }
        drawn.push(next);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    fn scenario(requests: &str) -> Scenario {
        let text = format!(
            r#"{{ "name": "t", "description": "?", "partners": 3,
                "skus": {{ "count": 5, "vouchers": 1, "popularity": {{ "zipf": 3.0 }} }},
                "orders": [{{ "weight": 1, "skus": 5, "quantity": 2 }}], "requests": {requests},
                "pace": {{ "closed": {{ "connections": 1 }} }}, "warm_up_s": 0, "seconds": 1 }}"#
        );
        Scenario::parse(text.as_bytes()).unwrap()
    }

    fn draw_many(traffic: &Traffic, count: usize) -> Vec<RequestSpec> {
        let mut rng = StdRng::seed_from_u64(3);
        (0..count).map(|_| traffic.draw(&mut rng)).collect()
    }

    #[test]
    fn order_names_each_sku_once() {
        let traffic = Traffic::from_scenario(&scenario("[]")).unwrap();
        for request in draw_many(&traffic, 50) {
            let RequestSpec::Order { partner, body, .. } = request else {
                panic!("{request:?} is not an order")
            };
            assert!(partner < 3);
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let mut skus: Vec<_> = body["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| {
                    assert_eq!(
                        (&item["quantity"], &item["denomination"]),
                        (&2.into(), &25.into())
                    );
                    item["product_id"].as_str().unwrap().to_owned()
                })
                .collect();
            skus.sort();
            assert_eq!(skus, (0..5).map(product_id).collect::<Vec<_>>());
        }
        assert!(!traffic.needs_past_orders());
    }

    #[test]
    fn request_kinds_follow_shares_and_seed() {
        let requests = r#"[{ "kind": "order", "weight": 3 }, { "kind": "duplicate", "weight": 1 },
            { "kind": "feed", "weight": 0 }]"#;
        let traffic = Traffic::from_scenario(&scenario(requests)).unwrap();
        assert!(traffic.needs_past_orders());
        let requests_drawn = draw_many(&traffic, 1_000);
        assert_eq!(requests_drawn, draw_many(&traffic, 1_000));
        let orders = requests_drawn
            .iter()
            .filter(|request| matches!(request, RequestSpec::Order { .. }))
            .count();
        assert!((700..800).contains(&orders), "{orders}");
        assert!(
            requests_drawn
                .iter()
                .all(|request| !matches!(request, RequestSpec::PartnerRead { .. }))
        );
    }

    #[test]
    fn invalid_weights_are_rejected() {
        let invalid_weights = scenario(r#"[{ "kind": "order", "weight": 0 }]"#);
        assert!(matches!(
            Traffic::from_scenario(&invalid_weights),
            Err(ScenarioError::Invalid(_))
        ));
    }
}
