//! Two processes share the endpoints: one is killed, nothing is lost, and each order's sequence holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyper::Method;
use serde_json::json;

use crate::nodes::two;
use crate::support::{Heard, Mood, Operator, Partner, Receiver, accepted, eventually};

/// Partners, each with ten endpoints.
const PARTNERS: usize = 10;

/// Orders of each partner, and the events of each.
const ORDERS: usize = 6;
const EVENTS: usize = 3;

/// A lease of 30 s has to end before somebody else takes over.
const TAKEN_OVER: Duration = Duration::from_secs(90);

async fn listen(partner: &mut Partner, receiver: &Receiver, name: &str) {
    for n in 0..10 {
        let body = json!({ "url": format!("{}/{name}/{n}", receiver.url()) }).to_string();
        accepted(&partner.signed(Method::POST, "/webhooks", &body).await, 201);
    }
}

/// The events that each endpoint heard; of each order in sequence, the first time.
fn by_endpoint(heard: &[Heard]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut last: BTreeMap<(String, String), u64> = BTreeMap::new();
    for one in heard {
        found.entry(one.path.clone()).or_default().insert(one.event_id());
        let last = last.entry((one.path.clone(), one.order_id())).or_default();
        if one.sequence() > *last {
            assert_eq!(one.sequence(), *last + 1, "{} at {}", one.order_id(), one.path);
            *last += 1;
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn when_one_of_two_is_killed_the_other_delivers_everything_in_sequence() {
    let [first, mut second] = two();
    let mut operator = Operator::of(&first);
    let sale = operator.sale(PARTNERS * ORDERS).await;
    let receiver = Receiver::new();
    receiver.is(Mood::After(Duration::from_millis(20)));
    let mut partners = Vec::new();
    for n in 0..PARTNERS {
        let mut partner = operator.partner("1000").await;
        listen(&mut partner, &receiver, &n.to_string()).await;
        partners.push(partner);
    }
    for round in 0..ORDERS {
        for partner in &mut partners {
            accepted(&partner.order(&sale, 1).await, 201);
        }
        if round == ORDERS / 2 {
            eventually("both deliver", TAKEN_OVER, async || {
                let webhooks = operator.get("/admin/v1/webhooks?limit=100").await;
                let nodes: BTreeSet<String> = webhooks["data"]
                    .as_array()?
                    .iter()
                    .filter_map(|webhook| Some(webhook["node"].as_str()?.to_owned()))
                    .collect();
                (nodes.len() == 2).then_some(())
            })
            .await;
            second.kill();
        }
    }
    eventually("everything has arrived", TAKEN_OVER, async || {
        let found = by_endpoint(&receiver.heard());
        let whole = found.len() == PARTNERS * 10 && found.values().all(|ids| ids.len() == ORDERS * EVENTS);
        whole.then_some(())
    })
    .await;
    let all = receiver.heard().len();
    let needed = PARTNERS * 10 * ORDERS * EVENTS;
    assert!(all < needed * 2, "{all} deliveries of {needed}: sent twice");
}
