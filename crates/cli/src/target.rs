//! Requests of operations: their paths with values instead of placeholders.

use std::marker::PhantomData;

use reqwest::Method;
use vouchsafe_wire::column::Column;
use vouchsafe_wire::operation;
use vouchsafe_wire::operator::operation::{ADMIN_PREFIX, Operation, Route};

/// An operation with the path of a request.
#[derive(Debug, Clone)]
pub struct Target<Q, R> {
    method: operation::Method,
    path: String,
    columns: &'static [Column],
    types: PhantomData<fn(Q) -> R>,
}

impl<Q, R> From<Operation<Q, R>> for Target<Q, R> {
    fn from(operation: Operation<Q, R>) -> Self {
        Self::of(&operation.route)
    }
}

impl<Q, R> Target<Q, R> {
    pub(super) fn of(route: &Route) -> Self {
        Self {
            method: route.method,
            path: format!("{ADMIN_PREFIX}{}", route.path),
            columns: route.columns,
            types: PhantomData,
        }
    }

    /// Fills a placeholder of the path.
    pub(super) fn with(self, name: &str, value: &str) -> Self {
        let path = fill(&self.path, name, value);
        Self { path, ..self }
    }

    pub(super) const fn method(&self) -> operation::Method {
        self.method
    }

    pub(super) const fn columns(&self) -> &'static [Column] {
        self.columns
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The same request, whatever its types.
    pub(super) fn untyped(self) -> Target<(), ()> {
        Target {
            method: self.method,
            path: self.path,
            columns: self.columns,
            types: PhantomData,
        }
    }

    /// Adds a query.
    pub(super) fn query(self, query: &str) -> Self {
        let separator = if query.is_empty() { "" } else { "?" };
        let path = format!("{}{separator}{query}", self.path);
        Self { path, ..self }
    }

    /// The page of a list with a query that begins at this cursor.
    pub(super) fn at_cursor(&self, cursor: &str) -> Self {
        let path = format!("{}&cursor={}", self.path, percent_encode(cursor));
        Self {
            path,
            types: PhantomData,
            ..*self
        }
    }
}

fn fill(path: &str, name: &str, value: &str) -> String {
    path.replace(&format!("{{{name}}}"), &percent_encode(value))
}

pub(super) const fn http_method(method: operation::Method) -> Method {
    match method {
        operation::Method::Get => Method::GET,
        operation::Method::Head => Method::HEAD,
        operation::Method::Post => Method::POST,
        operation::Method::Put => Method::PUT,
        operation::Method::Patch => Method::PATCH,
        operation::Method::Delete => Method::DELETE,
    }
}

/// Percent-encodes a part of a URL.
fn percent_encode(text: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if is_unreserved(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_path_is_percent_encoded() {
        assert_eq!(percent_encode("x y/1&2?ß-._~"), "x%20y%2F1%262%3F%C3%9F-._~");
    }
}
