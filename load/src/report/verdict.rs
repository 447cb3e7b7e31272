//! Verdict of a command, and its exit code.

/// Result of a command. A later variant outweighs an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Passed,
    /// An open loop did not reach its rate; no threshold is missed.
    RateNotReached,
    ThresholdMissed,
    /// There are thresholds, and the generator or other work on the machine decided them.
    Inconclusive,
    AuditFailed,
}

impl Verdict {
    /// Exit code of the command; 2 is left to commands that could not run.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::AuditFailed => 1,
            Self::ThresholdMissed => 3,
            Self::RateNotReached => 4,
            Self::Inconclusive => 5,
        }
    }
}
