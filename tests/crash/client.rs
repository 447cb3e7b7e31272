//! Load client: sends new orders, repeats earlier ones, reads orders back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vouchsafe_api_client::partner::PartnerClient;

use crate::fixtures::{HOT, NEVER_FILLED, OTHERS, SCARCE, SCARCE_STOCK, UNAFFORDABLE, order_body};
use crate::load_session::{LoadSession, OrderRequest, Request};
use crate::rng::Rng;

/// Longer than the service waits for a commit (10 s).
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Leaves the CPU to a starting service.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// About as long as a few commits. Milliseconds.
const MAX_CLIENT_TIMEOUT_MS: u64 = 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderMix {
    AllProducts,
    OneStockedProduct,
}

pub(crate) struct Client {
    session: Arc<LoadSession>,
    proc: u32,
    buyer: usize,
    order_mix: OrderMix,
    connection: PartnerClient,
    rng: Rng,
    order_count: u32,
}

impl Client {
    pub(crate) fn new(
        session: &Arc<LoadSession>,
        proc: u32,
        base_url: &str,
        order_mix: OrderMix,
        mut rng: Rng,
    ) -> Self {
        let buyer = proc as usize % session.buyers.len();
        let connection = session.buyers[buyer]
            .client(base_url)
            .with_timeout(RESPONSE_TIMEOUT);
        let order_count = u32::try_from(rng.between(0, u64::from(u32::MAX / 2))).unwrap();
        Self {
            session: Arc::clone(session),
            proc,
            buyer,
            order_mix,
            connection,
            rng,
            order_count,
        }
    }

    /// Sends requests until the session stops.
    pub(crate) async fn run(mut self) {
        while !self.session.is_stopped() {
            let question = self.next_request();
            let impatient = self.rng.percent(3);
            let timeout =
                impatient.then(|| Duration::from_millis(self.rng.between(0, MAX_CLIENT_TIMEOUT_MS)));
            let outcome = self
                .session
                .send_recorded(self.proc, &mut self.connection, &question, timeout)
                .await;
            if !outcome.is_ok_and(|response| !response.status.is_server_error()) {
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    fn next_request(&mut self) -> Request {
        let acknowledged = self.session.random_acknowledged(self.buyer, &mut self.rng);
        match (self.rng.between(0, 99), acknowledged) {
            (0..=2, Some(order)) if order.delivered => Request::GetCodes(order),
            (3..=5, Some(order)) => Request::GetOrder(order),
            _ => Request::Order(self.next_order()),
        }
    }

    fn next_order(&mut self) -> OrderRequest {
        match self.rng.between(0, 99) {
            0..=9 => self.earlier_order().unwrap_or_else(|| self.new_order()),
            10..=11 => self.order_with_reused_key().unwrap_or_else(|| self.new_order()),
            _ => self.new_order(),
        }
    }

    /// Returns a new order under a new key and shares it, so that other clients can repeat it.
    fn new_order(&mut self) -> OrderRequest {
        self.order_count += 1;
        let order = OrderRequest {
            buyer: self.buyer,
            key: format!("key-{}-{}", self.proc, self.order_count),
            body: self.random_body(),
        };
        self.session.remember_order(&order);
        order
    }

    /// Returns an order of this partner sent earlier: mostly a recent one, which may still be in flight.
    fn earlier_order(&mut self) -> Option<OrderRequest> {
        let is_recent = self.rng.percent(70);
        self.session.with_sent_orders(|orders| {
            let recent = if is_recent {
                orders.len().saturating_sub(20)
            } else {
                0
            };
            let order = self.rng.pick(&orders[recent..])?;
            (order.buyer == self.buyer).then(|| order.clone())
        })
    }

    /// Returns a key used earlier with a different order.
    fn order_with_reused_key(&mut self) -> Option<OrderRequest> {
        let body = self.random_body();
        self.earlier_order().map(|order| OrderRequest { body, ..order })
    }

    fn random_body(&mut self) -> Bytes {
        let quantity = self.rng.between(1, 3);
        if self.order_mix == OrderMix::OneStockedProduct {
            // Each partner orders its own product: one partner runs out of money, the other product out of
            // stock.
            return order_body(&[([HOT, OTHERS[0]][self.buyer % 2], quantity)]);
        }
        match self.rng.between(0, 99) {
            0..=19 => {
                let [wide, calm] = OTHERS;
                order_body(&[(calm, 1), (HOT, quantity), (wide, self.rng.between(1, 4))])
            }
            20..=27 => order_body(&[(NEVER_FILLED, quantity)]),
            28..=31 => order_body(&[(NEVER_FILLED, 1), (HOT, quantity)]),
            32..=36 => order_body(&[(SCARCE, SCARCE_STOCK + quantity), (HOT, 1)]),
            37..=40 => order_body(&[(UNAFFORDABLE, 1)]),
            41..=43 => order_body(&[(HOT, self.rng.between(20, 60))]),
            44 => order_body(&[(SCARCE, 1)]),
            _ => order_body(&[(HOT, quantity)]),
        }
    }
}
