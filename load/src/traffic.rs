//! What is asked for next? Drawn from the scenario's shares by a seed: the same seed asks for the same, in the same order,
//! whatever is answered.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::scenario::{Scenario, ScenarioError, OrderForm};
use crate::deployment::seed::{DENOMINATION, product_id};
use crate::weights::Weights;
use crate::workload::{Item, Workload};

/// How often a SKU that the order has already is drawn again before the next free one is taken.
const REDRAWS: usize = 8;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A new order, under a key of its own.
    Order,
    /// An order that was sent before, under its key, drawn evenly from all that were sent.
    Duplicate,
    /// An order that was answered before, read.
    Read,
    /// The codes of an order that was answered before.
    Codes,
    Wallets,
    /// The next page of the partner's events.
    Feed,
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order => "order",
            Self::Duplicate => "duplicate",
            Self::Read => "read",
            Self::Codes => "codes",
            Self::Wallets => "wallets",
            Self::Feed => "feed",
        })
    }
}

/// One request, as far as it can be said beforehand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RequestSpec {
    /// A new order of the partner with this index, of the form with that one.
    Order {
        partner: usize,
        form: usize,
        body: Bytes,
    },
    /// An order from before: which one, as a share of those there are.
    PastOrder { kind: RequestKind, at: f64 },
    /// What the partner with this index has.
    PartnerRead { kind: RequestKind, partner: usize },
}

/// What is asked for, and how often.
#[derive(Clone, Debug)]
pub struct Traffic {
    partners: usize,
    kinds: Vec<RequestKind>,
    shares: Weights,
    orders: Orders,
}

#[derive(Clone, Debug)]
enum Orders {
    One(Workload),
    Drawn {
        shapes: Vec<OrderForm>,
        shares: Weights,
        popularity: Weights,
        skus: Vec<String>,
    },
}

impl Traffic {
    /// One partner that orders the same again and again.
    #[must_use]
    pub fn single(workload: Workload) -> Self {
        let Some(shares) = Weights::uniform(1) else {
            unreachable!("one is more than none")
        };
        Self {
            partners: 1,
            kinds: vec![RequestKind::Order],
            shares,
            orders: Orders::One(workload),
        }
    }

    /// Nothing but orders from before, under their keys.
    #[must_use]
    pub fn into_replays(mut self) -> Self {
        if let Some(shares) = Weights::uniform(1) {
            (self.kinds, self.shares) = (vec![RequestKind::Duplicate], shares);
        }
        self
    }

    /// What a scenario asks for.
    ///
    /// # Errors
    /// [`ScenarioError::Senseless`] if its weights are none.
    pub fn from_scenario(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let count = scenario.skus.count;
        let popularity = scenario.skus.popularity.weights(count);
        let popularity = popularity.ok_or(ScenarioError::Invalid("the popularity is no number"))?;
        let none = ScenarioError::Invalid("the weights are below zero, or all zero");
        let shares = Weights::new(scenario.orders.iter().map(|shape| shape.weight));
        let Some(shares) = shares else { return Err(none) };
        let orders = Orders::Drawn {
            shapes: scenario.orders.clone(),
            shares,
            popularity,
            skus: (0..count).map(product_id).collect(),
        };
        let (kinds, shares) = match scenario.requests.as_slice() {
            [] => (vec![RequestKind::Order], Weights::uniform(1)),
            requests => (
                requests.iter().map(|share| share.kind).collect(),
                Weights::new(requests.iter().map(|share| share.weight)),
            ),
        };
        let Some(shares) = shares else { return Err(none) };
        Ok(Self {
            partners: scenario.partners,
            kinds,
            shares,
            orders,
        })
    }

    /// The forms of its orders, by their index.
    #[must_use]
    pub fn forms(&self) -> Vec<String> {
        match &self.orders {
            Orders::One(_) => vec!["all alike".to_owned()],
            Orders::Drawn { shapes, .. } => shapes.iter().map(ToString::to_string).collect(),
        }
    }

    /// Whether orders from before are asked for, so that they must be remembered.
    pub(crate) fn needs_past_orders(&self) -> bool {
        let looks = |kind: &RequestKind| matches!(kind, RequestKind::Duplicate | RequestKind::Read | RequestKind::Codes);
        self.kinds.iter().any(looks)
    }

    /// The next request.
    pub(crate) fn draw(&self, chance: &mut StdRng) -> RequestSpec {
        let kind = self.kinds[self.shares.draw(chance)];
        let partner = chance.random_range(0..self.partners);
        match kind {
            RequestKind::Order => {
                let (form, body) = self.orders.draw(chance);
                RequestSpec::Order { partner, form, body }
            }
            RequestKind::Duplicate | RequestKind::Read | RequestKind::Codes => RequestSpec::PastOrder {
                kind,
                at: chance.random(),
            },
            RequestKind::Wallets | RequestKind::Feed => RequestSpec::PartnerRead { kind, partner },
        }
    }
}

impl Orders {
    /// The index of its form, and its body.
    fn draw(&self, chance: &mut StdRng) -> (usize, Bytes) {
        match self {
            Self::One(workload) => (0, workload.next_body()),
            Self::Drawn {
                shapes,
                shares,
                popularity,
                skus,
            } => {
                let form = shares.draw(chance);
                let shape = shapes[form];
                let items = distinct(popularity, skus.len(), shape.skus, chance)
                    .into_iter()
                    .map(|sku| Item::new(&skus[sku], DENOMINATION, shape.quantity));
                (form, Workload::body(items))
            }
        }
    }
}

/// So many different ones, in the order they were drawn.
fn distinct(popularity: &Weights, of: usize, wanted: usize, chance: &mut StdRng) -> Vec<usize> {
    let (mut drawn, mut seen) = (Vec::with_capacity(wanted), BTreeSet::new());
    while drawn.len() < wanted.min(of) {
        let mut next = popularity.draw(chance);
        for _ in 0..REDRAWS {
            if !seen.contains(&next) {
                break;
            }
            next = popularity.draw(chance);
        }
        while !seen.insert(next) {
            next = (next + 1) % of;
        }
        drawn.push(next);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    fn scenario(requests: &str) -> Scenario {
        let text = format!(
            r#"{{ "name": "t", "question": "?", "partners": 3,
                "skus": {{ "count": 5, "vouchers": 1, "popularity": {{ "zipf": 3.0 }} }},
                "orders": [{{ "weight": 1, "skus": 5, "quantity": 2 }}], "requests": {requests},
                "pace": {{ "closed": {{ "connections": 1 }} }}, "warm_up_s": 0, "seconds": 1 }}"#
        );
        Scenario::parse(text.as_bytes()).unwrap()
    }

    fn drawn(traffic: &Traffic, count: usize) -> Vec<RequestSpec> {
        let mut chance = StdRng::seed_from_u64(3);
        (0..count).map(|_| traffic.draw(&mut chance)).collect()
    }

    #[test]
    fn an_order_names_each_sku_once() {
        let traffic = Traffic::from_scenario(&scenario("[]")).unwrap();
        for ask in drawn(&traffic, 50) {
            let RequestSpec::Order { partner, body, .. } = ask else {
                panic!("{ask:?} is no order")
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
    fn kinds_come_by_their_shares_and_the_seed() {
        let requests = r#"[{ "kind": "order", "weight": 3 }, { "kind": "duplicate", "weight": 1 },
            { "kind": "feed", "weight": 0 }]"#;
        let traffic = Traffic::from_scenario(&scenario(requests)).unwrap();
        assert!(traffic.needs_past_orders());
        let asks = drawn(&traffic, 1_000);
        assert_eq!(asks, drawn(&traffic, 1_000));
        let orders = asks.iter().filter(|ask| matches!(ask, RequestSpec::Order { .. })).count();
        assert!((700..800).contains(&orders), "{orders}");
        assert!(asks.iter().all(|ask| !matches!(ask, RequestSpec::PartnerRead { .. })));
    }

    #[test]
    fn weights_that_are_none_are_refused() {
        let none = scenario(r#"[{ "kind": "order", "weight": 0 }]"#);
        assert!(matches!(Traffic::from_scenario(&none), Err(ScenarioError::Invalid(_))));
    }
}
