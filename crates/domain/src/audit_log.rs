//! Actors and entries of the audit log, and their list filter.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use time::OffsetDateTime;

use crate::ids::PartnerId;
use crate::money::{Amount, Currency};
use crate::period::Period;

/// The actor of an audited write and its request. Operators' writes need one, and so do partners' changes of
/// access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// An operator's name, a partner's id, `service` or `command-line`.
    pub operator: String,
    /// Trace id of the request; `None` outside of a request.
    pub trace_id: Option<String>,
}

impl AuditActor {
    /// The service itself.
    #[must_use]
    pub fn service() -> Self {
        Self {
            operator: "service".to_owned(),
            trace_id: None,
        }
    }

    /// A command that works on the database without the service.
    #[must_use]
    pub fn command_line() -> Self {
        Self {
            operator: "command-line".to_owned(),
            trace_id: None,
        }
    }

    /// A partner that acts on its own behalf.
    #[must_use]
    pub fn partner(partner_id: PartnerId, trace_id: String) -> Self {
        Self {
            operator: partner_id.to_string(),
            trace_id: Some(trace_id),
        }
    }
}

/// An entry of the audit trail.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
#[schema(as = AuditEntry)]
pub struct AuditRow {
    /// Sequence number.
    // Ascending, with gaps where a transaction was rolled back.
    pub audit_id: i64,
    /// Time of the action.
    // Start of the transaction.
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// Name of the operator, or ID of the partner.
    pub operator: String,
    /// Action, such as `partner.change`.
    pub action: String,
    /// ID of the changed object.
    pub subject: String,
    /// State before the action. Amounts are decimals.
    #[serde(serialize_with = "serialize_json", deserialize_with = "deserialize_json")]
    #[schema(required, value_type = Value)]
    pub before: Option<String>,
    /// State after the action. Amounts are decimals.
    #[serde(serialize_with = "serialize_json", deserialize_with = "deserialize_json")]
    #[schema(required, value_type = Value)]
    pub after: Option<String>,
    /// Trace ID of the request.
    #[schema(required)]
    pub trace_id: Option<String>,
    /// Partner that the action concerns, if it concerns one.
    #[schema(required)]
    pub partner_id: Option<PartnerId>,
}

/// A link of the hash chain over the audit trail.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = AuditCheckpoint)]
pub struct CheckpointRow {
    /// Number of the checkpoint, from 1 without gaps.
    pub number: i64,
    /// When it was written.
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// Number of audit entries that it covers.
    pub entries: i64,
    /// Number of the newest of them.
    pub newest_audit_id: i64,
    /// SHA-256 of the hash before and of the entries, in hexadecimal digits.
    pub hash: String,
    /// Whether the entries are as they were, and the service has written the checkpoint. Null without
    /// `check`.
    #[schema(required)]
    pub is_intact: Option<bool>,
}

/// Filter of checkpoints.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct CheckpointFilter {
    /// Compare each checkpoint with its entries. Reads up to 1,000 entries for each.
    #[serde(default, deserialize_with = "deserialize_flag")]
    #[param(required = false)]
    #[arg(long)]
    pub check: bool,
}

/// Values of query parameters are texts.
fn deserialize_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    text.parse()
        .map_err(|_| D::Error::custom("expected true or false"))
}

impl AuditRow {
    /// Replaces amounts in minor units by decimals in their currency: `amount_minor` by `amount`.
    #[must_use]
    pub fn with_decimal_amounts(self) -> Self {
        // The subject of an entry about a wallet is `partner/currency`.
        let of_wallet = self
            .subject
            .split_once('/')
            .and_then(|(_, currency)| currency.parse().ok());
        let [before, after] = [self.before, self.after].map(|state| {
            let state = state?;
            let decimal = to_decimal_amounts(&state, of_wallet);
            Some(decimal.unwrap_or(state))
        });
        Self {
            before,
            after,
            ..self
        }
    }
}

/// The text of an object with decimal amounts; `None` if it has none.
fn to_decimal_amounts(state: &str, of_wallet: Option<Currency>) -> Option<String> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(state).ok()?;
    let of_state = fields
        .get("currency")
        .and_then(|text| serde_json::from_str(text.get()).ok());
    let currency = of_wallet.or(of_state)?;
    let decimal = |(name, value): (String, Box<RawValue>)| {
        let Some(amount_name) = name.strip_suffix("_minor") else {
            return Some((name, value));
        };
        let minor: i64 = serde_json::from_str(value.get()).ok()?;
        let money = Amount::from_minor(minor).of(currency);
        Some((amount_name.to_owned(), to_raw_value(&money).ok()?))
    };
    let fields: BTreeMap<_, _> = fields.into_iter().map(decimal).collect::<Option<_>>()?;
    serde_json::to_string(&fields).ok()
}

/// Writes the text of a `json` column as it is.
fn serialize_json<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    // The columns are `jsonb`, so parsing cannot fail.
    let state: Option<&RawValue> = text.as_deref().and_then(|text| serde_json::from_str(text).ok());
    state.serialize(serializer)
}

/// Keeps the text of a JSON value as it is.
fn deserialize_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let state = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(state.map(|state| state.get().to_owned()))
}

/// Filter of audit entries; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct AuditFilter {
    /// Filter by operator.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "admin")]
    #[arg(long)]
    pub operator: Option<String>,
    /// Filter by action.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "partner.change")]
    #[arg(long, help = "Filter by action, e.g. partner.change")]
    pub action: Option<String>,
    /// Filter by subject.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f")]
    #[arg(long, help = "Filter by subject, an ID")]
    pub subject: Option<String>,
    /// Filter by partner: its actions, and operators' actions on it and on its objects, also on deleted ones.
    #[param(value_type = Option<PartnerId>, inline)]
    #[arg(long = "partner", value_name = "PARTNER_ID")]
    pub partner_id: Option<PartnerId>,
    /// `false` leaves out the entries of partners that retrieved codes, `codes.retrieve`.
    #[param(inline)]
    #[arg(
        long,
        value_name = "BOOL",
        help = "false: without the entries of partners that retrieved codes"
    )]
    pub code_reads: Option<bool>,
    #[serde(flatten)]
    #[param(ignore)]
    #[command(flatten)]
    pub period: Period,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_entries_are_decimals_in_their_currency() {
        let decimal = |subject: &str, state: &str| {
            let row = AuditRow {
                audit_id: 1,
                at: OffsetDateTime::UNIX_EPOCH,
                operator: "admin".to_owned(),
                action: "wallet.top_up".to_owned(),
                subject: subject.to_owned(),
                before: None,
                after: Some(state.to_owned()),
                trace_id: None,
                partner_id: None,
            };
            row.with_decimal_amounts().after.unwrap()
        };
        for (subject, state, expected) in [
            ("ptn_1/JPY", r#"{"amount_minor": 1000}"#, r#"{"amount":1000}"#),
            (
                "ord_1",
                r#"{"currency": "USD", "refunded_minor": 9007199254740993, "status": "PENDING"}"#,
                r#"{"currency":"USD","refunded":90071992547409.93,"status":"PENDING"}"#,
            ),
            ("ord_1", r#"{"refunded_minor": 5}"#, r#"{"refunded_minor": 5}"#),
            ("amzn-us", r#"{"name": "x"}"#, r#"{"name": "x"}"#),
            ("amzn-us", "[1]", "[1]"),
        ] {
            assert_eq!(decimal(subject, state), expected);
        }
    }
}
