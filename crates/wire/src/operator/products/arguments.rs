//! Command-line options of the fields of a product that are objects.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use vouchsafe_domain::product::ExpiryKind;

use super::{DenominationRangeRequest, ExpiryPolicyRequest};
use crate::json::JsonObject;

#[derive(Args)]
#[group(id = "ExpiryPolicyRequest")]
struct ExpiryOptions {
    /// Last valid day of all vouchers, as YYYY-MM-DD.
    #[arg(long, value_name = "DATE", conflicts_with = "valid_months")]
    expires_on: Option<String>,
    /// Validity of a voucher, in months.
    #[arg(long, value_name = "MONTHS")]
    valid_months: Option<u32>,
}

impl From<ExpiryOptions> for ExpiryPolicyRequest {
    fn from(options: ExpiryOptions) -> Self {
        let (kind, value) = match (options.expires_on, options.valid_months) {
            (Some(day), _) => (ExpiryKind::FixedDate, Some(day.into())),
            (None, Some(months)) => (ExpiryKind::MonthsFromIssue, Some(months.into())),
            (None, None) => (ExpiryKind::None, None),
        };
        Self { kind, value }
    }
}

impl FromArgMatches for ExpiryPolicyRequest {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        ExpiryOptions::from_arg_matches(matches).map(Self::from)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ExpiryPolicyRequest {
    fn augment_args(command: Command) -> Command {
        ExpiryOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ExpiryOptions::augment_args_for_update(command)
    }
}

/// Parses a range of face values, such as `10:500:5`.
pub(super) fn parse_range(text: &str) -> Result<JsonObject<DenominationRangeRequest>, &'static str> {
    let parts: Vec<&str> = text.split(':').collect();
    let [min, max, step] = parts[..] else {
        return Err("expected MIN:MAX:STEP, such as 10:500:5");
    };
    Ok(JsonObject(DenominationRangeRequest {
        min: min.into(),
        max: max.into(),
        step: step.into(),
    }))
}
