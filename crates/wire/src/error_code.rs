//! Error code table: HTTP status, whether a retry may succeed, meaning, and advice.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal $word:literal $retryable:literal $advice:literal;)+) => {
        /// Every error code of the API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// All codes, in the order of the reference page.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code on the wire, in SCREAMING_SNAKE_CASE.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Whether the same request with the same key may succeed.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retryable,)+ }
            }

            /// The name on the wire: the code in PascalCase.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// What the error means, in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// What the client should do, in Markdown.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }
        }
    };
}

/// A person ends the quarantine of stock.
const QUARANTINE_RETRY_S: u32 = 60;

/// Pending orders are delivered within minutes or hours. Daily caps have the time until their day ends
/// instead.
const CAP_RETRY_S: u32 = 60;

/// The advice of codes that only the operator API returns begins with this.
pub(crate) const OPERATORS_ONLY: &str = "Operators only: ";

impl Code {
    /// Whether only the operator API returns it.
    #[must_use]
    pub fn is_for_operators_only(self) -> bool {
        self.advice().starts_with(OPERATORS_ONLY)
    }

    /// The value of `Retry-After`, in seconds, of codes that have a usual one.
    #[must_use]
    pub const fn retry_after_s(self) -> Option<u32> {
        match self {
            Self::ServiceUnavailable | Self::IdempotencyInProgress | Self::TooManyRequestsInFlight => Some(1),
            Self::StockQuarantined => Some(QUARANTINE_RETRY_S),
            Self::PendingOrdersLimitReached
            | Self::PendingAmountLimitReached
            | Self::CancellationLimitReached
            | Self::SpendLimitReached => Some(CAP_RETRY_S),
            _ => None,
        }
    }
}

codes! {
    /// The request or its JSON body is malformed.
    MalformedRequest = 400 "MALFORMED_REQUEST" false
        "Send a JSON object in UTF-8 that begins with `{` and is nested at most 32 levels deep. The \
         message says where parsing failed.";
    /// The `Idempotency-Key` header is missing.
    MissingIdempotencyKey = 400 "MISSING_IDEMPOTENCY_KEY" false
        "Send exactly one `Idempotency-Key` header of 1 to 255 visible ASCII characters. Create one key \
         per order or payout, for example a UUID, and store it so that you can retry with it.";
    /// The `Idempotency-Key` header is repeated, too long, or has characters other than visible ASCII.
    InvalidIdempotencyKey = 400 "INVALID_IDEMPOTENCY_KEY" false
        "Send exactly one `Idempotency-Key` header of 1 to 255 visible ASCII characters, for example a \
         UUID. Spaces and line breaks are not allowed.";
    /// The cursor is malformed, or belongs to another list or other filters.
    InvalidCursor = 400 "INVALID_CURSOR" false
        "Send the same filters that returned the cursor, or start again without `cursor`.";
    /// The signed request has a query string.
    UnexpectedQuery = 400 "UNEXPECTED_QUERY" false
        "Remove the query string; the signature does not cover it.";
    /// The API key or secret is missing, wrong, expired or revoked.
    InvalidCredentials = 401 "INVALID_CREDENTIALS" false
        "Send `X-API-Key` and `X-API-Secret`, each once, of one active credential of this environment.";
    /// The signature does not match the request.
    InvalidSignature = 401 "INVALID_SIGNATURE" false
        "Check your signing code with the test vectors in [Signing](signing.md). Sign the exact bytes that \
         you send, and send `X-Signature` once. In the sandbox, `details` has the length (`signed_bytes`) \
         and the SHA-256 (`signed_sha256`) of what the service expects to be signed.";
    /// The timestamp is missing, differs from the signed one, or is too far from the server's time.
    TimestampOutOfRange = 401 "TIMESTAMP_OUT_OF_RANGE" false
        "Send the Unix time in seconds (ten digits), with the same text in `X-Timestamp` and `t=`. \
         Synchronize your clock: the server accepts a difference of up to 300 seconds.";
    /// The wallet balance is lower than the amount of the request.
    InsufficientFunds = 402 "INSUFFICIENT_FUNDS" false
        "Reduce the amount or have the operator top up the wallet, then send the request with a new key. \
         Repeating the old key returns this stored response.";
    /// The client address is not on the partner's allowlist.
    IpNotAllowed = 403 "IP_NOT_ALLOWED" false
        "Call from an address on your allowlist, or ask the operator to add the address in the message.";
    /// The credential lacks the scope that the request requires.
    MissingScope = 403 "MISSING_SCOPE" false
        "Use a credential with the scope in `details`, or ask the operator to issue one. Each operation of \
         the API reference names its scope.";
    /// The partner account is suspended.
    PartnerSuspended = 403 "PARTNER_SUSPENDED" false
        "Contact the operator. Until the suspension is lifted, you can still read the codes of your orders \
         with `GET /orders/{order_id}/vouchers`, unless the operator has blocked that too; all other \
         requests fail.";
    /// The operator's role does not permit the request, or a change with a session does not come from a page
    /// of the console.
    Forbidden = 403 "FORBIDDEN" false
        "Operators only: use the token of an operator with a sufficient role, or open the console at its own URL.";
    /// The product does not exist, or is not available to the partner.
    ProductNotFound = 404 "PRODUCT_NOT_FOUND" false
        "`GET /products` lists the products that you can order.";
    /// The order does not exist, or belongs to another partner.
    OrderNotFound = 404 "ORDER_NOT_FOUND" false
        "Check the id.";
    /// The webhook endpoint does not exist, or belongs to another partner.
    WebhookNotFound = 404 "WEBHOOK_NOT_FOUND" false
        "Check the id; `GET /webhooks` lists your endpoints.";
    /// The event is not in the partner's feed.
    EventNotFound = 404 "EVENT_NOT_FOUND" false
        "Check the id. Events stay in the feed for 30 days; omit `after` to start with the oldest one.";
    /// The payout does not exist, or belongs to another partner.
    PayoutNotFound = 404 "PAYOUT_NOT_FOUND" false
        "Check the id; `GET /payouts` lists your payouts.";
    /// The transaction does not exist, or belongs to another partner.
    TransactionNotFound = 404 "TRANSACTION_NOT_FOUND" false
        "Check the id; `GET /transactions` lists your transactions.";
    /// The partner does not exist.
    PartnerNotFound = 404 "PARTNER_NOT_FOUND" false
        "Operators only: check the id.";
    /// The credential does not exist.
    CredentialNotFound = 404 "CREDENTIAL_NOT_FOUND" false
        "Operators only: check the id.";
    /// The operator does not exist.
    OperatorNotFound = 404 "OPERATOR_NOT_FOUND" false
        "Operators only: check the name; `GET /operators` lists all operators.";
    /// The operator's token does not exist.
    OperatorTokenNotFound = 404 "OPERATOR_TOKEN_NOT_FOUND" false
        "Operators only: check the id; `GET /operators/{name}/tokens` lists those of an operator.";
    /// The operator's session does not exist.
    OperatorSessionNotFound = 404 "OPERATOR_SESSION_NOT_FOUND" false
        "Operators only: check the id; `GET /sessions` lists sessions of the last 30 days.";
    /// The operator's account is disabled.
    OperatorDisabled = 409 "OPERATOR_DISABLED" false
        "Operators only: an admin enables the account with `PATCH /operators/{name}`.";
    /// There is an operator with this name.
    OperatorExists = 409 "OPERATOR_EXISTS" false
        "Operators only: choose another name, or change the existing operator with `PATCH /operators/{name}`.";
    /// An earlier confirmation of the request has issued the credential.
    CredentialIssuedBefore = 409 "CREDENTIAL_ISSUED_BEFORE" false
        "Operators only: the message names the credential. If the response with its secret was lost, \
         revoke it and request another one.";
    /// The change needs a recent authentication at the identity provider, and the session has none.
    StepUpRequired = 403 "STEP_UP_REQUIRED" false
        "Operators only: sign in at the identity provider again, with `/sign-in/oidc?step_up=true`, and send the request again.";
    /// The row of the partner or operator was changed without the service.
    InvalidRowHmac = 409 "INVALID_ROW_HMAC" false
        "Operators only: nothing of it is served until the owner of the database has restored the row, as \
         the runbook of `VouchsafeForgedGrant` describes.";
    /// The change would lower or disable the caller's own account.
    OwnAccount = 409 "OWN_ACCOUNT" false
        "Operators only: ask another admin; without one, `vouchsafe operator create NAME --admin` makes one in the database.";
    /// The bulk job does not exist.
    BulkJobNotFound = 404 "BULK_JOB_NOT_FOUND" false
        "Operators only: check the id; `GET /bulk-jobs` lists all jobs of a year.";
    /// The change request does not exist.
    ChangeRequestNotFound = 404 "CHANGE_REQUEST_NOT_FOUND" false
        "Operators only: check the id; `GET /requests` lists all requests.";
    /// The change request does not wait for a second operator.
    ChangeRequestNotWaiting = 409 "CHANGE_REQUEST_NOT_WAITING" false
        "Operators only: the message says who has decided on it. Request the change again if it is still needed.";
    /// The operator who confirms the change has requested it.
    OwnChangeRequest = 403 "OWN_CHANGE_REQUEST" false
        "Operators only: another operator with a sufficient role has to confirm it.";
    /// The credential has ended or was revoked.
    CredentialNotLive = 409 "CREDENTIAL_NOT_LIVE" false
        "Operators only: issue a new credential instead.";
    /// The purchase does not exist.
    PurchaseNotFound = 404 "PURCHASE_NOT_FOUND" false
        "Operators only: check the id; `GET /purchases` lists all purchases.";
    /// The vendor does not exist.
    VendorNotFound = 404 "VENDOR_NOT_FOUND" false
        "Operators only: check the id; `GET /vendors` lists all vendors.";
    /// The day is not reconciled yet.
    ReconciliationNotFound = 404 "RECONCILIATION_NOT_FOUND" false
        "Request a past day. A day is reconciled some hours after it ends (UTC).";
    /// The drift does not exist.
    DriftNotFound = 404 "DRIFT_NOT_FOUND" false
        "Operators only: list the drifts of the day. A drift gets a new id when either of its sides changes.";
    /// The route does not exist.
    RouteNotFound = 404 "ROUTE_NOT_FOUND" false
        "Check the path and its prefix `/api/v1`. Paths have no trailing slash.";
    /// The route does not support the method.
    MethodNotAllowed = 405 "METHOD_NOT_ALLOWED" false
        "Use one of the methods in the `Allow` response header.";
    /// Fewer vouchers are in stock than the order requests.
    InsufficientInventory = 409 "INSUFFICIENT_INVENTORY" false
        "Order less or another product, with a new key. Repeating the old key returns this stored \
         response. The message names the product, and `max_quantity` in `details` is a quantity that was \
         in stock, rounded down.";
    /// No voucher of the order is allocated yet.
    OrderNotReady = 409 "ORDER_NOT_READY" true
        "Retry once `GET /orders/{order_id}` shows vouchers.";
    /// The order is closed, and no voucher of it was or will be delivered.
    OrderClosed = 409 "ORDER_CLOSED" false
        "Do not retry. `status` and `refunded_amount` of `GET /orders/{order_id}` say what became of the \
         order, and `GET /transactions?order_id={order_id}` lists its refund.";
    /// The order cannot be cancelled any more.
    OrderNotCancellable = 409 "ORDER_NOT_CANCELLABLE" false
        "The message gives the reason. For example, an order cannot be cancelled after a code of it was retrieved.";
    /// The order is not waiting for approval.
    OrderNotAwaitingApproval = 409 "ORDER_NOT_AWAITING_APPROVAL" false
        "Returned to operators, and in the sandbox. Read the order: it was already decided, or needed no \
         approval. You may still be able to cancel it.";
    /// The order is not waiting for vouchers from a vendor.
    OrderNotFulfillable = 409 "ORDER_NOT_FULFILLABLE" false
        "Returned to operators, and in the sandbox. Read the order: it is waiting for approval, or is \
         final. Vouchers that were already added are delivered.";
    /// Another reconciliation with the vendor is in progress.
    ReconciliationInProgress = 409 "RECONCILIATION_IN_PROGRESS" true
        "Operators only: wait until it ends, then send the file again.";
    /// The order is open, or the payout is pending: its texts are still needed.
    NotClosed = 409 "NOT_CLOSED" false
        "Operators only: wait until the order is closed or the payout is decided, or end it.";
    /// The payout is decided, or an operator has begun to pay it.
    PayoutNotCancellable = 409 "PAYOUT_NOT_CANCELLABLE" false
        "Read the payout: its `status` says whether it is decided. While it is `PENDING`, ask the operator to reject it.";
    /// The payout is decided, or its partner is cancelling it.
    PayoutNotPending = 409 "PAYOUT_NOT_PENDING" false
        "Operators only: read the payout. The decision is final.";
    /// The product is discontinued.
    ProductUnavailable = 409 "PRODUCT_UNAVAILABLE" false
        "Order another product. This one is still listed but will not be sold again.";
    /// The first request with this key is still in progress.
    IdempotencyInProgress = 409 "IDEMPOTENCY_IN_PROGRESS" true
        "Wait for the seconds in `Retry-After`, then send the same request with the same key.";
    /// Live credentials require a passed certification and a signed agreement.
    CertificationRequired = 409 "CERTIFICATION_REQUIRED" false
        "Operators only: record the partner's certification and agreement first.";
    /// The limit of active credentials is reached.
    CredentialLimitReached = 409 "CREDENTIAL_LIMIT_REACHED" false
        "Wait until an older credential expires, or ask the operator to revoke one.";
    /// The limit of webhook endpoints is reached.
    WebhookLimitReached = 409 "WEBHOOK_LIMIT_REACHED" false
        "Delete an endpoint that you no longer need; `GET /webhooks` lists your endpoints.";
    /// The delivery does not exist.
    DeliveryNotFound = 404 "DELIVERY_NOT_FOUND" false
        "Operators only: check the id. Events that were delivered at the first attempt have no delivery record.";
    /// The actor does not run on this node.
    ActorNotFound = 404 "ACTOR_NOT_FOUND" false
        "Operators only: list the actors. One starts with the next request that needs it, and runs on the \
         node that handles the request.";
    /// The request body is too large.
    PayloadTooLarge = 413 "PAYLOAD_TOO_LARGE" false
        "Send at most 262,144 bytes; split the order.";
    /// The body is compressed, or its content type is not supported.
    UnsupportedMediaType = 415 "UNSUPPORTED_MEDIA_TYPE" false
        "Send `Content-Type: application/json` and no `Content-Encoding`.";
    /// The request body did not arrive in time.
    RequestTimeout = 408 "REQUEST_TIMEOUT" true
        "Send the same request with the same key; the whole body must arrive within 10 seconds.";
    /// A field or parameter is unknown, missing, repeated, of the wrong type or out of range.
    ValidationFailed = 422 "VALIDATION_FAILED" false
        "Correct the fields in `details`; each entry names the `field` and what is expected.";
    /// The product is not available in this denomination.
    DenominationNotAllowed = 422 "DENOMINATION_NOT_ALLOWED" false
        "`GET /products/{product_id}` lists the fixed denominations and the range with its step.";
    /// The items of the order have different currencies, or another one than the order's `currency`.
    CurrencyMismatch = 422 "CURRENCY_MISMATCH" false
        "Place a separate order for each currency.";
    /// The idempotency key was used with a different request.
    IdempotencyKeyReused = 422 "IDEMPOTENCY_KEY_REUSED" false
        "Use a new key for a new request. To retry, send the exact bytes of the first request.";
    /// The rate limit of the request's class is exceeded, or too many authentications from the client address
    /// failed.
    RateLimitExceeded = 429 "RATE_LIMIT_EXCEEDED" true
        "Wait for the seconds in `Retry-After`, then send the same request. Nothing was executed, and the \
         idempotency key is unused.";
    /// The order would be pending, and the partner has as many pending orders as it may have.
    PendingOrdersLimitReached = 429 "PENDING_ORDERS_LIMIT_REACHED" true
        "Wait until orders are delivered, or cancel some, then send the same request. Nothing was \
         executed, and the idempotency key is unused. The operator can raise the limit.";
    /// The order would be pending, and exceeds the amount that the partner may have in pending orders of this
    /// currency.
    PendingAmountLimitReached = 429 "PENDING_AMOUNT_LIMIT_REACHED" true
        "Wait until orders are delivered, cancel some, or order less. Nothing was executed, and the \
         idempotency key is unused. The message says how much is left. The operator can raise the limit.";
    /// The partner has cancelled as many orders of this day (UTC) as it may.
    CancellationLimitReached = 429 "CANCELLATION_LIMIT_REACHED" true
        "Cancel the order on the next day (UTC), unless its cancellation period ends earlier; then ask the \
         operator to cancel it or to raise the limit.";
    /// The order exceeds what the partner, or its credential, may spend on a day (UTC) in this currency.
    SpendLimitReached = 429 "SPEND_LIMIT_REACHED" true
        "Order less, or wait until the next day (UTC). Nothing was executed, and the idempotency key is \
         unused. The message says how much is left. Cancelled orders count, too. The operator can raise \
         the limit.";
    /// The API key, or the client address, has too many requests in flight. A request is in flight until its
    /// response has been read.
    TooManyRequestsInFlight = 429 "TOO_MANY_REQUESTS_IN_FLIGHT" true
        "Read the responses to your earlier requests, then send the same request. Nothing was executed, \
         and the idempotency key is unused. Limit the number of your concurrent requests.";
    /// An internal error of the service.
    InternalError = 500 "INTERNAL_ERROR" true
        "Send the same request with the same key. If the error persists, give the operator the `trace_id`.";
    /// The database did not confirm a change by an operator. It may have been made.
    OutcomeUnknown = 500 "OUTCOME_UNKNOWN" false
        "Operators only: look for the change in the audit log: a change and its entry are committed \
         together. Repeat the request if there is no entry; after a confirmation, look for the entry of \
         the confirmed change. Requests that name what they change (`PUT`, `PATCH`, `DELETE`, decisions, \
         imports, postings with their reference) can be repeated at once.";
    /// The vouchers of the order are held back until the operator has checked which of them are sold.
    StockQuarantined = 503 "STOCK_QUARANTINED" true
        "Wait for the seconds in `Retry-After`, then send the same request with the same key, or order \
         another product. Nothing was executed, and the idempotency key is unused. The operator ends the \
         check, which may take hours.";
    /// The service is temporarily unavailable.
    ServiceUnavailable = 503 "SERVICE_UNAVAILABLE" true
        "Wait for the seconds in `Retry-After`, then send the same request with the same key.";
}
