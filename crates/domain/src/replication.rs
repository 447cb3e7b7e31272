//! Whether commits wait for a standby before they are acknowledged.

use serde::Serialize;

/// What a node has found about the replication of commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replication {
    /// `VOUCHSAFE_DURABILITY` is `local`: not checked.
    NotRequired,
    /// Not checked within the last seconds.
    #[default]
    Unknown,
    /// Commits wait for a synchronous standby, and one is connected.
    Synchronous,
    /// `synchronous_standby_names` is empty: commits wait for no standby.
    NoNames,
    /// `synchronous_commit` of the service's connections does not wait for the disk of a standby.
    NotAwaited,
    /// No synchronous standby is connected: commits hang.
    NoStandby,
    /// The role of the service may not read `pg_stat_replication`.
    Unreadable,
}

impl Replication {
    /// Whether `VOUCHSAFE_DURABILITY` requires more than was found. The first check is awaited.
    #[must_use]
    pub const fn is_missing(self) -> bool {
        !matches!(self, Self::NotRequired | Self::Unknown | Self::Synchronous)
    }

    /// For a log and an alert.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::NotRequired => "replication is not required",
            Self::Unknown => "replication was not checked within the last seconds",
            Self::Synchronous => "commits wait for a synchronous standby",
            Self::NoNames => "synchronous_standby_names is empty: commits are acknowledged without a standby",
            Self::NotAwaited => {
                "synchronous_commit is neither on nor remote_apply: commits are acknowledged before a standby has them"
            }
            Self::NoStandby => "no synchronous standby is connected: commits wait",
            Self::Unreadable => {
                "the role of the service cannot read pg_stat_replication: GRANT pg_monitor TO it"
            }
        }
    }
}
