//! Vault: envelope encryption of voucher codes, so that neither a copy of the database nor a log reveals one.
//!
//! | Layer | File | Stored in |
//! |---|---|---|
//! | master key | [`master_key`], [`key_file`] | a setting; in the sandbox a file in the data directory, never the database |
//! | port to master key and key managers | [`wrapping_key`] | |
//! | data keys, wrapped by the master key or by a key manager | [`data_key`] | the database |
//! | encrypted codes, bound to their row and SKU; encrypted vendor credentials | [`seal`] | the database |
//! | blind index and code index against duplicate codes | [`blind_index`] | the database |
//! | keyed hashes of audit checkpoints | [`checkpoint_key`] | the database, and a file outside it |
//! | keyed fingerprints of requests under idempotency keys | [`fingerprint`] | the database |
//! | keyed hash of cookies that begin a sign-in | [`cookie_key`] | the operator's browser |
//! | keyed hashes of rows that grant access | [`grant_key`] | the database |
//! | plaintext code | [`code`] | memory, during an import or one response, wiped afterwards |
//!
//! Only the retrieval endpoint decrypts codes, and the job that encrypts old codes under the newest data key.
//! Types that hold a code or a key have no `Serialize`, and their `Debug` output is redacted.

mod aead;
pub mod blind_index;
pub mod checkpoint_key;
pub mod code;
pub mod cookie_key;
pub mod data_key;
pub mod fingerprint;
pub mod grant_key;
pub mod key_file;
mod mac_key;
pub mod master_key;
mod random;
pub mod seal;
pub mod wrapping_key;
mod wrapping_key_id;

pub use random::NoRandomness;
