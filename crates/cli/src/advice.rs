//! Hints for failed commands: the command that helps, by error code or field.

use vouchsafe_wire::error_code::Code;

use super::id::{
    BULK_JOBS, CHANGE_REQUESTS, CREDENTIALS, DELIVERIES, DRIFTS, OPERATOR_SESSIONS, OPERATOR_TOKENS,
    OPERATORS, ORDERS, PARTNERS, PAYOUTS, WEBHOOKS,
};

const PRODUCTS: &str = "`vouchsafe product list` lists all products";

const CATEGORIES: &str = "`vouchsafe category list` lists all categories";

const VENDORS: &str = "`vouchsafe vendor list` lists all vendors with their adapters";

const ORDER: &str = "`vouchsafe order show ORDER_ID` shows its status and timeline";

const REQUEST: &str = "`vouchsafe request show REQUEST_ID` shows its status and who decides";

const ADVICE_BY_CODE: [(Code, &str); 28] = [
    (Code::PartnerNotFound, PARTNERS),
    (Code::CredentialNotFound, CREDENTIALS),
    (Code::OrderNotFound, ORDERS),
    (Code::PayoutNotFound, PAYOUTS),
    (Code::WebhookNotFound, WEBHOOKS),
    (Code::DeliveryNotFound, DELIVERIES),
    (Code::ProductNotFound, PRODUCTS),
    (Code::VendorNotFound, VENDORS),
    (Code::DriftNotFound, DRIFTS),
    (Code::OperatorNotFound, OPERATORS),
    (Code::OperatorExists, OPERATORS),
    (Code::OperatorTokenNotFound, OPERATOR_TOKENS),
    (Code::OperatorSessionNotFound, OPERATOR_SESSIONS),
    (Code::OperatorDisabled, OPERATORS),
    (
        Code::OwnAccount,
        "`vouchsafe operator create NAME --admin` makes another admin in the database",
    ),
    (Code::BulkJobNotFound, BULK_JOBS),
    (Code::ChangeRequestNotFound, CHANGE_REQUESTS),
    (Code::ChangeRequestNotWaiting, REQUEST),
    (Code::OwnChangeRequest, REQUEST),
    (
        Code::ReconciliationNotFound,
        "`vouchsafe reconciliation run DATE` compares the day; `vouchsafe reconciliation upload` uploads records",
    ),
    (Code::OrderNotAwaitingApproval, ORDER),
    (Code::OrderNotCancellable, ORDER),
    (
        Code::PayoutNotPending,
        "`vouchsafe payout show PAYOUT_ID` shows its status",
    ),
    (
        Code::DenominationNotAllowed,
        "`vouchsafe product show PRODUCT_ID` shows its denominations",
    ),
    (
        Code::InvalidCredentials,
        "set the operator token with VOUCHSAFE_OPERATOR_TOKEN_FILE or VOUCHSAFE_OPERATOR_TOKEN; a sandbox stores it in its data \
         directory, see --data-dir",
    ),
    (
        Code::InvalidCursor,
        "repeat the options that \"Next page\" shows: an age such as 1h is another time in each command",
    ),
    (
        Code::CertificationRequired,
        "`vouchsafe partner set PARTNER_ID --certified-at TIME --agreement-signed-at TIME` records both",
    ),
    (
        Code::CredentialLimitReached,
        "`vouchsafe credential revoke CREDENTIAL_ID` revokes one; `vouchsafe credential list PARTNER_ID` lists them",
    ),
];

/// Fields that contain an ID.
const ADVICE_BY_FIELD: [(&str, &str); 4] = [
    ("vendor", VENDORS),
    ("category_id", CATEGORIES),
    ("parent_id", CATEGORIES),
    ("partner_id", PARTNERS),
];

/// The hint for an error code, or for one of the invalid fields.
pub(super) fn find_advice<'a>(code: &str, mut fields: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let by_code = ADVICE_BY_CODE.iter().find(|(known, _)| known.as_str() == code);
    by_code.map(|(_, advice)| *advice).or_else(|| {
        let by_field = fields.find_map(|field| ADVICE_BY_FIELD.iter().find(|(known, _)| *known == field));
        by_field.map(|(_, advice)| *advice)
    })
}
