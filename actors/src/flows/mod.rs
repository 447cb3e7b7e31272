//! Flows: the engine's operations, one file each, from the request to the commit.

mod cancel_order;
mod caps;
mod change;
mod decide_order;
mod distribute_reserved_stock;
mod fulfil_order;
mod hold_for_order;
mod idempotent;
mod payout;
mod place_order;
mod procure;
mod top_up;

pub use cancel_order::{CancelError, CancelOrder, RevokeOrder, cancel_order, revoke_order};
pub use caps::OrderCaps;
pub use decide_order::{DecideOrder, DecideOrderError, decide_order};
pub use distribute_reserved_stock::distribute_reserved_stock;
pub use fulfil_order::{deliver_reserved, end_fulfilment, start_fulfilment};
pub use idempotent::FlowError;
pub use payout::{
    DecidePayout, DecidePayoutError, PayoutResponseEncoder, RequestPayout, decide_payout, request_payout,
};
pub use place_order::{
    IdempotentResponse, OrderRefusal, OrderResponseEncoder, PlaceOrder, PlaceOrderError, RequestOrigin,
    place_order,
};
pub use procure::{ProcureError, advance_purchase, advance_waiting_order};
pub use top_up::{TopUp, TopUpError, TopUpResult, top_up};
