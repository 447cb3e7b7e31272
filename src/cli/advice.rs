//! What does somebody do next whose command was refused? The service says what is wrong, this which command helps.

use super::id::{CREDENTIALS, DELIVERIES, DRIFTS, ORDERS, PARTNERS, PAYOUTS, WEBHOOKS};
use crate::errors::Code;

const PRODUCTS: &str = "`vouchsafe product list` shows every product with its id";

const CATEGORIES: &str = "`vouchsafe category list` shows every category with its id";

const VENDORS: &str = "`vouchsafe vendor list` shows every vendor, and how it is spoken to";

const ORDER: &str = "`vouchsafe order show ORDER_ID` shows where it stands, and how it came there";

const BY_CODE: [(Code, &str); 16] = [
    (Code::PartnerNotFound, PARTNERS),
    (Code::CredentialNotFound, CREDENTIALS),
    (Code::OrderNotFound, ORDERS),
    (Code::PayoutNotFound, PAYOUTS),
    (Code::WebhookNotFound, WEBHOOKS),
    (Code::DeliveryNotFound, DELIVERIES),
    (Code::ProductNotFound, PRODUCTS),
    (Code::DriftNotFound, DRIFTS),
    (
        Code::ReconciliationNotFound,
        "`vouchsafe reconciliation run DATE` has it done now; `vouchsafe reconciliation upload` brings books as a file",
    ),
    (Code::OrderNotAwaitingApproval, ORDER),
    (Code::OrderNotCancellable, ORDER),
    (
        Code::PayoutNotPending,
        "`vouchsafe payout show PAYOUT_ID` shows where it stands",
    ),
    (
        Code::DenominationNotAllowed,
        "`vouchsafe product show PRODUCT_ID` shows its denominations",
    ),
    (
        Code::InvalidCredentials,
        "name the token of this service with --operator-token or VOUCHSAFE_OPERATOR_TOKEN; a sandbox keeps it in its \
         data directory, see --data-dir",
    ),
    (
        Code::CertificationRequired,
        "`vouchsafe partner set PARTNER_ID --certified-at TIME --agreement-signed-at TIME` puts both on record",
    ),
    (
        Code::CredentialLimitReached,
        "`vouchsafe credential revoke CREDENTIAL_ID` ends one; `vouchsafe credential list PARTNER_ID` shows them",
    ),
];

/// Fields that hold an id of something.
const BY_FIELD: [(&str, &str); 4] = [
    ("vendor", VENDORS),
    ("category_id", CATEGORIES),
    ("parent_id", CATEGORIES),
    ("partner_id", PARTNERS),
];

/// What helps an operator against this code, about these fields.
pub(super) fn advice<'a>(code: &str, mut fields: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let of_code = BY_CODE.iter().find(|(known, _)| known.as_str() == code);
    of_code.map(|(_, advice)| *advice).or_else(|| {
        let of_field = fields.find_map(|field| BY_FIELD.iter().find(|(known, _)| *known == field));
        of_field.map(|(_, advice)| *advice)
    })
}
