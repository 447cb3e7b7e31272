//! Where do keys and nonces come from?
//!
//! The rule: from the operating system, and never from a fallback. They decide nothing, so they are no argument.

/// The operating system gave no random bytes; nothing was sealed or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct NoRandomness(getrandom::Error);

/// Fills the place of a key or a nonce.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    getrandom::fill(bytes).map_err(NoRandomness)
}
