//! Keywords of the search: what readers call the subjects of sections.

/// Address of a section, and its keywords, of which one alone leads to it.
pub(super) const KEYWORDS: [(&str, &str); 9] = [
    (
        "/docs/orders#cancel-an-order",
        "refund, cancel, cancel order, refund order, money back, return voucher",
    ),
    (
        "/docs/webhooks#verify-deliveries",
        "webhook signature, signature webhook, verify signature, verify webhook, whsec",
    ),
    (
        "/docs/signing",
        "signature, sign request, hmac, authentication, invalid_signature",
    ),
    (
        "/docs/orders#voucher-codes",
        "code, gift card code, get code, pin",
    ),
    (
        "/docs/orders#follow-an-order",
        "polling, order status, wait order",
    ),
    (
        "/docs/idempotency",
        "retry, idempotency key, duplicate order, timeout",
    ),
    ("/docs/limits#request-rates", "rate limit, 429, too many request"),
    ("/docs/lists#pagination", "pagination, cursor, next page"),
    ("/docs/money#wallets", "balance, wallet, top up"),
];
