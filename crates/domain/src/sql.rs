//! Postgres columns of enums and codes: their text in the API, in a `text` column.
//!
//! The type is the one of `str`. A type declared by name would be looked up in the catalogue once per
//! connection.

use std::error::Error;

use sqlx::encode::IsNull;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef, Postgres};
use sqlx::{Decode, Encode, Type};

use crate::allowlist::Allowlist;
use crate::api_scope::ApiScopes;
use crate::bulk_job::{BulkAction, BulkJobStatus, BulkResult};
use crate::change_request::{ChangeKind, ChangeRequestStatus};
use crate::delivery::DeliveryFault;
use crate::delivery::view::DeliveryState;
use crate::event_kind::EventKind;
use crate::ledger::LedgerKind;
use crate::money::Currency;
use crate::operator::{OperatorName, Role};
use crate::operator_session::SignInMethod;
use crate::order::{FulfilmentSource, OrderStatus, PendingReason};
use crate::payout::PayoutStatus;
use crate::product::{ApprovalPolicy, CodeCase, CodeIdentity, ProductId, SupplyRoute};
use crate::purchase::view::LastResponse;
use crate::reconciliation::DriftKind;
use crate::reconciliation::allocations::VoucherSource;
use crate::reconciliation::drift::DriftResolution;
use crate::reconciliation::result::RecordsSource;
use crate::search::ObjectKind;
use crate::vendor::AdapterKind;
use crate::webhook::DisabledReason;

macro_rules! text_column {
    ($($name:ty => $text:expr,)+) => {$(
        text_column!($name, $text, |text: &str| text.parse());
    )+};
    ($name:ty, $text:expr, $parse:expr) => {
        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <str as Type<Postgres>>::type_info()
            }

            fn compatible(ty: &PgTypeInfo) -> bool {
                <str as Type<Postgres>>::compatible(ty)
            }
        }

        impl PgHasArrayType for $name {
            fn array_type_info() -> PgTypeInfo {
                <&str as PgHasArrayType>::array_type_info()
            }
        }

        impl Encode<'_, Postgres> for $name {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
                let text: fn(&Self) -> &str = $text;
                <&str as Encode<Postgres>>::encode(text(self), buffer)
            }
        }

        impl<'r> Decode<'r, Postgres> for $name {
            fn decode(value: PgValueRef<'r>) -> Result<Self, Box<dyn Error + Send + Sync>> {
                let parse: fn(&str) -> Result<Self, _> = $parse;
                Ok(parse(<&str as Decode<Postgres>>::decode(value)?)?)
            }
        }
    };
}

text_column! {
    AdapterKind => |kind| kind.into_str(),
    ApprovalPolicy => |policy| policy.into_str(),
    BulkAction => |action| action.into_str(),
    BulkJobStatus => |status| status.into_str(),
    BulkResult => |result| result.into_str(),
    ChangeKind => |kind| kind.into_str(),
    ChangeRequestStatus => |status| status.into_str(),
    CodeCase => |case| case.into_str(),
    CodeIdentity => |identity| identity.into_str(),
    Currency => |currency| currency.as_str(),
    DeliveryFault => |fault| fault.into_str(),
    DeliveryState => |state| state.into_str(),
    DisabledReason => |reason| reason.into_str(),
    DriftKind => |kind| kind.into_str(),
    DriftResolution => |resolution| resolution.into_str(),
    EventKind => |kind| kind.into_str(),
    FulfilmentSource => |source| source.into_str(),
    LastResponse => |answer| answer.into_str(),
    LedgerKind => |kind| kind.into_str(),
    ObjectKind => |kind| kind.into_str(),
    OrderStatus => |status| status.into_str(),
    PayoutStatus => |status| status.into_str(),
    PendingReason => |reason| reason.into_str(),
    ProductId => |product_id| product_id.as_str(),
    RecordsSource => |source| source.into_str(),
    Role => |role| role.into_str(),
    SignInMethod => |method| method.into_str(),
    SupplyRoute => |route| route.into_str(),
    VoucherSource => |source| source.into_str(),
}

text_column!(OperatorName, |name| name.as_str(), OperatorName::from_stored);

/// A column of type `text[]`.
impl Type<Postgres> for Allowlist {
    fn type_info() -> PgTypeInfo {
        <Vec<String> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Allowlist {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
        Vec::<String>::from(self.clone()).encode_by_ref(buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Allowlist {
    fn decode(value: PgValueRef<'r>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(<Vec<String> as Decode<Postgres>>::decode(value)?.try_into()?)
    }
}

/// A column of type `text[]`.
impl Type<Postgres> for ApiScopes {
    fn type_info() -> PgTypeInfo {
        <Vec<String> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for ApiScopes {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
        let labels: Vec<&str> = self.iter().map(|scope| scope.into_str()).collect();
        labels.encode_by_ref(buffer)
    }
}

impl<'r> Decode<'r, Postgres> for ApiScopes {
    fn decode(value: PgValueRef<'r>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self::from_labels(&<Vec<String> as Decode<Postgres>>::decode(
            value,
        )?))
    }
}
