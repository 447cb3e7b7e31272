//! Two nodes share the webhook endpoints: after a kill of one node, no event is lost and each order's
//! sequence holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyper::Method;
use serde_json::json;

use crate::multi_node::start_two_nodes;
use vouchsafe_test_harness::{
    Behavior, Operator, Partner, ReceivedEvent, Receiver, WAIT_TIMEOUT, eventually, expect_success,
};

/// Each partner has ten endpoints.
const PARTNERS: usize = 10;

const ORDERS_PER_PARTNER: usize = 6;
const EVENTS_PER_ORDER: usize = 3;

async fn register_webhooks(partner: &mut Partner, receiver: &Receiver, name: &str) {
    for n in 0..10 {
        let body = json!({ "url": format!("{}/{name}/{n}", receiver.url()) }).to_string();
        expect_success(&partner.send_signed(Method::POST, "/webhooks", &body).await, 201);
    }
}

/// Returns the event ids by endpoint; asserts the sequence of first receipts per order.
fn events_by_endpoint(events: &[ReceivedEvent]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut last: BTreeMap<(String, String), u64> = BTreeMap::new();
    for event in events {
        found
            .entry(event.path.clone())
            .or_default()
            .insert(event.event_id());
        let last = last.entry((event.path.clone(), event.order_id())).or_default();
        if event.sequence() > *last {
            assert_eq!(
                event.sequence(),
                *last + 1,
                "{} at {}",
                event.order_id(),
                event.path
            );
            *last += 1;
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_of_one_node_leaves_delivery_in_order_to_other() {
    let [first, mut second] = start_two_nodes();
    let mut operator = Operator::of(&first);
    let sale = operator.add_stocked_product(PARTNERS * ORDERS_PER_PARTNER).await;
    let receiver = Receiver::start();
    receiver.set_behavior(Behavior::DelayedOk(Duration::from_millis(20)));
    let mut partners = Vec::new();
    for n in 0..PARTNERS {
        let mut partner = operator.add_partner("1000").await;
        register_webhooks(&mut partner, &receiver, &n.to_string()).await;
        partners.push(partner);
    }
    for round in 0..ORDERS_PER_PARTNER {
        for partner in &mut partners {
            expect_success(&partner.order(&sale, 1).await, 201);
        }
        if round == ORDERS_PER_PARTNER / 2 {
            eventually("both nodes to deliver", WAIT_TIMEOUT, async || {
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
    eventually("all events to arrive", WAIT_TIMEOUT, async || {
        let found = events_by_endpoint(&receiver.received());
        let is_complete = found.len() == PARTNERS * 10
            && found
                .values()
                .all(|ids| ids.len() == ORDERS_PER_PARTNER * EVENTS_PER_ORDER);
        is_complete.then_some(())
    })
    .await;
    let all = receiver.received().len();
    let needed = PARTNERS * 10 * ORDERS_PER_PARTNER * EVENTS_PER_ORDER;
    assert!(all < needed * 2, "{all} deliveries for {needed} events");
}
