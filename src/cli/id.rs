//! Is an id one of what was asked for? A slip is told before anything is sent, with what to list.
//!
//! Rule: only what is certain is refused here, an id of another kind or a broken one. What else there is not, the
//! service says.

use std::str::FromStr;

use vouchsafe_actors::domain::ids::{
    CredentialId, DeliveryId, DriftId, EventId, OrderId, PartnerId, PayoutId, TransactionId, VoucherId,
    WebhookId,
};

/// What ids begin with, and what they then name.
const KINDS: [(&str, &str); 10] = [
    (PartnerId::PREFIX, "a partner"),
    (CredentialId::PREFIX, "a credential"),
    (OrderId::PREFIX, "an order"),
    (VoucherId::PREFIX, "a voucher"),
    (TransactionId::PREFIX, "a transaction"),
    (PayoutId::PREFIX, "a payout"),
    (DriftId::PREFIX, "a drift"),
    (EventId::PREFIX, "an event"),
    (WebhookId::PREFIX, "a webhook endpoint"),
    (DeliveryId::PREFIX, "a delivery"),
];

/// Where partners are found.
pub(super) const PARTNERS: &str = "`vouchsafe partner list` shows every partner with its id";

/// Where credentials are found.
pub(super) const CREDENTIALS: &str = "`vouchsafe credential list PARTNER_ID` shows those of a partner";

/// Where orders are found.
pub(super) const ORDERS: &str = "`vouchsafe order list` shows the latest orders, and searches them";

/// Where payouts are found.
pub(super) const PAYOUTS: &str = "`vouchsafe payout list` shows the latest payouts, and searches them";

/// Where drifts are found.
pub(super) const DRIFTS: &str = "`vouchsafe drift list` shows the latest drifts, and searches them";
/// Where endpoints are found.
pub(super) const WEBHOOKS: &str = "`vouchsafe webhook list` shows the latest endpoints, and searches them";

/// Where deliveries are found.
pub(super) const DELIVERIES: &str =
    "`vouchsafe webhook deliveries` shows what failed or waits, and searches it";

/// A partner's id.
pub(super) fn partner(text: &str) -> Result<String, String> {
    checked::<PartnerId>(text, PartnerId::PREFIX, PARTNERS)
}

/// A credential's id.
pub(super) fn credential(text: &str) -> Result<String, String> {
    checked::<CredentialId>(text, CredentialId::PREFIX, CREDENTIALS)
}

/// An order's id.
pub(super) fn order(text: &str) -> Result<String, String> {
    checked::<OrderId>(text, OrderId::PREFIX, ORDERS)
}

/// A payout's id.
pub(super) fn payout(text: &str) -> Result<String, String> {
    checked::<PayoutId>(text, PayoutId::PREFIX, PAYOUTS)
}

/// A drift's id.
pub(super) fn drift(text: &str) -> Result<String, String> {
    checked::<DriftId>(text, DriftId::PREFIX, DRIFTS)
}

/// An endpoint's id.
pub(super) fn webhook(text: &str) -> Result<String, String> {
    checked::<WebhookId>(text, WebhookId::PREFIX, WEBHOOKS)
}

/// A delivery's id.
pub(super) fn delivery(text: &str) -> Result<String, String> {
    checked::<DeliveryId>(text, DeliveryId::PREFIX, DELIVERIES)
}

fn checked<Id: FromStr>(text: &str, prefix: &str, look: &str) -> Result<String, String>
where
    Id::Err: ToString,
{
    match KINDS.iter().find(|(begin, _)| text.starts_with(begin)) {
        Some((begin, kind)) if *begin != prefix => Err(format!("this is the id of {kind}; {look}")),
        Some(_) => match text.parse::<Id>() {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(format!("{}; {look}", error.to_string())),
        },
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_with_what_to_list() {
        let id = PartnerId::generate().to_string();
        let cut = &id[..id.len() - 1];
        assert_eq!(partner(&id).as_ref(), Ok(&id));
        assert_eq!(partner("nobody"), Ok("nobody".to_owned()));
        for (refused, expected) in [
            (order(&id), "this is the id of a partner; `vouchsafe order list`"),
            (
                partner("ord_0"),
                "this is the id of an order; `vouchsafe partner list`",
            ),
            (
                partner(cut),
                "expected ptn_ followed by 32 lower-case hex digits; `vouchsafe partner list`",
            ),
            (
                credential("cred_x"),
                "expected cred_ followed by 32 lower-case hex digits; `vouchsafe credential list",
            ),
        ] {
            let said = refused.unwrap_err();
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
