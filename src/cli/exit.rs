//! How does the program end? The one table of exit codes, and which of them an error is.
//!
//! Rule: a script can tell "no" from "could not ask". What is not certain to be one of the other two is a refusal.

use std::process::ExitCode;

/// SQLSTATEs, by how they begin, of a server that lets nobody in: no connection, no such login, no such database, too
/// many connections, going up or down.
const NO_CONNECTION: [&str; 5] = ["08", "28", "3D", "53300", "57P"];

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// What was asked for was done.
    Done,
    /// It was refused, or it failed.
    Refused,
    /// The words of the command are wrong.
    Misused,
    /// Nobody answered who could have done it.
    Unreachable,
}

impl Exit {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Refused, Self::Misused, Self::Unreachable];

    /// The code that the system is given.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            // What clap ends with.
            Self::Misused => 2,
            Self::Unreachable => 3,
        }
    }

    /// What it means, for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused or failed",
            Self::Misused => "wrong usage: an argument or a setting",
            Self::Unreachable => "the service or its database cannot be reached",
        }
    }

    /// How a program ends that stopped at this error.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        let is_misuse = |cause: &(dyn std::error::Error + 'static)| cause.is::<Misuse>();
        if error.chain().any(is_misuse) {
            Self::Misused
        } else if error.chain().any(is_unreachable) {
            Self::Unreachable
        } else {
            Self::Refused
        }
    }

    /// The table as `--help` shows it.
    pub(super) fn table() -> String {
        let lines = Self::ALL.map(|exit| format!("\n  {}  {}", exit.code(), exit.meaning()));
        format!("Exit codes:{}", lines.concat())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// An argument that only a second look shows to be wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misuse(pub(super) String);

/// Nobody answered; the text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreachable(pub(super) String);

fn is_unreachable(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<Unreachable>() || cause.downcast_ref().is_some_and(is_no_connection)
}

fn is_no_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Database(refused) => refused
            .code()
            .is_some_and(|code| NO_CONNECTION.iter().any(|beginning| code.starts_with(beginning))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn an_error_is_what_lies_at_its_bottom() {
        let silent = || sqlx::Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        for (error, expected) in [
            (anyhow!("no"), Exit::Refused),
            (sqlx::Error::RowNotFound.into(), Exit::Refused),
            (Misuse("x".to_owned()).into(), Exit::Misused),
            (Unreachable("x".to_owned()).into(), Exit::Unreachable),
            (silent().into(), Exit::Unreachable),
            (
                Err::<(), _>(silent()).context("check").unwrap_err(),
                Exit::Unreachable,
            ),
        ] {
            assert_eq!(Exit::of(&error), expected, "{error:#}");
        }
    }

    #[test]
    fn usage_ends_as_the_parser_ends_it() {
        let error = clap::Error::new(clap::error::ErrorKind::UnknownArgument);
        assert_eq!(error.exit_code(), i32::from(Exit::Misused.code()));
    }
}
