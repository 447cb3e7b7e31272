//! Inputs of a partner's rate limits, by class.

use crate::page::{Input, InputKind};

/// Limits of each credential.
pub(super) const LIMITS: [Input; 4] = [
    limit("limits.orders", "Orders"),
    limit("limits.general", "General"),
    limit("limits.auth", "Rotations"),
    limit("limits.vouchers", "Reads of codes"),
];

/// Limits of all credentials together.
pub(super) const CEILINGS: [Input; 4] = [
    ceiling("ceilings.orders", "Orders"),
    ceiling("ceilings.general", "General"),
    ceiling("ceilings.auth", "Rotations"),
    ceiling("ceilings.vouchers", "Reads of codes"),
];

const fn limit(name: &'static str, label: &'static str) -> Input {
    Input::new(name, label, InputKind::Limit)
        .current()
        .hint("Requests per seconds, such as 100/60. Empty: the limit of the settings.")
}

const fn ceiling(name: &'static str, label: &'static str) -> Input {
    Input::new(name, label, InputKind::Limit)
        .current()
        .hint("Requests of all credentials together per seconds, such as 2000/60. Empty: no such limit.")
}
