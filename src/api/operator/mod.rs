//! Routes of the operator listener: `/admin/v1`, sign-in pages, health, metrics and documentation.
//!
//! Every route under `/admin/v1` requires an operator token or session, and the role of its operation. Every
//! write takes an [`AuditActor`](vouchsafe_store::AuditActor), which only
//! [`Operator::audit_actor`](crate::api::middleware::operator::Operator::audit_actor) provides, and adds an
//! audit entry.

mod account;
mod actors;
mod audit;
mod body;
mod bulk_jobs;
mod catalogue;
mod certification;
mod change;
mod change_requests;
mod chart_range;
mod credential_errors;
mod credential_rotation;
mod credentials;
mod csv_export;
mod decision;
mod endpoint;
mod erasure;
pub(in crate::api) mod inner_api;
mod line_blocks;
mod list_count;
mod metrics;
mod monitoring;
mod nodes;
mod open_id;
mod operators;
mod orders;
mod partner_id;
mod partners;
mod payouts;
mod purchases;
mod reconciliation;
pub(in crate::api) mod reports;
mod search;
mod sessions;
mod sign_in;
mod stock;
mod traffic;
mod vendors;
mod wallets;
mod webhooks;

use std::sync::{Arc, LazyLock};

use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, Route, Scope, web};
use vouchsafe_api_docs::pages::Audience;
use vouchsafe_api_docs::{openapi, operator as docs};
use vouchsafe_store::PgStore;
use vouchsafe_wire::health::{GET_OPEN_API, HEAD_OPEN_API};
use vouchsafe_wire::operator;
use vouchsafe_wire::operator::metrics::GET_METRICS;
use vouchsafe_wire::operator::operation::ADMIN_PREFIX;
use vouchsafe_wire::operator::operators::ACTIVATE_OPERATOR_TOKEN;

use self::inner_api::InnerApi;
use crate::api::documentation::{self, DocsSite};
use crate::api::endpoint::{Endpoint, register, resources};
use crate::api::health;
use crate::api::middleware::operator::authenticate;
use crate::api::routing::route_not_found;
use crate::api::static_file::StaticFile;
use crate::config_change;
use crate::service::{Service, State};

pub(super) static DOCUMENTATION: LazyLock<DocsSite> =
    LazyLock::new(|| DocsSite::new(&docs::document(), Audience::Operators));

/// Class of the connections for requests of operators.
struct OperatorConnections;

/// State of the handlers of this listener.
type OperatorState = State<OperatorConnections>;

/// The routes of the operator listener with their state.
#[derive(Clone)]
pub(crate) struct OperatorRoutes(web::Data<OperatorState>);

impl OperatorRoutes {
    pub(crate) fn new(service: Arc<Service>, store: &PgStore) -> Self {
        Self(web::Data::new(State::new(service, store.for_operators())))
    }

    /// Registers all routes. Partner routes are 404 on this listener.
    pub(crate) fn configure_listener(&self, config: &mut web::ServiceConfig) {
        config
            .app_data(web::Data::new(self.0.store.operators.clone()))
            .app_data(self.0.clone())
            .app_data(InnerApi::new(self.clone()))
            .configure(configure_listener);
    }

    /// Registers the routes below `/admin/v1` for requests that have their
    /// [`Operator`](crate::api::middleware::operator::Operator) already.
    fn configure_authenticated(&self, config: &mut web::ServiceConfig) {
        let scope = scope().wrap(from_fn(reports::show_replica_lag));
        config.app_data(self.0.clone()).service(scope);
    }
}

/// The live feed as rows of the console's tables.
pub(crate) fn follow_as_rows() -> Route {
    web::get().to(monitoring::follow_as_rows)
}

fn configure_listener(config: &mut web::ServiceConfig) {
    register(config, public_endpoints());
    config
        .configure(|config| documentation::routes(config, &DOCUMENTATION))
        .configure(sign_in::routes)
        .configure(open_id::routes)
        .configure(configure_routes)
        .default_service(web::to(route_not_found));
}

fn configure_routes(config: &mut web::ServiceConfig) {
    let scope = scope().wrap(from_fn(reports::show_replica_lag));
    config.service(scope.wrap(from_fn(authenticate)));
}

fn scope() -> Scope {
    let scope = resources(endpoints()).fold(web::scope(ADMIN_PREFIX), Scope::service);
    scope.default_service(web::to(route_not_found))
}

/// The endpoints without authentication.
fn public_endpoints() -> impl Iterator<Item = Endpoint> {
    let own = [
        Endpoint::public(&GET_OPEN_API, serve_document),
        Endpoint::public(&HEAD_OPEN_API, serve_document),
        Endpoint::public(&GET_METRICS, metrics::metrics),
        Endpoint::public(&ACTIVATE_OPERATOR_TOKEN, operators::activate_token),
    ];
    health::endpoints().into_iter().chain(own)
}

/// The endpoints below `/admin/v1`. Viewers read; operators decide on orders, import stock and repeat
/// deliveries; admins manage money, terms, credentials and what is sold.
fn endpoints() -> impl Iterator<Item = Endpoint> {
    let groups: [Vec<Endpoint>; operator::OPERATIONS.len()] = [
        partners::endpoints().into(),
        credentials::endpoints().into(),
        wallets::endpoints().into(),
        catalogue::endpoints().into(),
        vendors::endpoints().into(),
        stock::endpoints().into(),
        orders::endpoints().into(),
        payouts::endpoints().into(),
        reconciliation::endpoints().into(),
        webhooks::endpoints().into(),
        operators::endpoints().into(),
        change_requests::endpoints().into(),
        bulk_jobs::endpoints().into(),
        monitoring::endpoints().into(),
    ];
    groups.into_iter().flatten()
}

/// `GET /openapi.json`.
async fn serve_document(request: HttpRequest) -> HttpResponse {
    static FILE: LazyLock<StaticFile> = LazyLock::new(|| openapi::to_file(&docs::document()).into());
    FILE.respond(&request)
}

#[cfg(test)]
mod tests {
    use vouchsafe_wire::operator::operation::OperatorAccess;

    use super::*;
    use crate::api::openapi_check::{assert_complete, assert_documented};

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&docs::document()));
    }

    /// The compiler compares their numbers only.
    #[test]
    fn each_operation_has_one_handler_and_one_description() {
        let operations = operator::OPERATIONS.into_iter().flatten();
        let operations: Vec<_> = operations
            .map(|operation| (operation.method, operation.path))
            .collect();
        let handled: Vec<_> = endpoints()
            .map(|endpoint| (endpoint.method, endpoint.path))
            .collect();
        assert_eq!(handled, operations);
        let below = endpoints().map(|endpoint| endpoint.label(ADMIN_PREFIX));
        let public = public_endpoints().map(|endpoint| endpoint.label(""));
        assert_documented(&openapi::to_value(&docs::document()), below.chain(public));
    }

    const BEGIN: &str = "<!-- second operators: begin, generated: VOUCHSAFE_REWRITE_DOCS=1 cargo test -p \
        vouchsafe --lib second_operators -->\n";
    const END: &str = "<!-- second operators: end -->";

    fn table_of_second_operators() -> String {
        let mut table =
            "| Operation | Role | Second operator | Change requests |\n|---|---|---|---|\n".to_owned();
        let operations = operator::OPERATIONS.into_iter().flatten();
        for operation in operations.filter(|operation| !operation.method.is_read()) {
            let OperatorAccess { role, second } = operation.access;
            let kinds: Vec<_> = second
                .kinds()
                .iter()
                .map(|kind| format!("`{}`", kind.into_str()))
                .collect();
            table += &format!(
                "| `{} {ADMIN_PREFIX}{}` | `{}` | {} | {} |\n",
                <&str>::from(operation.method),
                operation.path,
                role.into_str(),
                second.as_str(),
                kinds.join(", "),
            );
        }
        table
    }

    #[test]
    fn page_lists_second_operators_of_all_operations() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations/operators.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let generated = [before, BEGIN, &table_of_second_operators(), END, after].concat();
        if std::env::var_os("VOUCHSAFE_REWRITE_DOCS").is_some() {
            std::fs::write(path, &generated).unwrap();
        }
        assert_eq!(
            page, generated,
            "the list differs from the routes; VOUCHSAFE_REWRITE_DOCS=1 rewrites it"
        );
    }
}
