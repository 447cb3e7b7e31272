//! The stories: one file for each thing that can be asked of the engine, from the question to the commit.

mod keyed;
mod place_order;
mod top_up;

pub use keyed::Unanswered;
pub use place_order::{NotPlaced, PlaceOrder, Placed, Refusal, Wording, place_order};
pub use top_up::{Booked, NotBooked, TopUp, top_up};
