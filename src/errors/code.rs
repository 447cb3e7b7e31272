//! Which errors are there? The one table: code, status, whether a repetition may succeed, and what to do.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal $word:literal $retryable:literal $advice:literal;)+) => {
        /// Every error that can be answered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// All of them, in the order of the reference page.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code on the wire.
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

            /// What it means, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// What to do about it, in sentences of Markdown.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }
        }
    };
}

codes! {
    /// What came is no JSON, or no request.
    MalformedRequest = 400 "MALFORMED_REQUEST" false
        "Send a JSON object in UTF-8 whose first byte is `{`, nested at most 32 deep. The message says where reading ended.";
    /// The endpoint needs an Idempotency-Key of 1 to 255 visible ASCII characters, once.
    MissingIdempotencyKey = 400 "MISSING_IDEMPOTENCY_KEY" false
        "Make a key for each order, such as a UUID, keep it with the order, and send it in one `Idempotency-Key` header.";
    /// The cursor is not one of this list with these filters.
    InvalidCursor = 400 "INVALID_CURSOR" false
        "Begin again without `cursor`, or repeat the filters that the cursor was given with.";
    /// A signed request carries no query string.
    UnexpectedQuery = 400 "UNEXPECTED_QUERY" false
        "Leave the query string away: the signature would not cover it.";
    /// Key and secret do not belong together, or to nobody.
    InvalidCredentials = 401 "INVALID_CREDENTIALS" false
        "Send `X-API-Key` and `X-API-Secret`, each once, of one credential of this environment. A revoked or expired one is answered the same.";
    /// The signature is not that of the request.
    InvalidSignature = 401 "INVALID_SIGNATURE" false
        "Compare your signer with the test vectors in [Signing](signing.md). Sign the bytes that you send, and send `X-Signature` once.";
    /// The timestamp is missing, not the signed one, or too far from now.
    TimestampOutOfRange = 401 "TIMESTAMP_OUT_OF_RANGE" false
        "Send the Unix time in seconds, ten digits, the same text in `X-Timestamp` and in `t=`, and set your clock: 300 seconds either way are allowed.";
    /// The wallet holds less than the request costs.
    InsufficientFunds = 402 "INSUFFICIENT_FUNDS" false
        "Order less, or have the wallet topped up and order again with a new key: this answer is kept under its key.";
    /// The address is not on the allowlist.
    IpNotAllowed = 403 "IP_NOT_ALLOWED" false
        "Call from an address on your allowlist, or have the address that the message names added to it.";
    /// The partner is suspended.
    PartnerSuspended = 403 "PARTNER_SUSPENDED" false
        "Contact the operator. Nothing is executed until the suspension is lifted.";
    /// The operator's role does not allow it.
    Forbidden = 403 "FORBIDDEN" false
        "Operators only: use the token of an operator whose role allows it.";
    /// There is no such product for this partner.
    ProductNotFound = 404 "PRODUCT_NOT_FOUND" false
        "`GET /products` lists what you may order.";
    /// This partner has no such order.
    OrderNotFound = 404 "ORDER_NOT_FOUND" false
        "Check the id. Another partner's order is answered the same.";
    /// This partner has no such webhook endpoint.
    WebhookNotFound = 404 "WEBHOOK_NOT_FOUND" false
        "Check the id; `GET /webhooks` lists yours. Another partner's endpoint is answered the same.";
    /// This partner has no such event.
    EventNotFound = 404 "EVENT_NOT_FOUND" false
        "Check the id. An event is in your feed for 30 days; begin without `after` to read from the oldest.";
    /// This partner has no such payout.
    PayoutNotFound = 404 "PAYOUT_NOT_FOUND" false
        "Check the id; `GET /payouts` lists yours.";
    /// There is no such partner.
    PartnerNotFound = 404 "PARTNER_NOT_FOUND" false
        "Operators only: check the id.";
    /// There is no such credential.
    CredentialNotFound = 404 "CREDENTIAL_NOT_FOUND" false
        "Operators only: check the id.";
    /// There is no such purchase.
    PurchaseNotFound = 404 "PURCHASE_NOT_FOUND" false
        "Operators only: check the id; `GET /purchases` lists them.";
    /// There is no such category.
    CategoryNotFound = 404 "CATEGORY_NOT_FOUND" false
        "Reserved for operators: no route answers it yet.";
    /// Nothing of the day was reconciled yet.
    ReconciliationNotFound = 404 "RECONCILIATION_NOT_FOUND" false
        "Ask for a day that is over; it is reconciled some hours after its midnight in UTC.";
    /// There is no such drift.
    DriftNotFound = 404 "DRIFT_NOT_FOUND" false
        "Operators only: look at the drifts of its day; a drift whose sides have changed since has another id.";
    /// There is no such route.
    RouteNotFound = 404 "ROUTE_NOT_FOUND" false
        "Check the path and its prefix `/api/v1`; no path ends with a slash.";
    /// The route has no such method.
    MethodNotAllowed = 405 "METHOD_NOT_ALLOWED" false
        "Use a method that the `Allow` header names.";
    /// There are fewer vouchers than were asked for.
    InsufficientInventory = 409 "INSUFFICIENT_INVENTORY" false
        "Order less or another product, with a new key: this answer is kept under its key. The message names the product.";
    /// Nothing of the order is allocated yet.
    OrderNotReady = 409 "ORDER_NOT_READY" true
        "Ask again once `GET /orders/{order_id}` shows vouchers.";
    /// The order can no longer be cancelled.
    OrderNotCancellable = 409 "ORDER_NOT_CANCELLABLE" false
        "Read the message: it says what stands in the way. An order whose codes were retrieved is yours to keep.";
    /// The order does not wait for an operator's approval.
    OrderNotAwaitingApproval = 409 "ORDER_NOT_AWAITING_APPROVAL" false
        "Operators only: look at the order; it was decided before, or never waited. It may still be cancelled.";
    /// The order waits for nothing that is bought for it.
    OrderNotFulfillable = 409 "ORDER_NOT_FULFILLABLE" false
        "Operators only: look at the order. It waits for approval, or is over; what was brought in before is delivered.";
    /// Another comparison with the vendor is under way.
    ReconciliationInProgress = 409 "RECONCILIATION_IN_PROGRESS" true
        "Operators only: wait until it has ended, then send the file again.";
    /// The payout was decided before.
    PayoutNotPending = 409 "PAYOUT_NOT_PENDING" false
        "Operators only: look at the payout. What was decided stays as it is.";
    /// The product is no longer sold.
    ProductUnavailable = 409 "PRODUCT_UNAVAILABLE" false
        "Order another product; this one stays readable and is not sold again.";
    /// The first request with this key is still under way.
    IdempotencyInProgress = 409 "IDEMPOTENCY_IN_PROGRESS" true
        "Wait as long as `Retry-After` says, then send the same request with the same key.";
    /// Live credentials need a passed certification and a signed agreement.
    CertificationRequired = 409 "CERTIFICATION_REQUIRED" false
        "Operators only: put the partner's certification and agreement on record first.";
    /// The partner has as many live credentials as it may have; one has to end or be revoked first.
    CredentialLimitReached = 409 "CREDENTIAL_LIMIT_REACHED" false
        "Wait until an older credential ends, or have the operator revoke one.";
    /// The partner has as many webhook endpoints as it may have.
    WebhookLimitReached = 409 "WEBHOOK_LIMIT_REACHED" false
        "Delete an endpoint that you no longer need; `GET /webhooks` lists them.";
    /// There is no such delivery.
    DeliveryNotFound = 404 "DELIVERY_NOT_FOUND" false
        "Operators only: check the id. What was delivered at once has no delivery of its own.";
    /// The body is too large.
    PayloadTooLarge = 413 "PAYLOAD_TOO_LARGE" false
        "Send at most 262,144 bytes: split the order.";
    /// The body is compressed, or not of the type the route takes.
    UnsupportedMediaType = 415 "UNSUPPORTED_MEDIA_TYPE" false
        "Send `Content-Type: application/json` and no `Content-Encoding`.";
    /// The body did not arrive in time.
    RequestTimeout = 408 "REQUEST_TIMEOUT" true
        "Send the same request with the same key, the whole body within 10 seconds.";
    /// A field is unknown, missing, repeated, of the wrong type or out of range.
    ValidationFailed = 422 "VALIDATION_FAILED" false
        "Correct what `details` lists: each entry has the `field` and what was expected there.";
    /// The product is not sold at this denomination.
    DenominationNotAllowed = 422 "DENOMINATION_NOT_ALLOWED" false
        "`GET /products/{product_id}` lists the denominations, and the range with its step.";
    /// The items of an order do not share one currency.
    CurrencyMismatch = 422 "CURRENCY_MISMATCH" false
        "Make an order for each currency.";
    /// The key was used with another request.
    IdempotencyKeyReused = 422 "IDEMPOTENCY_KEY_REUSED" false
        "Use a new key for a new request. For a retry, send the very bytes of the first one.";
    /// The quota of the request's class is used up, or too many requests from its address have failed to authenticate.
    RateLimitExceeded = 429 "RATE_LIMIT_EXCEEDED" true
        "Wait as long as `Retry-After` says. Nothing was executed and no key was used up.";
    /// A fault of the service.
    InternalError = 500 "INTERNAL_ERROR" true
        "Send the same request with the same key. If it stays, give the operator the `trace_id`.";
    /// The service cannot do it now.
    ServiceUnavailable = 503 "SERVICE_UNAVAILABLE" true
        "Wait as long as `Retry-After` says, then send the same request with the same key.";
}
