//! Strict serialisability of wallets, vouchers and orders on two nodes, from the responses of concurrent
//! clients. Clients cut some connections before the response; they send the order again at the other node, or
//! never learn what became of it.

mod model;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_linearizability::{Call, check};

use self::model::{OPENING_BALANCE, Operation, STOCK, ShopModel};
use crate::multi_node::{start_two_nodes, wait_for_status};
use vouchsafe_test_harness::{Instance, Operator, Partner, Sale, id_of, json_of, unique};

const CLIENTS: usize = 6;
const OPERATIONS_PER_CLIENT: usize = 30;

/// `VOUCHSAFE_HISTORIES` overrides it.
const HISTORIES: u64 = 1;

/// One order of so many has its response cut.
const CUT_ONE_OF: u64 = 4;

/// Within it, most responses arrive.
const MAX_CUT_DELAY_US: u64 = 8_000;

/// What the clients of a run share.
struct Run {
    sale: Sale,
    began: Instant,
    history: Mutex<Vec<Call<Operation>>>,
    orders: Mutex<Vec<String>>,
    /// Codes with the order that they were read of.
    codes: Mutex<BTreeMap<String, String>>,
    cut_responses: AtomicU64,
}

/// A client's connections to the node that it uses, and to the other one.
struct Connections {
    own: Partner,
    other: Partner,
}

enum Request<'a> {
    Order { key: &'a str, quantity: u32 },
    Cancellation(&'a str),
    Codes(&'a str),
}

fn random() -> u64 {
    getrandom::u64().unwrap()
}

impl Run {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap()
    }

    fn record(&self, began: u64, operation: Operation) {
        self.record_until(Some(self.now()), began, operation);
    }

    fn record_until(&self, ended: Option<u64>, began: u64, operation: Operation) {
        self.history.lock().push(Call {
            operation,
            began,
            ended,
        });
    }

    async fn send(&self, partner: &mut Partner, request: &Request<'_>) -> ApiResponse {
        match request {
            Request::Order { key, quantity } => partner.order_with_key(key, &self.sale, *quantity).await,
            Request::Cancellation(order_id) => {
                let path = format!("/orders/{order_id}/cancel");
                partner.send_signed(Method::POST, &path, "").await
            }
            Request::Codes(order_id) => partner.get_codes(order_id).await,
        }
    }

    /// Sends a request again while the service says that it cannot decide now, or that a request with its key
    /// is in progress.
    async fn send_until_definite(&self, partner: &mut Partner, request: &Request<'_>) -> ApiResponse {
        loop {
            let response = self.send(partner, request).await;
            let is_in_progress =
                response.status == 409 && json_of(&response)["error"]["code"] == "IDEMPOTENCY_IN_PROGRESS";
            if response.status != 503 && !is_in_progress {
                return response;
            }
        }
    }

    /// An order of any client, with its number.
    fn any_order(&self) -> Option<(usize, String)> {
        let orders = self.orders.lock();
        let order = usize::try_from(random()).unwrap() % orders.len().max(1);
        orders.get(order).map(|id| (order, id.clone()))
    }

    async fn act(&self, connections: &mut Connections) {
        let (choice, began) = (random() % 8, self.now());
        let Some((order, order_id)) = self.any_order().filter(|_| choice > 2) else {
            return self.place(connections).await;
        };
        let partner = &mut connections.own;
        let operation = match choice {
            3 => Operation::Balance(vouchers_worth(&partner.balance("USD").await)),
            4 => {
                let read = partner.read(&format!("/orders/{order_id}")).await;
                Operation::Status {
                    order,
                    is_refunded: read["status"] == "REFUNDED",
                }
            }
            5 => {
                let response = self
                    .send_until_definite(partner, &Request::Codes(&order_id))
                    .await;
                if response.status == 200 {
                    self.add_codes(&order_id, &response);
                    Operation::Codes { order }
                } else {
                    assert_eq!(json_of(&response)["error"]["code"], "ORDER_CLOSED");
                    Operation::NoCodes { order }
                }
            }
            _ => {
                let response = self
                    .send_until_definite(partner, &Request::Cancellation(&order_id))
                    .await;
                if response.status == 200 {
                    Operation::Cancelled { order }
                } else {
                    assert_eq!(json_of(&response)["error"]["code"], "ORDER_NOT_CANCELLABLE");
                    Operation::NotCancellable { order }
                }
            }
        };
        self.record(began, operation);
    }

    async fn place(&self, connections: &mut Connections) {
        let (began, key, quantity) = (
            self.now(),
            unique("key"),
            u32::try_from(1 + random() % 3).unwrap(),
        );
        let request = Request::Order { key: &key, quantity };
        let mut partner = &mut connections.own;
        if random().is_multiple_of(CUT_ONE_OF) {
            let delay = Duration::from_micros(random() % MAX_CUT_DELAY_US);
            let sent = self.send(partner, &request);
            if tokio::time::timeout(delay, sent).await.is_err() {
                // The connection ends with the request.
                *partner = partner.reconnect();
                self.cut_responses.fetch_add(1, Ordering::Relaxed);
                if random().is_multiple_of(2) {
                    return self.record_until(None, began, Operation::Abandoned { quantity });
                }
                partner = &mut connections.other;
            }
        }
        let response = self.send_until_definite(partner, &request).await;
        let body = json_of(&response);
        let operation = match response.status.as_u16() {
            201 => {
                // Numbered before another client can see it.
                let mut orders = self.orders.lock();
                orders.push(id_of(&body));
                let order = orders.len() - 1;
                Operation::Placed { order, quantity }
            }
            402 => Operation::WithoutFunds { quantity },
            _ => {
                assert_eq!(body["error"]["code"], "INSUFFICIENT_INVENTORY", "{body}");
                Operation::SoldOut { quantity }
            }
        };
        self.record(began, operation);
    }

    /// A code that was read cannot return to stock, so no other order has it.
    fn add_codes(&self, order_id: &str, response: &ApiResponse) {
        for voucher in json_of(response)["data"].as_array().unwrap() {
            let code = voucher["credentials"][0]["value"].as_str().unwrap().to_owned();
            let earlier = self.codes.lock().insert(code, order_id.to_owned());
            assert!(
                earlier.is_none_or(|earlier| earlier == order_id),
                "two orders have the same code"
            );
        }
    }
}

/// The vouchers that a balance in USD pays for, such as 350.00.
fn vouchers_worth(balance: &str) -> u32 {
    let dollars = balance.strip_suffix(".00").unwrap();
    dollars.parse::<u32>().unwrap() / 25
}

async fn run_clients(nodes: &[Instance; 2]) -> Arc<Run> {
    let mut operator = Operator::of(&nodes[0]);
    let sale = operator.add_stocked_product(STOCK as usize).await;
    let partner = operator.add_partner(&(OPENING_BALANCE * 25).to_string()).await;
    let path = format!("/products/{}", sale.product_id);
    let run = Arc::new(Run {
        sale,
        began: Instant::now(),
        history: Mutex::default(),
        orders: Mutex::default(),
        codes: Mutex::default(),
        cut_responses: AtomicU64::new(0),
    });
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let [own, other] = [client, client + 1].map(|node| partner.connect_to(&nodes[node % 2].base_url()));
        let mut connections = Connections { own, other };
        for partner in [&mut connections.own, &mut connections.other] {
            wait_for_status(partner, 200, &path).await;
        }
        let run = Arc::clone(&run);
        clients.spawn(async move {
            for _ in 0..OPERATIONS_PER_CLIENT {
                run.act(&mut connections).await;
            }
        });
    }
    clients.join_all().await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_orders_cancellations_and_reads_have_an_order() {
    let histories = std::env::var("VOUCHSAFE_HISTORIES").map_or(HISTORIES, |text| text.parse().unwrap());
    let nodes = start_two_nodes();
    let (mut operations, mut cut_responses) = (0, 0);
    for _ in 0..histories {
        let run = run_clients(&nodes).await;
        let history = run.history.lock();
        assert_eq!(history.len(), CLIENTS * OPERATIONS_PER_CLIENT);
        if let Err(violation) = check(&ShopModel, &history) {
            let show = |positions: Vec<usize>| -> Vec<String> {
                let calls = positions.into_iter().map(|position| &history[position]);
                calls.map(|call| format!("{call:?}")).collect()
            };
            panic!(
                "no order has these responses; the longest:\n{}\nthen one of:\n{}",
                show(violation.ordered).join("\n"),
                show(violation.next).join("\n")
            );
        }
        operations += history.len();
        cut_responses += run.cut_responses.load(Ordering::Relaxed);
    }
    nodes[0].assert_verified();
    println!("{histories} histories, {operations} operations, {cut_responses} cut responses");
}
