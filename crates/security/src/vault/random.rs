//! Random bytes for keys and nonces, from the operating system only and without a fallback.

/// The operating system provided no random bytes; nothing was encrypted or generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system provides no random bytes: {0}")]
pub struct NoRandomness(getrandom::Error);

pub(super) fn fill(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    getrandom::fill(bytes).map_err(NoRandomness)
}
