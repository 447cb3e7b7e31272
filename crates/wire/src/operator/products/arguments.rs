//! Command-line options of the fields of a product that are objects.

use vouchsafe_domain::expiry_policy::ExpiryKind;

use super::{DenominationRangeRequest, ExpiryPolicyRequest};
use crate::json::JsonObject;

#[derive(clap::Args)]
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
        let ExpiryOptions {
            expires_on,
            valid_months,
        } = options;
        let kind = match (&expires_on, valid_months) {
            (Some(_), _) => ExpiryKind::FixedDate,
            (None, Some(_)) => ExpiryKind::MonthsFromIssue,
            (None, None) => ExpiryKind::None,
        };
        Self {
            kind,
            expires_on,
            valid_months,
            value: None,
        }
    }
}

vouchsafe_domain::parse_as_options!(ExpiryPolicyRequest, ExpiryOptions);

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

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};
    use serde_json::{Value, json};

    use crate::operator::products::ProductRequest;

    #[derive(clap::Args)]
    struct Options {
        #[command(flatten)]
        request: Option<ProductRequest>,
        #[arg(long, conflicts_with = "ProductRequest")]
        from: Option<String>,
    }

    fn parse(line: &str) -> Result<Value, clap::Error> {
        let command = Options::augment_args(Command::new("put").no_binary_name(true));
        let matches = command.try_get_matches_from(line.split(' '))?;
        let options = Options::from_arg_matches(&matches)?;
        Ok(json!([options.request, options.from]))
    }

    #[test]
    fn options_become_the_request_body() {
        let line = "--name Card --brand acme --category games --currency USD --denomination 25 --range 10:50:5 \
                    --valid-months 12 --country US";
        let expected = json!({
            "name": "Card", "brand": "acme", "category_id": "games", "vendor": "mock", "currency": "USD",
            "countries": ["US"], "denominations": ["25"],
            "denomination_range": { "min": "10", "max": "50", "step": "5" },
            "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "expires_on": null, "valid_months": 12 },
            "redemption": { "instructions": "", "terms": "" },
            "content": {
                "language": "en", "description": "", "images": [], "barcode_format": null, "balance_check_url": null,
                "support_email": null, "support_phone": null, "support_url": null,
            },
            "route": "stock", "approval": "rule",
            "returnable": false, "code_identity": "code", "code_case": null, "min_validity_days": 0, "low_stock_at": null, "discontinued": false,
        });
        assert_eq!(parse(line).unwrap(), json!([expected, null]));
    }

    #[test]
    fn source_excludes_the_options_of_the_request() {
        assert_eq!(parse("--from @file").unwrap(), json!([null, "@file"]));
        assert!(parse("--from @file --vendor acme").is_err());
        assert!(parse("--name Card").is_err());
    }
}
