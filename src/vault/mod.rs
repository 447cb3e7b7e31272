//! The vault: how are voucher codes kept, so that neither a copy of the database nor a log gives one away?
//!
//! | Layer | File | Where it is kept |
//! |---|---|---|
//! | master key | [`master_key`], [`key_file`] | a setting; in the sandbox a file beside the data, never the database |
//! | data keys, wrapped by the master key | [`data_key`] | the database |
//! | sealed codes, bound to their row and SKU; sealed credentials of vendors | [`seal`] | the database |
//! | blind index: sold once, ever | [`blind_index`] | the database |
//! | a code in the clear | [`code`] | memory, from an import or for one answer, wiped afterwards |
//!
//! The rule: a code is opened for the retrieval endpoint alone. No type here that holds a code or a key has a `Debug`
//! text that shows it, or a `Serialize`.

mod aead;
pub mod blind_index;
pub mod code;
pub mod data_key;
pub mod key_file;
pub mod master_key;
mod random;
pub mod seal;

pub use random::NoRandomness;
