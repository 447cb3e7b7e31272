//! Server plan: everything a guard needs to run the server, passed as command-line arguments.
//!
//! A guard reads no settings and no environment, so guards with the same plan are interchangeable. The
//! fingerprint tells whether a running guard has the current plan.

use std::ffi::OsString;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::account::Account;

/// Bytes of the plan's hash that identify it.
const FINGERPRINT_BYTES: usize = 8;

/// How to run the server of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerPlan {
    /// The service's data directory, with the locks and the log.
    pub(super) data_dir: PathBuf,
    /// The account that the server runs as.
    pub(super) account: Account,
    pub(super) program: PathBuf,
    /// The server's data directory.
    pub(super) pgdata: PathBuf,
    /// The server's further arguments.
    pub(super) settings: Vec<OsString>,
}

impl ServerPlan {
    /// The guard's arguments, after its subcommand.
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![
            self.data_dir.clone().into(),
            self.account.uid.to_string().into(),
            self.account.gid.to_string().into(),
            self.program.clone().into(),
            self.pgdata.clone().into(),
        ];
        arguments.extend(self.settings.iter().cloned());
        arguments
    }

    /// Parses the output of [`ServerPlan::to_arguments`].
    pub(super) fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let data_dir = arguments.next()?.into();
        let uid = arguments.next()?.to_str()?.parse().ok()?;
        let gid = arguments.next()?.to_str()?.parse().ok()?;
        let program = arguments.next()?.into();
        let pgdata = arguments.next()?.into();
        Some(Self {
            data_dir,
            account: Account { uid, gid },
            program,
            pgdata,
            settings: arguments.collect(),
        })
    }

    /// The server's arguments, after its program.
    pub(super) fn server_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec!["-D".into(), self.pgdata.clone().into()];
        arguments.extend(self.settings.iter().cloned());
        arguments
    }

    /// Plans with the same fingerprint run the same server.
    pub(super) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for argument in self.to_arguments() {
            hash.update(argument.as_encoded_bytes());
            hash.update([0]);
        }
        hex::encode(&hash.finalize()[..FINGERPRINT_BYTES])
    }

    /// The log of guard and server.
    pub(super) fn log(&self) -> PathBuf {
        self.data_dir.join("postgres.log")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An arbitrary plan.
    pub(crate) fn plan() -> ServerPlan {
        ServerPlan {
            data_dir: "/data".into(),
            account: Account { uid: 1, gid: 2 },
            program: "/bin/postgres".into(),
            pgdata: "/data/postgres/data".into(),
            settings: vec!["-c".into(), "fsync=on".into()],
        }
    }

    #[test]
    fn plan_round_trips_through_arguments() {
        assert_eq!(
            ServerPlan::from_arguments(plan().to_arguments().into_iter()),
            Some(plan())
        );
        assert_eq!(
            ServerPlan::from_arguments(plan().to_arguments().into_iter().take(4)),
            None
        );
    }

    #[test]
    fn fingerprint_changes_with_any_setting() {
        let other = ServerPlan {
            settings: vec!["-c".into(), "fsync=off".into()],
            ..plan()
        };
        assert_ne!(plan().fingerprint(), other.fingerprint());
        assert_eq!(plan().fingerprint(), plan().fingerprint());
    }
}
