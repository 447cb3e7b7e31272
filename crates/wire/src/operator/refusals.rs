//! Query and body of `GET /refusals`.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::ids::PartnerId;

use crate::error_code::Code;
use crate::filter::ListFilter;
use crate::limit::Limit;

/// The node keeps counts for a day.
const MAX_HOURS: usize = 24;

/// Hours up to now.
pub type Hours = Limit<MAX_HOURS, 1>;

/// Query of refused requests.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RefusalsQuery {
    /// Hours up to now, counted in slots of ten minutes.
    #[serde(default)]
    #[param(inline, required = false)]
    pub hours: Hours,
    /// Filter by partner.
    #[param(inline)]
    pub partner_id: Option<PartnerId>,
}

impl ListFilter for RefusalsQuery {}

/// Number of requests of a partner that were refused with an error code.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusalCount {
    /// Code of the error.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// The partner; null if the request was not authenticated, if it was an operator's, and for partners
    /// beyond the first 1,000 of ten minutes.
    #[schema(required)]
    pub partner_id: Option<PartnerId>,
    /// Number of requests.
    pub requests: u64,
}

impl RefusalCount {
    #[must_use]
    pub fn new(code: Code, partner_id: Option<PartnerId>, requests: u64) -> Self {
        Self {
            code: code.as_str(),
            status: code.status(),
            partner_id,
            requests,
        }
    }

    /// Sorts as the counts are listed: by the number of requests, the most frequent first.
    #[must_use]
    pub fn cursor(&self) -> String {
        let partner = self.partner_id.map(|partner_id| partner_id.to_string());
        format!(
            "{:020} {} {}",
            u64::MAX - self.requests,
            self.code,
            partner.unwrap_or_default()
        )
    }
}
