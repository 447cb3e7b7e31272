//! ID arguments: their validation before a request is sent, and their placeholders in paths.
//!
//! Rejects IDs of another kind and malformed IDs, with a hint which command lists the right ones. The service
//! checks the rest.

use std::error::Error;
use std::str::FromStr;

use clap::{Arg, Args, Command};
use vouchsafe_domain::ids::{
    AttemptId, BulkJobId, ChangeRequestId, CredentialId, DeliveryId, DriftId, EventId, OperatorSessionId,
    OperatorTokenId, OrderId, PartnerId, PayoutId, TransactionId, VoucherId, WebhookId,
};
use vouchsafe_wire::operator::operation::Operation;

use super::target::Target;

/// ID prefixes and the kinds of their objects.
const ID_PREFIXES: [(&str, &str); 15] = [
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
    (AttemptId::PREFIX, "a delivery attempt"),
    (OperatorTokenId::PREFIX, "an operator's token"),
    (OperatorSessionId::PREFIX, "an operator's session"),
    (ChangeRequestId::PREFIX, "a change request"),
    (BulkJobId::PREFIX, "a bulk job"),
];

pub(super) const PARTNERS: &str = "`vouchsafe partner list` lists all partners";

pub(super) const CREDENTIALS: &str = "`vouchsafe credential list PARTNER_ID` lists those of a partner";

pub(super) const OPERATOR_TOKENS: &str = "`vouchsafe operator token list NAME` lists those of an operator";

pub(super) const OPERATOR_SESSIONS: &str = "`vouchsafe operator sessions NAME` lists those of an operator";

pub(super) const CHANGE_REQUESTS: &str = "`vouchsafe request list` lists all requests";

pub(super) const BULK_JOBS: &str = "`vouchsafe bulk list` lists all jobs";

pub(super) const OPERATORS: &str = "`vouchsafe operator list` lists all operators";

pub(super) const ORDERS: &str = "`vouchsafe order list` lists and filters orders";

pub(super) const PAYOUTS: &str = "`vouchsafe payout list` lists and filters payouts";

pub(super) const DRIFTS: &str = "`vouchsafe drift list` lists and filters drifts";

pub(super) const WEBHOOKS: &str = "`vouchsafe webhook list` lists and filters endpoints";

pub(super) const DELIVERIES: &str = "`vouchsafe webhook deliveries` lists deliveries that failed or wait";

/// The argument of a command that names an object.
pub trait ObjectRef: Args {
    /// Placeholder of the object in paths, and its value.
    fn parameter(&self) -> (&'static str, &str);

    /// The request of an operation on the object.
    fn at<Q, R>(&self, operation: Operation<Q, R>) -> Target<Q, R> {
        let (name, value) = self.parameter();
        Target::from(operation).with(name, value)
    }
}

macro_rules! objects {
    ($($(#[$doc:meta])* $visibility:vis $name:ident { $id:ident };)+) => {$(
        #[derive(Debug, Args)]
        $visibility struct $name {
            $(#[$doc])*
            pub(super) $id: String,
        }

        impl ObjectRef for $name {
            fn parameter(&self) -> (&'static str, &str) {
                (stringify!($id), &self.$id)
            }
        }
    )+};
}

objects! {
    /// Partner ID.
    pub PartnerRef { partner_id };
    /// Credential ID.
    pub CredentialRef { credential_id };
    /// Category ID.
    pub CategoryRef { category_id };
    /// Product ID.
    pub ProductRef { product_id };
    /// Vendor ID.
    pub VendorRef { vendor_id };
    /// Name of the operator.
    pub OperatorRef { name };
    /// Token ID.
    pub OperatorTokenRef { token_id };
    /// Session ID.
    pub OperatorSessionRef { session_id };
    /// Request ID.
    pub ChangeRequestRef { request_id };
    /// Job ID.
    pub BulkJobRef { job_id };
    /// Order ID.
    pub OrderRef { order_id };
    /// Purchase ID.
    pub PurchaseRef { purchase_id };
    /// Payout ID.
    pub PayoutRef { payout_id };
    /// Day in UTC.
    pub DayRef { date };
    /// Drift ID.
    pub DriftRef { drift_id };
    /// Webhook ID.
    pub WebhookRef { webhook_id };
    /// Delivery ID.
    pub DeliveryRef { delivery_id };
}

/// Adds the validation to all ID arguments, which have the ID as value name.
#[must_use]
pub fn with_validation(command: Command) -> Command {
    command.mut_args(validate).mut_subcommands(with_validation)
}

fn validate(argument: Arg) -> Arg {
    let name = argument
        .get_value_names()
        .and_then(|names| Some(names.first()?.to_string()));
    let name = name.unwrap_or_else(|| argument.get_id().as_str().to_uppercase());
    match name.as_str() {
        "PARTNER_ID" => with_parser::<PartnerId>(argument, PartnerId::PREFIX, PARTNERS),
        "CREDENTIAL_ID" => with_parser::<CredentialId>(argument, CredentialId::PREFIX, CREDENTIALS),
        "ORDER_ID" => with_parser::<OrderId>(argument, OrderId::PREFIX, ORDERS),
        "TOKEN_ID" => with_parser::<OperatorTokenId>(argument, OperatorTokenId::PREFIX, OPERATOR_TOKENS),
        "SESSION_ID" => {
            with_parser::<OperatorSessionId>(argument, OperatorSessionId::PREFIX, OPERATOR_SESSIONS)
        }
        "JOB_ID" => with_parser::<BulkJobId>(argument, BulkJobId::PREFIX, BULK_JOBS),
        "REQUEST_ID" => with_parser::<ChangeRequestId>(argument, ChangeRequestId::PREFIX, CHANGE_REQUESTS),
        "PAYOUT_ID" => with_parser::<PayoutId>(argument, PayoutId::PREFIX, PAYOUTS),
        "DRIFT_ID" => with_parser::<DriftId>(argument, DriftId::PREFIX, DRIFTS),
        "WEBHOOK_ID" => with_parser::<WebhookId>(argument, WebhookId::PREFIX, WEBHOOKS),
        "DELIVERY_ID" => with_parser::<DeliveryId>(argument, DeliveryId::PREFIX, DELIVERIES),
        _ => argument,
    }
}

/// An option is a filter, which must be an ID. The service tells whether the object of a command exists.
fn with_parser<Id>(argument: Arg, prefix: &'static str, hint: &'static str) -> Arg
where
    Id: FromStr<Err: Error> + Clone + Send + Sync + 'static,
{
    if argument.is_positional() {
        argument.value_parser(move |text: &str| check_id::<Id>(text, prefix, hint))
    } else {
        argument.value_parser(move |text: &str| {
            check_id::<Id>(text, prefix, hint)?;
            text.parse::<Id>().map_err(|error| format!("{error}; {hint}"))
        })
    }
}

fn check_id<Id: FromStr<Err: Error>>(text: &str, prefix: &str, hint: &str) -> Result<String, String> {
    match ID_PREFIXES.iter().find(|(begin, _)| text.starts_with(begin)) {
        Some((begin, kind)) if *begin != prefix => Err(format!("this is the ID of {kind}; {hint}")),
        Some(_) => match text.parse::<Id>() {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(format!("{error}; {hint}")),
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
        let command = with_validation(
            PartnerRef::augment_args(Command::new("show")).args([
                Arg::new("order").long("order").value_name("ORDER_ID"),
                Arg::new("credential")
                    .long("credential")
                    .value_name("CREDENTIAL_ID"),
            ]),
        );
        let parse = |arguments: &[&str]| {
            let arguments = ["show"].iter().chain(arguments);
            command.clone().try_get_matches_from(arguments)
        };
        assert!(parse(&[&id]).is_ok() && parse(&["nobody"]).is_ok());
        for (arguments, expected) in [
            (
                &["nobody", "--order", &id][..],
                "this is the ID of a partner; `vouchsafe order list`",
            ),
            (
                &["nobody", "--order", "nothing"],
                "expected ord_ followed by 32 lower-case hex digits; `vouchsafe order list`",
            ),
            (&["ord_0"], "this is the ID of an order; `vouchsafe partner list`"),
            (
                &[cut],
                "expected ptn_ followed by 32 lower-case hex digits; `vouchsafe partner list`",
            ),
            (
                &["nobody", "--credential", "cred_x"],
                "expected cred_ followed by 32 lower-case hex digits; `vouchsafe credential list",
            ),
        ] {
            let message = parse(arguments).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
