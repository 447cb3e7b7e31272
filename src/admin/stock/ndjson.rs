//! Stock as NDJSON: an object a line, with the names of the CSV's columns.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::error::Category;

use super::rows::{Calendar, Reason, Row, Texts};
use crate::vault::code::CodeParts;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object<'a> {
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

/// The voucher of a line. The parser's own words are not passed on: they may quote a code.
pub(super) fn row(line: &str, calendar: Calendar) -> Result<Row, Reason> {
    // A list of the fields' values would be read as an object, too.
    if line.trim_start().starts_with('[') {
        return Err(Reason::NotAVoucher);
    }
    let object: Object<'_> = serde_json::from_str(line).map_err(|error| match error.classify() {
        Category::Data => Reason::NotAVoucher,
        Category::Syntax | Category::Eof | Category::Io => Reason::NotJson,
    })?;
    let parts = CodeParts {
        code: &object.code,
        pin: object.pin.as_deref(),
        serial: object.serial.as_deref(),
        url: object.url.as_deref(),
    };
    calendar.row(&Texts {
        parts,
        expiry: object.expiry.as_deref(),
    })
}
