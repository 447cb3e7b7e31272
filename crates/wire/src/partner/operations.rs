//! Operations of the partner API that both environments have.

use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_domain::delivery::attempt::{AttemptFilter, LoggedAttempt};
use vouchsafe_domain::envelope::Event;
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::order::filter::OrderFilter;
use vouchsafe_domain::payout::PayoutFilter;
use vouchsafe_domain::wallet::Wallet;

use crate::error_code::Code;
use crate::filter::{NoFilter, WholeList};
use crate::operation::{Page, operations};
use crate::partner::categories::CategoryBody;
use crate::partner::certification::Certification;
use crate::partner::credentials::{OwnCredential, RotateRequest, RotatedCredential};
use crate::partner::events::EventFilter;
use crate::partner::me::Me;
use crate::partner::operation::{Operation, delete, get, post};
use crate::partner::orders::body::OrderBody;
use crate::partner::orders::cancel::CancelRequest;
use crate::partner::orders::request::OrderRequest;
use crate::partner::payouts::body::PayoutBody;
use crate::partner::payouts::request::PayoutRequest;
use crate::partner::products::{ProductBody, ProductFilter};
use crate::partner::voucher_access::VoucherAccess;
use crate::partner::vouchers::VoucherCodesBody;
use crate::partner::webhooks::body::WebhookBody;
use crate::partner::webhooks::replay::WebhookReplay;
use crate::partner::webhooks::request::{
    PutWebhookBody, ReplayEventsBody, WebhookRotateRequest, WebhookTestRequest,
};
use crate::partner::webhooks::test::WebhookTestBody;

operations! {
    ApiScope;
    PLACE_ORDER: Operation<OrderRequest, OrderBody<'static>> =
        post("/orders", ApiScope::Orders, "placeOrder", "Place an order")
            .stored_errors(&[Code::InsufficientFunds, Code::InsufficientInventory])
            .errors(&[
                Code::ProductNotFound,
                Code::ProductUnavailable,
                Code::DenominationNotAllowed,
                Code::CurrencyMismatch,
                Code::StockQuarantined,
                Code::PendingOrdersLimitReached,
                Code::PendingAmountLimitReached,
                Code::SpendLimitReached,
            ]);
    LIST_ORDERS: Operation<OrderFilter, Page<OrderBody<'static>>> = get("/orders", ApiScope::Read, "listOrders", "List orders");
    LIST_WALLETS: Operation<WholeList, Page<Wallet>> = get("/wallets", ApiScope::Read, "listWallets", "List wallets");
    LIST_EVENTS: Operation<EventFilter, Page<Event>> =
        get("/events", ApiScope::Read, "listEvents", "List events").errors(&[Code::EventNotFound]);
    LIST_TRANSACTIONS: Operation<TransactionFilter, Page<Transaction>> =
        get("/transactions", ApiScope::Read, "listTransactions", "List transactions");
    LIST_PRODUCTS: Operation<ProductFilter, Page<ProductBody<'static>>> =
        get("/products", ApiScope::Read, "listProducts", "List products");
    LIST_CATEGORIES: Operation<WholeList, Page<CategoryBody>> =
        get("/categories", ApiScope::Read, "listCategories", "List categories");
    LIST_PAYOUTS: Operation<PayoutFilter, Page<PayoutBody<'static>>> =
        get("/payouts", ApiScope::Read, "listPayouts", "List payouts");
    REQUEST_PAYOUT: Operation<PayoutRequest, PayoutBody<'static>> =
        post("/payouts", ApiScope::Payouts, "requestPayout", "Request a payout").stored_errors(&[Code::InsufficientFunds]);
    LIST_WEBHOOKS: Operation<NoFilter, Page<WebhookBody<'static>>> =
        get("/webhooks", ApiScope::Read, "listWebhooks", "List webhook endpoints");
    PUT_WEBHOOK: Operation<PutWebhookBody, WebhookBody<'static>> =
        post("/webhooks", ApiScope::Webhooks, "putWebhook", "Register or update a webhook endpoint")
            .errors(&[Code::WebhookNotFound, Code::WebhookLimitReached]);
    GET_CERTIFICATION: Operation<(), Certification> =
        get("/certification", ApiScope::Read, "getCertification", "Get your certification").errors(&[Code::RouteNotFound]);
    GET_ME: Operation<(), Me> = get("/me", ApiScope::Read, "getMe", "Get your account and credential");
    LIST_CREDENTIALS: Operation<NoFilter, Page<OwnCredential>> =
        get("/credentials", ApiScope::Read, "listCredentials", "List your credentials");
    ROTATE_CREDENTIAL: Operation<RotateRequest, RotatedCredential<'static>> =
        post("/credentials/rotate", ApiScope::Credentials, "rotateCredential", "Rotate your credential")
            .errors(&[Code::CredentialLimitReached]);
    GET_ORDER: Operation<(), OrderBody<'static>> = get("/orders/{order_id}", ApiScope::Read, "getOrder", "Get an order");
    GET_VOUCHER_CODES: Operation<(), VoucherCodesBody<'static>> =
        get("/orders/{order_id}/vouchers", ApiScope::Codes, "getVoucherCodes", "Retrieve the codes of an order")
            .errors(&[Code::OrderNotReady, Code::OrderClosed]);
    LIST_VOUCHER_ACCESS: Operation<NoFilter, Page<VoucherAccess>> =
        get("/orders/{order_id}/vouchers/access", ApiScope::Read, "listVoucherAccess", "List the reads of an order's codes");
    CANCEL_ORDER: Operation<CancelRequest, OrderBody<'static>> =
        post("/orders/{order_id}/cancel", ApiScope::Orders, "cancelOrder", "Cancel an order")
            .errors(&[Code::OrderNotCancellable, Code::CancellationLimitReached]);
    GET_PRODUCT: Operation<(), ProductBody<'static>> = get("/products/{product_id}", ApiScope::Read, "getProduct", "Get a product");
    GET_PAYOUT: Operation<(), PayoutBody<'static>> = get("/payouts/{payout_id}", ApiScope::Read, "getPayout", "Get a payout");
    GET_TRANSACTION: Operation<(), Transaction> =
        get("/transactions/{transaction_id}", ApiScope::Read, "getTransaction", "Get a transaction");
    GET_EVENT: Operation<(), Event> = get("/events/{event_id}", ApiScope::Read, "getEvent", "Get an event");
    GET_WEBHOOK: Operation<(), WebhookBody<'static>> =
        get("/webhooks/{webhook_id}", ApiScope::Read, "getWebhook", "Get a webhook endpoint");
    CANCEL_PAYOUT: Operation<CancelRequest, PayoutBody<'static>> =
        post("/payouts/{payout_id}/cancel", ApiScope::Payouts, "cancelPayout", "Cancel a payout").errors(&[Code::PayoutNotCancellable]);
    LIST_WEBHOOK_DELIVERIES: Operation<AttemptFilter, Page<LoggedAttempt>> =
        get("/webhooks/{webhook_id}/deliveries", ApiScope::Read, "listWebhookDeliveries", "List delivery attempts");
    DELETE_WEBHOOK: Operation<(), ()> =
        delete("/webhooks/{webhook_id}", ApiScope::Webhooks, "deleteWebhook", "Delete a webhook endpoint");
    ROTATE_WEBHOOK: Operation<WebhookRotateRequest, WebhookBody<'static>> =
        post("/webhooks/{webhook_id}/rotate", ApiScope::Webhooks, "rotateWebhook", "Rotate a webhook secret");
    TEST_WEBHOOK: Operation<WebhookTestRequest, WebhookTestBody> =
        post("/webhooks/{webhook_id}/test", ApiScope::Webhooks, "testWebhook", "Send a test event");
    RETRY_WEBHOOK: Operation<(), WebhookBody<'static>> =
        post("/webhooks/{webhook_id}/retry", ApiScope::Webhooks, "retryWebhook", "Retry waiting deliveries");
    REPLAY_WEBHOOK: Operation<ReplayEventsBody, WebhookReplay> =
        post("/webhooks/{webhook_id}/replay", ApiScope::Webhooks, "replayWebhook", "Replay events").errors(&[Code::EventNotFound]);
}
