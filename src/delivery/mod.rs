//! Deliveries over HTTP: where they may go, how they are signed and sent, and who looks for what is to be delivered.

mod address;
mod desk;
mod resolver;
mod sample;
mod sender;
mod signature;
mod url;

pub(crate) use desk::keep_delivering;
pub(crate) use sample::sample;
pub(crate) use sender::{HttpSender, Parcel, SenderParts};
pub(crate) use url::{Grounds, MAX_URL_BYTES};
