//! Operations of both listeners as values: method, path, access, id, summary and error codes, each stated
//! once.
//!
//! The router binds each constant to a handler, the OpenAPI document adds prose and examples, and console and
//! command line take method, path and role from it.

use std::marker::PhantomData;

use strum::IntoStaticStr;

use crate::column::Column;
use crate::error_code::Code;

/// Method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}

/// An operation without the types of its bodies. `Access` is what its listener requires of a caller.
#[derive(Debug, Clone, Copy)]
pub struct Route<Access> {
    pub method: Method,
    /// Path below the prefix of the listener, with placeholders.
    pub path: &'static str,
    pub access: Access,
    /// `operationId` in the OpenAPI document.
    pub id: &'static str,
    /// An imperative.
    pub summary: &'static str,
    /// Error codes besides those that follow from the access, the path and the body.
    pub errors: &'static [Code],
    /// Error codes that are also stored under the idempotency key.
    pub stored_errors: &'static [Code],
    /// Columns of the entries in its response.
    pub columns: &'static [Column],
    /// Whether it responds with the pages of a list, which is also served as CSV.
    pub is_list: bool,
}

/// An operation of a listener. `Request` is its body, its query or the filter of its list; `Response` the
/// body of its success.
#[derive(Debug)]
pub struct Operation<Request, Response, Access> {
    pub route: Route<Access>,
    types: PhantomData<fn(Request) -> Response>,
}

/// Response of a list: a page of entries.
#[derive(Debug)]
pub struct Page<T>(PhantomData<T>);

impl<Request, Response, Access: Copy> Operation<Request, Response, Access> {
    #[must_use]
    pub const fn new(
        method: Method,
        path: &'static str,
        access: Access,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            route: Route {
                method,
                path,
                access,
                id,
                summary,
                errors: &[],
                stored_errors: &[],
                columns: &[],
                is_list: false,
            },
            types: PhantomData,
        }
    }

    /// Sets the error codes of this operation.
    #[must_use]
    pub const fn errors(mut self, errors: &'static [Code]) -> Self {
        self.route.errors = errors;
        self
    }

    /// Sets the error codes that are stored under the idempotency key and replayed.
    #[must_use]
    pub const fn stored_errors(mut self, errors: &'static [Code]) -> Self {
        self.route.stored_errors = errors;
        self
    }

    /// Sets the columns of the entries of a response that is no page of a list.
    #[must_use]
    pub const fn table_columns(mut self, columns: &'static [Column]) -> Self {
        self.route.columns = columns;
        self
    }

    /// The same operation with HEAD instead of GET.
    #[must_use]
    pub const fn head(mut self, id: &'static str) -> Self {
        self.route.method = Method::Head;
        self.route.id = id;
        self
    }
}

impl<Request, Entry, Access: Copy> Operation<Request, Page<Entry>, Access> {
    /// Sets the columns of the entries.
    #[must_use]
    pub const fn columns(self, columns: &'static [Column]) -> Self {
        let mut list = self.table_columns(columns);
        list.route.is_list = true;
        list
    }
}

/// Declares operations of a listener as constants, and lists all of them as `OPERATIONS`, so that the length
/// of a router's table follows.
macro_rules! operations {
    ($access:ty; $($name:ident: $operation:ty = $value:expr;)+) => {
        $(pub const $name: $operation = $value;)+

        /// All operations of this module.
        pub const OPERATIONS: &[$crate::operation::Route<$access>] = &[$($name.route),+];
    };
}

pub(crate) use operations;
