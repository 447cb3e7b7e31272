//! Values of the command-line options of a partner's terms: `none` and `default` stand for `null`.

use serde::de::DeserializeOwned;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_domain::period::time_option;

use crate::operator::patch_field::{Nullable, Timestamp};

pub(super) fn parse_window(text: &str) -> Result<Nullable<u32>, &'static str> {
    match text {
        "default" => Ok(None),
        seconds => match seconds.parse() {
            Ok(seconds) => Ok(Some(seconds)),
            Err(_) => Err("expected a number of seconds, or default"),
        },
    }
}

pub(super) fn parse_time(text: &str) -> Result<Nullable<Timestamp>, String> {
    match text {
        "none" => Ok(None),
        time => match time_option::parse_time(time) {
            Ok(time) => Ok(Some(Timestamp(time))),
            Err(error) => Err(format!("{error}; or none")),
        },
    }
}

pub(super) fn parse_caps(text: &str) -> Result<Nullable<PartnerCaps>, String> {
    match text {
        "default" => Ok(None),
        caps => serde_json::from_str(caps).map_err(|error| format!("expected JSON or default: {error}")),
    }
}

pub(super) fn parse_json<T: DeserializeOwned>(text: &str) -> Result<Nullable<T>, String> {
    match text {
        "none" => Ok(None),
        terms => serde_json::from_str(terms).map_err(|error| format!("expected JSON or none: {error}")),
    }
}
