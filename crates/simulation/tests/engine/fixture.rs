//! Common fixture of the engine tests: a simulation with one node and two partners.

use std::time::Duration;

use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::product::Sku;
use vouchsafe_simulation::build;
pub(crate) use vouchsafe_simulation::build::top_up_command;
use vouchsafe_simulation::walk::{Node, OrderRequest, Simulation};

pub(crate) const ALICE: PartnerId = build::partner(1);
pub(crate) const BOB: PartnerId = build::partner(2);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A node, and 100.00 in the wallets of Alice and Bob; no stock.
pub(crate) async fn setup() -> (Simulation, Node) {
    setup_in(Simulation::new()).await
}

/// Same, in a given simulation.
pub(crate) async fn setup_in(sim: Simulation) -> (Simulation, Node) {
    sim.top_up(ALICE, 10_000).await;
    sim.top_up(BOB, 10_000).await;
    let node = sim.start("one").await;
    (sim, node)
}

/// A request for `quantity` of a product at 10.00.
pub(crate) fn order_request(partner_id: PartnerId, key: &str, product: &str, quantity: u32) -> OrderRequest {
    OrderRequest::new(partner_id, key, &[(product, "10.00", quantity)])
}

pub(crate) fn gift() -> Sku {
    build::sku("gift", 1_000)
}

/// Waits for all operations, then checks invariants and leaks.
pub(crate) async fn assert_settled(sim: &Simulation, node: &Node) {
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(sim.db.invariants(), Vec::<String>::new());
    assert_eq!(node.leaks().await, Vec::<String>::new());
}
