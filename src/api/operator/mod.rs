//! Routes of the operator listener: `/admin/v1`, sign-in pages, health, metrics and documentation.
//!
//! Every route under `/admin/v1` requires an operator token or session, and the role in its line of the table. Every write takes an
//! [`AuditActor`](vouchsafe_store::AuditActor), which only
//! [`Operator::audit_actor`](crate::api::middleware::operator::Operator::audit_actor) provides, and adds an audit entry.

mod actors;
mod audit;
mod body;
mod catalogue;
mod certification;
mod change_requests;
mod confirmable_change;
mod credential_rotation;
mod credentials;
mod decision;
mod endpoint;
mod line_blocks;
mod metrics;
pub(in crate::api) mod monitoring;
mod nodes;
mod open_id;
mod operators;
mod orders;
mod partner_id;
mod partners;
mod payouts;
mod purchases;
mod reconciliation;
mod search;
mod sessions;
mod sign_in;
mod stock;
mod vendors;
mod wallets;
mod webhooks;

use std::sync::LazyLock;

use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, Scope, web};
use utoipa::openapi::OpenApi;
use vouchsafe_api_docs::operator::SecondOperator::{Always, Never, Sometimes};
use vouchsafe_api_docs::{openapi, operator as docs};
use vouchsafe_domain::change_request::ChangeKind::{
    Adjustment, CredentialIssue, CredentialRotate, OperatorChange, OperatorCreate, OperatorTokenIssue,
    OrderApprove, OrderFulfil, PartnerChange, PayoutFail, PayoutPay, PayoutReject, TopUp, VendorPut,
};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::payout::PayoutOutcome;

use self::endpoint::{AdminEndpoint, admin_endpoints};
use crate::api::documentation::{self, DocsSite};
use crate::api::endpoint::{Endpoint, endpoints, register, resources};
use crate::api::health;
use crate::api::middleware::operator::authenticate;
use crate::api::routing::route_not_found;
use crate::api::static_file::StaticFile;
use crate::config_change;

/// Prefix of the routes that need a token.
pub(crate) const ADMIN_PREFIX: &str = "/admin/v1";

static DOCUMENTATION: LazyLock<DocsSite> = LazyLock::new(|| DocsSite::new(&document()));

/// Partner routes are 404 on this listener.
pub(crate) fn configure_listener(config: &mut web::ServiceConfig) {
    register(config, public_endpoints());
    config
        .configure(|config| documentation::routes(config, &DOCUMENTATION))
        .configure(sign_in::routes)
        .configure(open_id::routes)
        .configure(configure_routes)
        .default_service(web::to(route_not_found));
}

fn configure_routes(config: &mut web::ServiceConfig) {
    config.service(scope().wrap(from_fn(authenticate)));
}

/// The same routes for requests that have their [`Operator`](crate::api::middleware::operator::Operator) already: calls of the
/// console within this process.
pub(crate) fn configure_authenticated_routes(config: &mut web::ServiceConfig) {
    config.service(scope());
}

fn scope() -> Scope {
    let scope = resources(endpoints().into_iter().map(AdminEndpoint::into_endpoint))
        .fold(web::scope(ADMIN_PREFIX), Scope::service);
    scope.default_service(web::to(route_not_found))
}

/// The endpoints without authentication.
fn public_endpoints() -> impl Iterator<Item = Endpoint> {
    let own = endpoints! {
        GET "/openapi.json" => serve_document, openapi::health::document;
        HEAD "/openapi.json" => serve_document, |operation| openapi::health::document(operation).id("headOpenApi");
        GET "/metrics" => metrics::metrics, docs::monitoring::metrics;
        POST "/activation" => operators::activate_token, docs::operators::activate_token;
    };
    health::endpoints().into_iter().chain(own)
}

/// The endpoints below `/admin/v1`, with the least role of an operator who may call them, and the changes that wait for a second one.
/// Viewers read; operators decide on orders, import stock and repeat deliveries; admins manage money, terms, credentials and what is
/// sold.
fn endpoints() -> Vec<AdminEndpoint> {
    admin_endpoints! {
        GET "/partners" Viewer => partners::list, docs::partners::list;
        POST "/partners" Admin [Never] => partners::create, docs::partners::create;
        GET "/partners/{partner_id}" Viewer => partners::get, docs::partners::get;
        PATCH "/partners/{partner_id}" Admin [Sometimes(&[PartnerChange])] => partners::change, docs::partners::change;
        GET "/partners/{partner_id}/credentials" Viewer => credentials::list, docs::partners::list_credentials;
        POST "/partners/{partner_id}/credentials" Admin [Always(&[CredentialIssue])] => credentials::issue, docs::partners::issue;
        GET "/partners/{partner_id}/certification" Viewer => certification::get, docs::partners::certification;
        DELETE "/partners/{partner_id}/certification" Operator [Never] => certification::restart, docs::partners::restart_certification;
        GET "/partners/{partner_id}/limits" Viewer => credentials::list_limit_use, docs::partners::list_limit_use;
        GET "/partners/{partner_id}/wallets" Viewer => wallets::list, docs::partners::list_wallets;
        GET "/partners/{partner_id}/transactions" Viewer => wallets::list_transactions, docs::partners::list_transactions;
        POST "/partners/{partner_id}/wallets/{currency}/top-ups" Admin [Sometimes(&[TopUp])]
            => |posting| wallets::post(posting, LedgerKind::TopUp), docs::partners::top_up;
        POST "/partners/{partner_id}/wallets/{currency}/adjustments" Admin [Sometimes(&[Adjustment])]
            => |posting| wallets::post(posting, LedgerKind::Adjustment), docs::partners::adjust;
        DELETE "/credentials/{credential_id}" Admin [Never] => credentials::revoke, docs::partners::revoke;
        POST "/credentials/{credential_id}/rotate" Admin [Always(&[CredentialRotate])] => credential_rotation::rotate, docs::partners::rotate;
        GET "/categories" Viewer => catalogue::list_categories, docs::catalogue::list_categories;
        PUT "/categories/{category_id}" Admin [Never] => catalogue::put_category, docs::catalogue::put_category;
        GET "/products" Viewer => catalogue::list_products, docs::catalogue::list_products;
        GET "/products/{product_id}" Viewer => catalogue::get_product, docs::catalogue::get_product;
        PUT "/products/{product_id}" Admin [Never] => catalogue::put_product, docs::catalogue::put_product;
        GET "/vendors" Viewer => vendors::list, docs::vendors::list;
        GET "/vendors/{vendor_id}" Viewer => vendors::get, docs::vendors::get;
        PUT "/vendors/{vendor_id}" Admin [Sometimes(&[VendorPut])] => vendors::put, docs::vendors::put;
        GET "/stock" Viewer => stock::list_levels, docs::stock::levels;
        GET "/stock/expiries" Viewer => stock::list_expiries, docs::stock::expiries;
        POST "/stock" Operator [Never] => stock::import, docs::stock::import;
        POST "/stock/void" Admin [Never] => stock::void, docs::stock::void;
        POST "/stock/quarantine" Admin [Never] => stock::quarantine, docs::stock::quarantine;
        POST "/stock/quarantine/sold" Admin [Never] => stock::withdraw_sold, docs::stock::withdraw_sold;
        POST "/stock/quarantine/release" Admin [Never] => stock::release, docs::stock::release;
        GET "/orders" Viewer => orders::list, docs::orders::search;
        GET "/orders/{order_id}" Viewer => orders::get, docs::orders::get;
        GET "/orders/{order_id}/events" Viewer => orders::list_events, docs::orders::list_events;
        POST "/orders/{order_id}/approve" Operator [Always(&[OrderApprove])] => orders::approve, docs::orders::approve;
        POST "/orders/{order_id}/reject" Operator [Never] => orders::reject, docs::orders::reject;
        POST "/orders/{order_id}/cancel" Operator [Never] => orders::cancel, docs::orders::cancel;
        POST "/orders/{order_id}/fulfil" Operator [Always(&[OrderFulfil])] => orders::fulfil, docs::orders::fulfil;
        GET "/purchases" Viewer => purchases::list, docs::vendors::purchases;
        GET "/purchases/{purchase_id}" Viewer => purchases::get, docs::vendors::get_purchase;
        POST "/purchases/{purchase_id}/end" Operator [Never] => purchases::end, docs::vendors::end_purchase;
        GET "/payouts" Viewer => payouts::list, docs::payouts::list;
        GET "/payouts/{payout_id}" Viewer => payouts::get, docs::payouts::get;
        POST "/payouts/{payout_id}/pay" Admin [Always(&[PayoutPay])] => |request| payouts::decide(request, PayoutOutcome::Paid), docs::payouts::pay;
        POST "/payouts/{payout_id}/reject" Admin [Always(&[PayoutReject])]
            => |request| payouts::decide(request, PayoutOutcome::Rejected), docs::payouts::reject;
        POST "/payouts/{payout_id}/fail" Admin [Always(&[PayoutFail])] => |request| payouts::decide(request, PayoutOutcome::Failed), docs::payouts::fail;
        GET "/reconciliation" Viewer => reconciliation::list, docs::reconciliation::list;
        GET "/reconciliation/{date}" Viewer => reconciliation::get, docs::reconciliation::get;
        POST "/reconciliation/{date}/run" Operator [Never] => reconciliation::run, docs::reconciliation::run;
        POST "/reconciliation/{date}/records" Operator [Never] => reconciliation::upload, docs::reconciliation::upload;
        GET "/drifts" Viewer => reconciliation::drifts::list, docs::reconciliation::list_drifts;
        POST "/drifts/{drift_id}/resolve" Operator [Never] => reconciliation::drifts::resolve, docs::reconciliation::resolve;
        GET "/webhooks" Viewer => webhooks::list_webhooks, docs::webhooks::list;
        GET "/webhooks/{webhook_id}" Viewer => webhooks::get_webhook, docs::webhooks::get;
        POST "/webhooks/{webhook_id}/enable" Operator [Never] => webhooks::enable, docs::webhooks::enable;
        POST "/webhooks/{webhook_id}/retry" Operator [Never] => webhooks::retry, docs::webhooks::retry;
        POST "/webhooks/{webhook_id}/replay" Operator [Never] => webhooks::replay_events, docs::webhooks::replay_events;
        GET "/webhooks/{webhook_id}/deliveries" Viewer => webhooks::list_attempts, docs::webhooks::attempts;
        GET "/deliveries" Viewer => webhooks::list_deliveries, docs::webhooks::deliveries;
        GET "/deliveries/{delivery_id}" Viewer => webhooks::get_delivery, docs::webhooks::get_delivery;
        POST "/deliveries/{delivery_id}/replay" Operator [Never] => webhooks::replay, docs::webhooks::replay;
        GET "/operators" Viewer => operators::list, docs::operators::list;
        POST "/operators" Admin [Always(&[OperatorCreate])] => operators::create, docs::operators::create;
        PATCH "/operators/{name}" Admin [Sometimes(&[OperatorChange])] => operators::change, docs::operators::change;
        GET "/operators/{name}/tokens" Viewer => operators::list_tokens, docs::operators::list_tokens;
        POST "/operators/{name}/tokens" Admin [Sometimes(&[OperatorTokenIssue])] => operators::issue_token, docs::operators::issue_token;
        DELETE "/operator-tokens/{token_id}" Admin [Never] => operators::revoke_token, docs::operators::revoke_token;
        GET "/operators/{name}/identities" Admin => operators::list_identities, docs::operators::list_identities;
        DELETE "/operators/{name}/identities" Admin [Never] => operators::unlink_identities, docs::operators::unlink_identities;
        POST "/operators/{name}/sign-in-links" Viewer [Never] => sessions::issue_link, docs::operators::issue_sign_in_link;
        GET "/sessions" Viewer => sessions::list, docs::operators::list_sessions;
        DELETE "/sessions/{session_id}" Viewer [Never] => sessions::end, docs::operators::end_session;
        GET "/requests" Viewer => change_requests::list, docs::change_requests::list;
        GET "/requests/{request_id}" Viewer => change_requests::get, docs::change_requests::get;
        POST "/requests/{request_id}/confirm" Operator [Never] => change_requests::confirm, docs::change_requests::confirm;
        POST "/requests/{request_id}/decline" Operator [Never] => change_requests::decline, docs::change_requests::decline;
        GET "/search" Viewer => search::find, docs::search::find;
        GET "/overview" Viewer => monitoring::overview, docs::monitoring::overview;
        GET "/samples" Viewer => monitoring::samples, docs::monitoring::samples;
        GET "/live" Viewer => monitoring::follow, docs::monitoring::live;
        GET "/settings" Viewer => monitoring::list_settings, docs::monitoring::settings;
        GET "/refusals" Viewer => monitoring::list_refusals, docs::monitoring::refusals;
        GET "/actors" Viewer => actors::list, docs::monitoring::actors;
        GET "/actors/{kind}/{key}" Viewer => actors::get, docs::monitoring::actor;
        GET "/nodes" Viewer => nodes::list, docs::monitoring::nodes;
        GET "/lanes" Viewer => nodes::list_lanes, docs::monitoring::lanes;
        GET "/audit" Viewer => audit::list, docs::monitoring::audit;
        GET "/audit/checkpoints" Viewer => audit::list_checkpoints, docs::monitoring::audit_checkpoints;
        POST "/audit/checkpoints" Operator [Never] => audit::write_checkpoint, docs::monitoring::write_audit_checkpoint;
    }
}

fn document() -> OpenApi {
    let api = endpoints()
        .into_iter()
        .map(|endpoint| endpoint.operation(ADMIN_PREFIX));
    docs::document(api.chain(public_endpoints().map(|endpoint| endpoint.operation(""))))
}

/// `GET /openapi.json`.
async fn serve_document(request: HttpRequest) -> HttpResponse {
    static FILE: LazyLock<StaticFile> = LazyLock::new(|| openapi::to_file(&document()).into());
    FILE.respond(&request)
}

#[cfg(test)]
mod tests {
    use actix_web::http::Method;
    use strum::VariantArray as _;
    use vouchsafe_domain::change_request::ChangeKind;
    use vouchsafe_domain::operator::Role;

    use super::*;
    use crate::api::openapi_check::assert_complete;

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&document()));
    }

    #[test]
    fn every_kind_of_change_request_belongs_to_one_operation() {
        let endpoints = endpoints();
        for kind in ChangeKind::VARIANTS {
            let of_kind = endpoints
                .iter()
                .filter(|endpoint| endpoint.second.kinds().contains(kind));
            let roles: Vec<Role> = of_kind.map(|endpoint| endpoint.role).collect();
            assert_eq!(roles, [kind.required_role()], "{}", kind.into_str());
        }
    }

    const BEGIN: &str = "<!-- second operators: begin, generated: VOUCHSAFE_REWRITE_DOCS=1 cargo test -p vouchsafe --lib second_operators -->\n";
    const END: &str = "<!-- second operators: end -->";

    fn table_of_second_operators() -> String {
        let mut table =
            "| Operation | Role | Second operator | Change requests |\n|---|---|---|---|\n".to_owned();
        for AdminEndpoint {
            role,
            second,
            endpoint,
        } in endpoints()
        {
            if endpoint.method == Method::GET {
                continue;
            }
            let kinds: Vec<_> = second
                .kinds()
                .iter()
                .map(|kind| format!("`{}`", kind.into_str()))
                .collect();
            table += &format!(
                "| `{} {ADMIN_PREFIX}{}` | `{}` | {} | {} |\n",
                endpoint.method,
                endpoint.path,
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
