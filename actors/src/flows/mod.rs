//! The stories: one file for each thing that can be asked of the engine, from the question to the commit.

mod cancel_order;
mod change;
mod decide_order;
mod fulfil_order;
mod keyed;
mod payout;
mod picking;
mod place_order;
mod procure;
mod serve_waiting;
mod top_up;

pub use cancel_order::{CancelOrder, NotCancelled, RevokeOrder, cancel_order, revoke_order};
pub use decide_order::{DecideOrder, NotDecided, decide_order};
pub use fulfil_order::{Delivery, deliver, give_up, take_up};
pub use keyed::Unanswered;
pub use payout::{
    DecidePayout, PayoutNotDecided, PayoutWording, RequestPayout, decide_payout, request_payout,
};
pub use place_order::{NotPlaced, PlaceOrder, Placed, Refusal, Wording, place_order};
pub use procure::{Stuck, pursue, settle};
pub use serve_waiting::serve_waiting;
pub use top_up::{Booked, NotBooked, TopUp, top_up};
