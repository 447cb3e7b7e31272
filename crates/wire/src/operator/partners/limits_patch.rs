//! Rate limits of a partner, to set or reset by class.

mod arguments;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::limits::RequestClass;
use vouchsafe_domain::limits::{Limit, Limits, MAX_QUOTA, MAX_WINDOW_S};

use crate::error_body::InvalidRequest;
use crate::operator::patch_field::{Nullable, nullable_object};

/// Rate limits to change; `null` resets a class to the settings.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsPatch {
    /// `POST /orders`.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Limit>)]
    orders: Option<Nullable<Limit>>,
    /// All requests without a class of their own.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Limit>)]
    general: Option<Nullable<Limit>>,
    /// Credential rotation.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Limit>)]
    auth: Option<Nullable<Limit>>,
    /// Reading the codes of an order.
    #[serde(default, deserialize_with = "nullable_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Limit>)]
    vouchers: Option<Nullable<Limit>>,
}

/// Limits of all credentials together to change; `null` removes that of a class.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct CeilingsPatch(pub(super) LimitsPatch);

impl LimitsPatch {
    /// The limits that are set, without those that are reset.
    pub(super) fn changed(&self) -> Limits {
        Limits {
            orders: self.orders.flatten(),
            general: self.general.flatten(),
            auth: self.auth.flatten(),
            vouchers: self.vouchers.flatten(),
        }
    }

    pub(super) const fn get_mut(&mut self, class: RequestClass) -> &mut Option<Nullable<Limit>> {
        match class {
            RequestClass::Orders => &mut self.orders,
            RequestClass::General => &mut self.general,
            RequestClass::Auth => &mut self.auth,
            RequestClass::Vouchers => &mut self.vouchers,
        }
    }

    pub(super) fn apply(&self, limits: &mut Limits) {
        let classes = [
            (&mut limits.orders, self.orders),
            (&mut limits.general, self.general),
            (&mut limits.auth, self.auth),
            (&mut limits.vouchers, self.vouchers),
        ];
        for (limit, change) in classes {
            *limit = change.unwrap_or(*limit);
        }
    }
}

/// Fails with the class whose limit is out of range.
pub(super) fn validate_limits(limits: Limits) -> Result<Limits, InvalidRequest> {
    match limits.first_out_of_range() {
        Some(class) => Err(InvalidRequest::field(format!("limits.{class}"), limit_range())),
        None => Ok(limits),
    }
}

pub(super) fn limit_range() -> String {
    format!("expected quota 1 to {MAX_QUOTA} and window_s 1 to {MAX_WINDOW_S}")
}
