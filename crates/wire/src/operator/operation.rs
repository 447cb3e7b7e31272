//! Operations of the operator listener: the role that each requires, and its need of a second operator.

use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::operator::Role;

use crate::operation::{self, Method};

/// Prefix of the operations that need a token or session.
pub const ADMIN_PREFIX: &str = "/admin/v1";

pub type Operation<Request, Response> = operation::Operation<Request, Response, OperatorAccess>;

pub type Route = operation::Route<OperatorAccess>;

/// What an operation requires of an operator.
#[derive(Debug, Clone, Copy)]
pub struct OperatorAccess {
    /// The least role.
    pub role: Role,
    pub second: SecondOperator,
}

/// The need of a second operator (four-eyes principle), if the settings require one at all.
#[derive(Debug, Clone, Copy)]
pub enum SecondOperator {
    Never,
    Always(&'static [ChangeKind]),
    /// Depends on the content of the request or on the settings.
    Sometimes(&'static [ChangeKind]),
}

impl SecondOperator {
    /// The label in the documentation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always(_) => "always",
            Self::Sometimes(_) => "sometimes",
        }
    }

    /// The kinds of the change requests.
    #[must_use]
    pub const fn kinds(self) -> &'static [ChangeKind] {
        match self {
            Self::Never => &[],
            Self::Always(kinds) | Self::Sometimes(kinds) => kinds,
        }
    }
}

pub(super) const fn get<Q, R>(
    path: &'static str,
    role: Role,
    id: &'static str,
    summary: &'static str,
) -> Operation<Q, R> {
    let second = SecondOperator::Never;
    Operation::new(Method::Get, path, OperatorAccess { role, second }, id, summary)
}

macro_rules! changes {
    ($($name:ident: $method:ident),+) => {
        $(
            pub(super) const fn $name<Q, R>(
                path: &'static str,
                role: Role,
                second: SecondOperator,
                id: &'static str,
                summary: &'static str,
            ) -> Operation<Q, R> {
                Operation::new(Method::$method, path, OperatorAccess { role, second }, id, summary)
            }
        )+
    };
}

changes!(post: Post, put: Put, patch: Patch, delete: Delete);
