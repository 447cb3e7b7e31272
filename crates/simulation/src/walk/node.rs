//! Simulated node: an engine that owns all its tasks, so that it can crash at any time.

use std::future::Future;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinHandle, LocalSet};
use vouchsafe_actors::delivery::concurrency::{ConcurrencyLimit, MAX_IN_FLIGHT};
use vouchsafe_actors::delivery::{Deliveries, DeliveryContext, DeliveryMetrics};
use vouchsafe_actors::engine::{DEFAULT_LANES, Engine, EngineParts};
use vouchsafe_actors::flows::{TopUp, TopUpError, TopUpResult, place_order, top_up};
use vouchsafe_actors::journal::JournalMetrics;
use vouchsafe_actors::ports::store::{RecoverError, Store};
use vouchsafe_actors::ports::vendors::VendorId;
use vouchsafe_actors::procurement::Procurement;
use vouchsafe_actors::supervisor::Spawner;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::voucher::Expiry;

use super::order::{OrderReply, OrderRequest};
use super::responses::PlainTextResponses;
use super::vendors::NodeVendors;
use super::{Simulation, TestClock};
use crate::MemoryStore;

/// How often a node polls for deliveries: seldom, because simulated minutes pass while a walk settles.
const DELIVERY_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// One incarnation of a node. Dropping it is a crash.
pub struct Node {
    /// Name shared by all incarnations of the node.
    pub name: &'static str,
    pub store: MemoryStore,
    pub engine: Arc<Engine>,
    /// Webhook deliveries, active after [`Self::start_background`].
    deliveries: Rc<Deliveries>,
    /// Procurement, active after [`Self::start_procurement`].
    pub procurement: Arc<Procurement>,
    pub(super) simulation: Simulation,
    tasks: Rc<LocalSet>,
}

impl Node {
    pub(super) async fn start(simulation: &Simulation, name: &'static str) -> Self {
        let store = simulation.db.start_node(name);
        let tasks = Rc::new(LocalSet::new());
        keep_polling(&tasks);
        let engine = loop {
            match open(&tasks, &store, &simulation.clock).await {
                Ok(engine) => break Arc::new(engine),
                Err(RecoverError::Unavailable(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(RecoverError::Superseded) => panic!("a node is not started twice concurrently"),
            }
        };
        let vendors = NodeVendors {
            vendors: simulation.vendors.clone(),
            node: name,
        };
        let procurement = Procurement::new(Spawner::CurrentThread, Arc::clone(&engine), Arc::new(vendors));
        let deliveries = DeliveryContext {
            outbox: Arc::new(store.clone()),
            sender: Arc::new(simulation.receivers.clone()),
            attempt_log: None,
            clock: Arc::clone(&simulation.clock) as Arc<dyn Clock>,
            concurrency: ConcurrencyLimit::new(MAX_IN_FLIGHT),
            jitter: Arc::new(|| 0.0),
            metrics: DeliveryMetrics::default(),
        };
        Self {
            name,
            deliveries: Rc::new(Deliveries::new(Spawner::CurrentThread, deliveries)),
            store,
            engine,
            procurement: Arc::new(procurement),
            simulation: simulation.clone(),
            tasks,
        }
    }

    /// Spawns a task that ends with the node.
    pub fn spawn<F: Future + 'static>(&self, work: F) -> JoinHandle<F::Output> {
        self.tasks.spawn_local(work)
    }

    /// Starts to place an order. Aborting the handle simulates a connection reset.
    pub fn start_order(&self, request: &OrderRequest) -> JoinHandle<OrderReply> {
        let (engine, command) = (
            Arc::clone(&self.engine),
            request.command(self.simulation.catalogue()),
        );
        self.spawn(async move { place_order(&engine, command, &PlainTextResponses).await.into() })
    }

    pub async fn place_order(&self, request: &OrderRequest) -> OrderReply {
        await_reply(self.start_order(request)).await
    }

    /// Starts a top-up or an adjustment.
    pub fn start_top_up(&self, command: TopUp) -> JoinHandle<Result<TopUpResult, TopUpError>> {
        let engine = Arc::clone(&self.engine);
        self.spawn(async move { top_up(&engine, command).await })
    }

    /// Runs a top-up or an adjustment.
    ///
    /// # Errors
    /// The error of the flow, see [`TopUpError`].
    pub async fn top_up(&self, command: TopUp) -> Result<TopUpResult, TopUpError> {
        self.start_top_up(command).await.expect("the node is running")
    }

    /// Imports vouchers and notifies the shelf, as an operator's import does.
    pub fn import(&self, sku: &Sku, days: &[i64]) {
        let shelved = self.simulation.import(sku, days);
        let earliest = shelved.iter().map(|voucher| voucher.expiry).min();
        self.engine
            .inventory
            .notify_restocked(sku, earliest.unwrap_or(Expiry::NEVER));
    }

    /// Starts to buy for waiting orders, until the node ends.
    pub fn start_procurement(&self) {
        let procurement = Arc::clone(&self.procurement);
        drop(self.spawn(async move { procurement.run().await }));
    }

    /// Starts to release stock that other nodes need, until the node ends.
    pub fn start_stock_sharing(&self) {
        let engine = Arc::clone(&self.engine);
        drop(self.spawn(async move { engine.share_stock().await }));
    }

    /// Starts procurement, webhook deliveries and stock sharing, until the node ends.
    pub fn start_background(&self) {
        self.start_stock_sharing();
        self.start_procurement();
        drop(self.start_deliveries());
    }

    /// Starts to poll for webhook deliveries.
    pub(super) fn start_deliveries(&self) -> JoinHandle<()> {
        let (deliveries, db) = (Rc::clone(&self.deliveries), self.simulation.db.clone());
        self.spawn(async move {
            loop {
                for (webhook_id, _) in db.endpoints() {
                    deliveries.wake(webhook_id).await;
                }
                tokio::time::sleep(DELIVERY_POLL_INTERVAL).await;
            }
        })
    }

    /// Makes the procurement actor of a vendor panic.
    pub async fn panic_procurement(&self, vendor_id: &VendorId) {
        let (procurement, vendor_id) = (Arc::clone(&self.procurement), vendor_id.clone());
        let panics = self.spawn(async move { procurement.panic(&vendor_id).await });
        panics.await.expect("only the actor panics");
    }

    /// Makes the wallet actor of a partner panic.
    pub async fn panic_wallet(&self, partner_id: PartnerId) {
        let engine = Arc::clone(&self.engine);
        let panics = self.spawn(async move { engine.wallets.panic(partner_id).await });
        panics.await.expect("only the actor panics");
    }

    /// Makes the inventory actor of a SKU panic.
    pub async fn panic_shelf(&self, sku: &Sku) {
        let (engine, sku) = (Arc::clone(&self.engine), sku.clone());
        let panics = self.spawn(async move { engine.inventory.panic(&sku).await });
        panics.await.expect("only the actor panics");
    }
}

/// Waits for the reply.
pub(super) async fn await_reply(task: JoinHandle<OrderReply>) -> OrderReply {
    match task.await {
        Ok(reply) => reply,
        Err(error) if error.is_cancelled() => OrderReply::Disconnected,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

async fn open(tasks: &LocalSet, store: &MemoryStore, clock: &Arc<TestClock>) -> Result<Engine, RecoverError> {
    Engine::start(EngineParts {
        store: Arc::new(store.clone()) as Arc<dyn Store>,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        spawner: Spawner::CurrentThread,
        spawn: &|lane| drop(tasks.spawn_local(lane)),
        lanes: DEFAULT_LANES,
        metrics: JournalMetrics::default(),
    })
    .await
}

/// Polls the tasks of a node until it is dropped.
fn keep_polling(tasks: &Rc<LocalSet>) {
    let tasks: Weak<LocalSet> = Rc::downgrade(tasks);
    let poll = std::future::poll_fn(move |context| match tasks.upgrade() {
        Some(tasks) => {
            let forever: Poll<()> = pin!(tasks.run_until(std::future::pending())).poll(context);
            forever
        }
        None => Poll::Ready(()),
    });
    // Not joined: the task ends when the node is dropped.
    #[allow(clippy::disallowed_methods)]
    drop(tokio::task::spawn_local(poll));
}
