//! NDJSON parser for stock imports: one object per line, with the CSV columns as fields.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::error::Category;
use vouchsafe_security::vault::code::CodeParts;

use super::row::{ExpiryDefaults, LineError, VoucherFields, VoucherRow};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VoucherObject<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
    #[serde(borrow, default)]
    pin: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    serial: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    expiry: Option<Cow<'a, str>>,
}

/// Drops the parser's error message, which may quote a code.
pub(super) fn parse_row(line: &str, expiry_defaults: ExpiryDefaults) -> Result<VoucherRow, LineError> {
    // A derived `Deserialize` also accepts an array of the field values.
    if line.trim_start().starts_with('[') {
        return Err(LineError::NotAVoucher);
    }
    let object: VoucherObject<'_> = serde_json::from_str(line).map_err(|error| match error.classify() {
        Category::Data => LineError::NotAVoucher,
        Category::Syntax | Category::Eof | Category::Io => LineError::NotJson,
    })?;
    let parts = CodeParts {
        code: &object.code,
        pin: object.pin.as_deref(),
        serial: object.serial.as_deref(),
        url: object.url.as_deref(),
    };
    expiry_defaults.parse_row(&VoucherFields {
        parts,
        expiry: object.expiry.as_deref(),
    })
}
