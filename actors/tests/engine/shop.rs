//! The shop that most tests begin with, and the people in it.

use std::time::Duration;

use vouchsafe_actors::domain::answer::Fingerprint;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::{BookedBy, LedgerKind};
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::flows::TopUp;
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::world::{Ask, Node, World};

pub(crate) const ALICE: PartnerId = build::partner(1);
pub(crate) const BOB: PartnerId = build::partner(2);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A node, and 100.00 in the wallets of Alice and Bob. No stock.
pub(crate) async fn shop() -> (World, Node) {
    shop_in(World::new()).await
}

/// The same in a world of the caller's making.
pub(crate) async fn shop_in(world: World) -> (World, Node) {
    world.give(ALICE, 10_000).await;
    world.give(BOB, 10_000).await;
    let node = world.start("one").await;
    (world, node)
}

/// So many of a product at 10.00.
pub(crate) fn wants(partner_id: PartnerId, key: &str, product: &str, quantity: u32) -> Ask {
    Ask::new(partner_id, key, &[(product, "10.00", quantity)])
}

pub(crate) fn gift() -> Sku {
    build::sku("gift", 1_000)
}

/// What an operator books under a reference.
pub(crate) fn booking(partner_id: PartnerId, reference: &str, amount: i64) -> TopUp {
    TopUp {
        partner_id,
        money: build::minor(amount).of(build::usd()),
        kind: if amount < 0 {
            LedgerKind::Adjustment
        } else {
            LedgerKind::TopUp
        },
        reference: reference.to_owned(),
        key: build::key(&format!("{partner_id}/books/{reference}")),
        fingerprint: of_booking(partner_id, reference, amount),
        booked_by: BookedBy {
            operator: "somebody".to_owned(),
            trace_id: None,
        },
    }
}

fn of_booking(partner_id: PartnerId, reference: &str, amount: i64) -> Fingerprint {
    build::fingerprint(&format!("{partner_id}/{reference}/{amount}"))
}

/// Everything under way has its verdict, nothing is held for nobody, and the rows are sound.
pub(crate) async fn all_is_settled(world: &World, node: &Node) {
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(world.db.invariants(), Vec::<String>::new());
    assert_eq!(node.leaks().await, Vec::<String>::new());
}
