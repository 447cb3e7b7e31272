//! A node of a world: an engine with all its tasks in one hand, so that it can die at any moment.

use std::future::Future;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, LocalSet};

use super::ask::{Ask, Heard};
use super::vendors::MarketOf;
use super::wording::Plain;
use super::{TestClock, World};
use crate::domain::clock::Clock;
use crate::domain::ids::PartnerId;
use crate::domain::product::Sku;
use crate::domain::voucher::Expiry;
use crate::engine::{DEFAULT_LANES, Engine, Parts};
use crate::flows::{Booked, NotBooked, TopUp, place_order, top_up};
use crate::journal::JournalMetrics;
use crate::procurement::{Procurement, VendorId};
use crate::store::{RecoverError, Store};
use crate::supervisor::Spawner;
use crate::testing::MemoryStore;

/// One start of a node. Dropped, it has died in the middle of whatever it did.
pub struct Node {
    /// Its name, which the next start of it has too.
    pub name: &'static str,
    pub store: MemoryStore,
    pub engine: Arc<Engine>,
    /// What buys for it, once it [looks](Self::looks).
    pub procurement: Arc<Procurement>,
    pub(super) world: World,
    tasks: Rc<LocalSet>,
}

impl Node {
    pub(super) async fn start(world: &World, name: &'static str) -> Self {
        let store = world.db.start_node(name);
        let tasks = Rc::new(LocalSet::new());
        keep_polling(&tasks);
        let engine = loop {
            match open(&tasks, &store, &world.clock).await {
                Ok(engine) => break Arc::new(engine),
                Err(RecoverError::Unavailable(_)) => {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                Err(RecoverError::Superseded) => panic!("nobody starts a node twice at once"),
            }
        };
        let vendors = MarketOf {
            market: world.market.clone(),
            node: name,
        };
        let procurement = Procurement::new(Spawner::Here, Arc::clone(&engine), Arc::new(vendors));
        Self {
            name,
            store,
            engine,
            procurement: Arc::new(procurement),
            world: world.clone(),
            tasks,
        }
    }

    /// Runs something on this node: it ends with it.
    pub fn spawn<F: Future + 'static>(&self, work: F) -> JoinHandle<F::Output> {
        self.tasks.spawn_local(work)
    }

    /// Begins to place an order. Aborting the handle is the partner's connection being reset.
    pub fn begins(&self, ask: &Ask) -> JoinHandle<Heard> {
        let (engine, command) = (Arc::clone(&self.engine), ask.command(self.world.catalogue()));
        self.spawn(async move { place_order(&engine, command, &Plain).await.into() })
    }

    /// Places an order.
    pub async fn places(&self, ask: &Ask) -> Heard {
        heard(self.begins(ask)).await
    }

    /// Begins to book a top-up or an adjustment.
    pub fn begins_to_book(&self, command: TopUp) -> JoinHandle<Result<Booked, NotBooked>> {
        let engine = Arc::clone(&self.engine);
        self.spawn(async move { top_up(&engine, command).await })
    }

    /// Books a top-up or an adjustment.
    pub async fn books(&self, command: TopUp) -> Result<Booked, NotBooked> {
        self.begins_to_book(command).await.expect("the node lives")
    }

    /// Imports vouchers and tells the shelf, as the operator's import does.
    pub fn imports(&self, sku: &Sku, days: &[i64]) {
        let shelved = self.world.import(sku, days);
        let earliest = shelved.iter().map(|voucher| voucher.expiry).min();
        self.engine
            .inventory
            .restocked(sku, earliest.unwrap_or(Expiry::NEVER));
    }

    /// Buys what orders wait for, from here on and until it dies.
    pub fn looks(&self) {
        let procurement = Arc::clone(&self.procurement);
        drop(self.spawn(async move { procurement.keep_looking().await }));
    }

    /// Kills the procurement actor of a vendor.
    pub async fn buyer_panics(&self, vendor_id: &VendorId) {
        let (procurement, vendor_id) = (Arc::clone(&self.procurement), vendor_id.clone());
        let panics = self.spawn(async move { procurement.panic(&vendor_id).await });
        panics.await.expect("the actor dies, the node lives");
    }

    /// Kills the wallet actor of a partner.
    pub async fn wallet_panics(&self, partner_id: PartnerId) {
        let engine = Arc::clone(&self.engine);
        let panics = self.spawn(async move { engine.wallets.panic(partner_id).await });
        panics.await.expect("the actor dies, the node lives");
    }

    /// Kills the inventory actor of a SKU.
    pub async fn shelf_panics(&self, sku: &Sku) {
        let (engine, sku) = (Arc::clone(&self.engine), sku.clone());
        let panics = self.spawn(async move { engine.inventory.panic(&sku).await });
        panics.await.expect("the actor dies, the node lives");
    }

    /// How many keys are being answered.
    #[must_use]
    pub fn keys_running(&self) -> usize {
        self.engine.keys.running()
    }

    /// Takes all but `left` of the places that are free among the admitted.
    ///
    /// # Panics
    /// When fewer are free.
    pub fn crowd(&self, left: usize) -> OwnedSemaphorePermit {
        let admission = Arc::clone(&self.engine.admission);
        let taken = admission.available_permits() - left;
        let taken = u32::try_from(taken).expect("as few as may be admitted");
        admission.try_acquire_many_owned(taken).expect("so many are free")
    }
}

/// What came of it, once it is over.
pub(super) async fn heard(task: JoinHandle<Heard>) -> Heard {
    match task.await {
        Ok(heard) => heard,
        Err(error) if error.is_cancelled() => Heard::Gone,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

async fn open(tasks: &LocalSet, store: &MemoryStore, clock: &Arc<TestClock>) -> Result<Engine, RecoverError> {
    Engine::start(Parts {
        store: Arc::new(store.clone()) as Arc<dyn Store>,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        spawner: Spawner::Here,
        spawn: &|lane| drop(tasks.spawn_local(lane)),
        lanes: DEFAULT_LANES,
        metrics: JournalMetrics::default(),
    })
    .await
}

/// Polls the tasks of a node as long as it lives.
fn keep_polling(tasks: &Rc<LocalSet>) {
    let tasks: Weak<LocalSet> = Rc::downgrade(tasks);
    let poll = std::future::poll_fn(move |context| match tasks.upgrade() {
        Some(tasks) => {
            let forever: Poll<()> = pin!(tasks.run_until(std::future::pending())).poll(context);
            forever
        }
        None => Poll::Ready(()),
    });
    // Nobody waits for it: it ends when the node is dropped.
    #[allow(clippy::disallowed_methods)]
    drop(tokio::task::spawn_local(poll));
}
