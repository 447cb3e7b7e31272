//! Operations of the partner listener, with the scope of a credential that each requires.

use vouchsafe_domain::api_scope::ApiScope;

use crate::operation::{self, Method};

pub type Operation<Request, Response> = operation::Operation<Request, Response, ApiScope>;

pub type Route = operation::Route<ApiScope>;

pub(super) const fn get<Q, R>(
    path: &'static str,
    scope: ApiScope,
    id: &'static str,
    summary: &'static str,
) -> Operation<Q, R> {
    Operation::new(Method::Get, path, scope, id, summary)
}

pub(super) const fn post<Q, R>(
    path: &'static str,
    scope: ApiScope,
    id: &'static str,
    summary: &'static str,
) -> Operation<Q, R> {
    Operation::new(Method::Post, path, scope, id, summary)
}

pub(super) const fn delete<Q, R>(
    path: &'static str,
    scope: ApiScope,
    id: &'static str,
    summary: &'static str,
) -> Operation<Q, R> {
    Operation::new(Method::Delete, path, scope, id, summary)
}
