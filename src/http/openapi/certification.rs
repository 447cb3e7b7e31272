//! What is said of `/certification`.

use serde_json::{Value, json};
use utoipa::openapi::HttpMethod;

use super::{ACCESS, identified};
use crate::certification::{Point, State};
use crate::errors::Code;
use crate::http::certification::CertificationBody;
use crate::openapi::{Answer, Operation};

/// `GET /certification`.
pub(super) fn get() -> Operation {
    identified(HttpMethod::Get, "/certification", "getCertification")
        .says(
            ACCESS,
            "Get your certification",
            "What the sandbox has seen of your client, point by point. The newest trial of a point counts. In production \
             there is no such route.",
        )
        .answers(Answer::of::<CertificationBody>(200, "The checklist.", example()))
        .refuses(&[Code::RouteNotFound])
}

/// A checklist with one point passed.
pub(crate) fn example() -> Value {
    let point = |point: &Point| {
        let seen = *point == Point::LostAnswer;
        let state = if seen { State::Passed } else { State::NotSeen };
        json!({
            "point": point, "state": state, "at": seen.then_some("2026-11-20T12:00:00.123456Z"),
            "why": if seen { "the same order came again under its key" } else { "nothing that decides it was seen yet" },
            "asks": point.asks(), "advice": point.advice(),
        })
    };
    json!({
        "partner_id": "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "passed": false, "passed_at": null,
        "points": Point::ALL.iter().map(point).collect::<Vec<_>>(),
    })
}
