//! Requests of the operator API that pages make: a route and a query with placeholders.

use vouchsafe_wire::operator::operation::{Operation, Route};

use crate::template::{fill_parts, placeholders};

/// A request of the operator API.
#[derive(Clone, Copy)]
pub(crate) struct ApiTarget {
    pub(crate) route: Route,
    /// Query with placeholders; empty: none.
    pub(crate) query: &'static str,
}

/// A request without a query.
pub(crate) const fn target<Q, R>(operation: Operation<Q, R>) -> ApiTarget {
    ApiTarget {
        route: operation.route,
        query: "",
    }
}

impl ApiTarget {
    pub(crate) const fn query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    /// The names of the placeholders.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &'static str> + use<> {
        placeholders(self.route.path).chain(placeholders(self.query))
    }

    /// Path below `/admin/v1` with the query, its placeholders filled with encoded values.
    pub(crate) fn fill(&self, value: impl Fn(&str) -> Option<String>) -> String {
        fill_parts(self.route.path, self.query, value)
    }
}
