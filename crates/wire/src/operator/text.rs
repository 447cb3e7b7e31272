//! Display names, reasons, references and other short texts: their length, and what else they may contain.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use vouchsafe_domain::bounds::Text;
use vouchsafe_domain::identifier;

use crate::error_body::InvalidRequest;

/// Declares texts of a request: trimmed and checked while the request is parsed, and described with their
/// length.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $parse:ident::<$max:literal>;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
            #[serde(transparent)]
            pub struct $name(String);

            impl FromStr for $name {
                type Err = String;

                fn from_str(text: &str) -> Result<Self, String> {
                    $parse::<$max>(text).map(Self)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = String::deserialize(deserializer)?;
                    text.parse().map_err(serde::de::Error::custom)
                }
            }

            impl From<$name> for String {
                fn from(text: $name) -> Self {
                    text.0
                }
            }

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    Text::<1, $max>::schema()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

texts! {
    /// Display name.
    Name = trimmed::<200>;
    /// Brand of products.
    Brand = normalized::<100>;
    /// Why an operator decides so. Every response with the timeline contains it.
    Reason = trimmed::<500>;
    /// Reference of a posting or payment, as long as that of an order.
    Reference = normalized::<128>;
}

/// A text without spaces around it: 1 to `MAX` characters, no control characters.
fn trimmed<const MAX: usize>(text: &str) -> Result<String, String> {
    let text = text.trim();
    if (1..=MAX).contains(&text.chars().count()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected 1 to {MAX} characters, without control characters"
    ))
}

/// A text that is an identity, in its only spelling: 1 to `MAX` characters.
fn normalized<const MAX: usize>(text: &str) -> Result<String, String> {
    let text = identifier::normalize(text).map_err(|error| format!("remove the {error}"))?;
    if (1..=MAX).contains(&text.chars().count()) {
        return Ok(text.into_owned());
    }
    Err(format!("expected 1 to {MAX} characters"))
}

/// Normalizes a text that is an identity and checks its length: 1 to `MAX` characters.
pub(super) fn validate_identifier<const MAX: usize>(
    field: &str,
    text: &str,
) -> Result<String, InvalidRequest> {
    normalized::<MAX>(text).map_err(|message| InvalidRequest::field(field, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::Code;
    use crate::json;

    #[test]
    fn reference_has_one_spelling() {
        let parse = |text: &str| text.parse::<Reference>();
        for text in ["bank-S\u{f6}", " bank-S\u{f6}\u{a0}", "bank-So\u{308}"] {
            assert_eq!(String::from(parse(text).unwrap()), "bank-S\u{f6}", "{text:?}");
        }
        assert_eq!(
            parse("bank-1\u{200b}").unwrap_err(),
            "remove the invisible character (U+200B) at position 7"
        );
        for text in ["", " ", &"x".repeat(129)] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn name_is_trimmed_and_checked_for_length_and_control_characters() {
        let parse = |text: &str| text.parse::<Name>();
        assert_eq!(String::from(parse(" Acme & Söhne ").unwrap()), "Acme & Söhne");
        assert!(parse(&"ß".repeat(200)).is_ok());
        for text in ["", "  ", "a\nb", "a\u{0}b", &"ß".repeat(201)] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn text_of_a_body_names_its_field() {
        #[derive(Debug, Deserialize)]
        struct Body {
            #[expect(dead_code, reason = "only whether it parses")]
            reason: Reason,
        }
        let error = json::parse::<Body>(br#"{"reason":" "}"#).unwrap_err();
        assert_eq!(error.code, Code::ValidationFailed);
        assert_eq!(error.details[0].field, "reason");
        assert_eq!(
            error.details[0].message,
            "expected 1 to 500 characters, without control characters"
        );
    }
}
