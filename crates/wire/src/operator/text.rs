//! Display names, reasons, references and other short texts: their length, and what else they may contain.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use vouchsafe_domain::identifier::{self, IDENTIFIER_PATTERN};

use crate::error_body::InvalidRequest;

/// Declares texts of a request: trimmed and checked while the request is parsed, and described with their
/// length.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $parse:ident::<$min:literal, $max:literal>$(, $pattern:expr)?;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
            #[serde(transparent)]
            pub struct $name(String);

            impl FromStr for $name {
                type Err = String;

                fn from_str(text: &str) -> Result<Self, String> {
                    $parse::<$min, $max>(text).map(Self)
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
                    text_schema($min, $max, [$($pattern)?])
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

texts! {
    /// Display name.
    Name = trimmed::<1, 200>, LINE;
    /// Brand of products.
    Brand = normalized::<1, 100>, IDENTIFIER_PATTERN;
    /// Why an operator decides so. Every response with the timeline contains it.
    Reason = trimmed::<1, 500>, LINE;
    /// Reference of a posting or payment, as long as that of an order.
    Reference = normalized::<1, 128>, IDENTIFIER_PATTERN;
    /// Text with lines, a few printed pages at most.
    #[derive(Default)]
    LongText = lines::<0, 20_000>;
    /// Address of a page or file that holders of vouchers may see.
    HttpsUrl = https_url::<1, 2_048>, r"^https://[^\s/]\S*$";
    /// Address of an inbox.
    Email = email::<3, 254>, r"^[^\s@]+@[^\s@]+$";
    /// Telephone number.
    Phone = phone::<3, 40>, r"^\+?[0-9][0-9 ()./-]+$";
}

/// Pattern of a text without control characters that is not blank.
const LINE: &str =
    r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

fn text_schema<const PATTERNS: usize>(min: usize, max: usize, pattern: [&str; PATTERNS]) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.min_length((min > 0).then_some(min)).max_length(Some(max));
    text.pattern(pattern.first().copied()).into()
}

/// A text without spaces around it: `MIN` to `MAX` characters, no control characters.
fn trimmed<const MIN: usize, const MAX: usize>(text: &str) -> Result<String, String> {
    let text = text.trim();
    if (MIN..=MAX).contains(&text.chars().count()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected {MIN} to {MAX} characters, without control characters"
    ))
}

/// A text of lines without spaces around it: `MIN` to `MAX` characters.
fn lines<const MIN: usize, const MAX: usize>(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_forbidden = |c: char| c.is_control() && !['\n', '\r', '\t'].contains(&c);
    if (MIN..=MAX).contains(&text.chars().count()) && !text.contains(is_forbidden) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected {MIN} to {MAX} characters, without control characters other than line breaks"
    ))
}

fn https_url<const MIN: usize, const MAX: usize>(text: &str) -> Result<String, String> {
    let text = trimmed::<MIN, MAX>(text)?;
    let rest = text.strip_prefix("https://");
    let is_url = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if is_url && !text.contains(char::is_whitespace) {
        return Ok(text);
    }
    Err("expected a URL with the scheme https".to_owned())
}

fn email<const MIN: usize, const MAX: usize>(text: &str) -> Result<String, String> {
    let text = trimmed::<MIN, MAX>(text)?;
    let parts: Vec<_> = text.split('@').collect();
    if matches!(parts[..], [user, host] if !user.is_empty() && !host.is_empty())
        && !text.contains(char::is_whitespace)
    {
        return Ok(text);
    }
    Err("expected an address such as support@brand.example".to_owned())
}

fn phone<const MIN: usize, const MAX: usize>(text: &str) -> Result<String, String> {
    let text = trimmed::<MIN, MAX>(text)?;
    let number = text.strip_prefix('+').unwrap_or(&text);
    let is_part = |c: char| c.is_ascii_digit() || " ()./-".contains(c);
    if number.starts_with(|c: char| c.is_ascii_digit()) && number.chars().all(is_part) {
        return Ok(text);
    }
    Err("expected a telephone number such as +1 555 0100".to_owned())
}

/// A text that is an identity, in its only spelling: `MIN` to `MAX` characters.
fn normalized<const MIN: usize, const MAX: usize>(text: &str) -> Result<String, String> {
    let text = identifier::normalize(text).map_err(|error| format!("remove the {error}"))?;
    if (MIN..=MAX).contains(&text.chars().count()) {
        return Ok(text.into_owned());
    }
    Err(format!("expected {MIN} to {MAX} characters"))
}

/// Normalizes a text that is an identity and checks its length: 1 to `MAX` characters.
pub(super) fn validate_identifier<const MAX: usize>(
    field: &str,
    text: &str,
) -> Result<String, InvalidRequest> {
    normalized::<1, MAX>(text).map_err(|message| InvalidRequest::field(field, message))
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
    fn contact_of_a_brand_has_its_form() {
        assert!("https://brand.example/a?b#c".parse::<HttpsUrl>().is_ok());
        for text in [
            "",
            "http://brand.example",
            "https://",
            "https:///a",
            "https://a b",
            "javascript:1",
        ] {
            assert!(text.parse::<HttpsUrl>().is_err(), "{text}");
        }
        assert!("help@brand.example".parse::<Email>().is_ok());
        for text in ["help", "@brand.example", "help@", "a@b@c", "a b@c"] {
            assert!(text.parse::<Email>().is_err(), "{text}");
        }
        assert!("+49 (0)30 / 123-45".parse::<Phone>().is_ok());
        for text in ["1", "+", "+ 49", "call 555"] {
            assert!(text.parse::<Phone>().is_err(), "{text}");
        }
        assert_eq!(String::from(" a\n\tb ".parse::<LongText>().unwrap()), "a\n\tb");
        assert!("a\u{0}b".parse::<LongText>().is_err() && "x".repeat(20_001).parse::<LongText>().is_err());
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
