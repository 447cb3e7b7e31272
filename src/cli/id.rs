//! Validation of ID arguments before a request is sent.
//!
//! Rejects IDs of another kind and malformed IDs, with a hint which command lists the right ones. The service checks the rest.

use std::str::FromStr;

use vouchsafe_domain::ids::{
    CredentialId, DeliveryId, DriftId, EventId, OrderId, PartnerId, PayoutId, TransactionId, VoucherId,
    WebhookId,
};

/// ID prefixes and the kinds of their objects.
const ID_PREFIXES: [(&str, &str); 10] = [
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

pub(super) const PARTNERS: &str = "`vouchsafe partner list` lists all partners";

pub(super) const CREDENTIALS: &str = "`vouchsafe credential list PARTNER_ID` lists those of a partner";

pub(super) const ORDERS: &str = "`vouchsafe order list` lists and filters orders";

pub(super) const PAYOUTS: &str = "`vouchsafe payout list` lists and filters payouts";

pub(super) const DRIFTS: &str = "`vouchsafe drift list` lists and filters drifts";

pub(super) const WEBHOOKS: &str = "`vouchsafe webhook list` lists and filters endpoints";

pub(super) const DELIVERIES: &str = "`vouchsafe webhook deliveries` lists deliveries that failed or wait";

pub(super) fn partner(text: &str) -> Result<String, String> {
    check_id::<PartnerId>(text, PartnerId::PREFIX, PARTNERS)
}

pub(super) fn credential(text: &str) -> Result<String, String> {
    check_id::<CredentialId>(text, CredentialId::PREFIX, CREDENTIALS)
}

pub(super) fn order(text: &str) -> Result<String, String> {
    check_id::<OrderId>(text, OrderId::PREFIX, ORDERS)
}

pub(super) fn payout(text: &str) -> Result<String, String> {
    check_id::<PayoutId>(text, PayoutId::PREFIX, PAYOUTS)
}

pub(super) fn drift(text: &str) -> Result<String, String> {
    check_id::<DriftId>(text, DriftId::PREFIX, DRIFTS)
}

pub(super) fn webhook(text: &str) -> Result<String, String> {
    check_id::<WebhookId>(text, WebhookId::PREFIX, WEBHOOKS)
}

pub(super) fn delivery(text: &str) -> Result<String, String> {
    check_id::<DeliveryId>(text, DeliveryId::PREFIX, DELIVERIES)
}

fn check_id<Id: FromStr>(text: &str, prefix: &str, hint: &str) -> Result<String, String>
where
    Id::Err: ToString,
{
    match ID_PREFIXES.iter().find(|(begin, _)| text.starts_with(begin)) {
        Some((begin, kind)) if *begin != prefix => Err(format!("this is the ID of {kind}; {hint}")),
        Some(_) => match text.parse::<Id>() {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(format!("{}; {hint}", error.to_string())),
        },
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_other_kind_or_malformed_is_rejected_with_hint() {
        let id = PartnerId::generate().to_string();
        let cut = &id[..id.len() - 1];
        assert_eq!(partner(&id).as_ref(), Ok(&id));
        assert_eq!(partner("nobody"), Ok("nobody".to_owned()));
        for (result, expected) in [
            (order(&id), "this is the ID of a partner; `vouchsafe order list`"),
            (
                partner("ord_0"),
                "this is the ID of an order; `vouchsafe partner list`",
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
            let message = result.unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
