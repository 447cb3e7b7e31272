//! Exit codes, and their mapping from errors.
//!
//! Scripts can distinguish an error response from an unreachable service. Every error that is not certainly a
//! usage error or an unreachable service is a failure.

use std::io;
use std::process::ExitCode;

use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_domain::ids::ChangeRequestId;
use vouchsafe_store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// The command succeeded.
    Success,
    /// The service rejected the command, or it failed.
    Failure,
    /// An argument or a setting is invalid.
    Usage,
    /// The service or its database is unreachable.
    Unreachable,
    /// The change waits for a second operator.
    Waiting,
}

impl ExitStatus {
    pub const ALL: [Self; 5] = [
        Self::Success,
        Self::Failure,
        Self::Usage,
        Self::Unreachable,
        Self::Waiting,
    ];

    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            // The same as clap's.
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Waiting => 4,
        }
    }

    /// Description for help and documentation.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::Failure => "refused or failed",
            Self::Usage => "wrong usage: an argument or a setting",
            Self::Unreachable => "the service or its database cannot be reached",
            Self::Waiting => "the change waits for a second operator",
        }
    }

    /// The status for an error.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        let is_misuse = |cause: &(dyn std::error::Error + 'static)| cause.is::<UsageError>();
        if error.is::<WaitingChange>() {
            Self::Waiting
        } else if error.chain().any(is_misuse) {
            Self::Usage
        } else if error.chain().any(is_unreachable) {
            Self::Unreachable
        } else {
            Self::Failure
        }
    }

    /// The table in `--help`.
    pub(super) fn help_table() -> String {
        let lines = Self::ALL.map(|exit| format!("\n  {}  {}", exit.code(), exit.meaning()));
        format!("Exit codes:{}", lines.concat())
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        exit.code().into()
    }
}

/// An invalid argument or setting that clap cannot detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

/// Errors of the operating system that a later start may not have, such as a full disk.
const TRANSIENT_ERRORS: [io::ErrorKind; 5] = [
    io::ErrorKind::Interrupted,
    io::ErrorKind::QuotaExceeded,
    io::ErrorKind::ReadOnlyFilesystem,
    io::ErrorKind::StorageFull,
    io::ErrorKind::TimedOut,
];

/// Marks an error of checking settings, so that the program exits with [`ExitStatus::Usage`]. A full or
/// failing disk can end without a change of settings and is not marked.
#[must_use]
pub fn invalid_setting(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    if io.is_some_and(|io| TRANSIENT_ERRORS.contains(&io.kind())) {
        return error;
    }
    UsageError(describe_chain(&*error)).into()
}

/// The service or its database is unreachable; the text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnreachableError(pub(super) String);

/// A change that waits for a second operator.
#[derive(Debug, thiserror::Error)]
#[error(
    "the change is not made yet: another operator has to confirm it with `vouchsafe request confirm {request_id}`"
)]
pub(super) struct WaitingChange {
    pub(super) request_id: ChangeRequestId,
    /// Formatted response.
    pub(super) output: String,
}

fn is_unreachable(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<UnreachableError>() || cause.downcast_ref().is_some_and(StoreError::is_unreachable)
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn exit_status_follows_root_cause() {
        let connection_refused = || StoreError::from(io::Error::from(io::ErrorKind::ConnectionRefused));
        for (error, expected) in [
            (anyhow!("no"), ExitStatus::Failure),
            (UsageError("x".to_owned()).into(), ExitStatus::Usage),
            (
                invalid_setting(anyhow!("short").context("read the key")).context("start"),
                ExitStatus::Usage,
            ),
            (
                invalid_setting(io::Error::from(io::ErrorKind::StorageFull)),
                ExitStatus::Failure,
            ),
            (
                invalid_setting(io::Error::from(io::ErrorKind::PermissionDenied)),
                ExitStatus::Usage,
            ),
            (
                WaitingChange {
                    request_id: ChangeRequestId::generate(),
                    output: String::new(),
                }
                .into(),
                ExitStatus::Waiting,
            ),
            (UnreachableError("x".to_owned()).into(), ExitStatus::Unreachable),
            (connection_refused().into(), ExitStatus::Unreachable),
            (
                Err::<(), _>(connection_refused()).context("check").unwrap_err(),
                ExitStatus::Unreachable,
            ),
        ] {
            assert_eq!(ExitStatus::of(&error), expected, "{error:#}");
        }
    }

    #[test]
    fn usage_status_equals_clap_exit_code() {
        let error = clap::Error::new(clap::error::ErrorKind::UnknownArgument);
        assert_eq!(error.exit_code(), i32::from(ExitStatus::Usage.code()));
    }
}
