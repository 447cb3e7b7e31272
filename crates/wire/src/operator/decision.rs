//! Reason of operators' decisions on orders, purchases and change requests.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::text::Reason;

/// Reason for a decision.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ReasonRequest {
    /// Reason, shown to the partner in the timeline.
    #[arg(long)]
    pub reason: Reason,
}

/// Why a change request is declined.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct DeclineRequest {
    /// Reason, for the requester.
    #[serde(default)]
    #[arg(long)]
    pub reason: Option<Reason>,
}

/// Body of the response of a confirmed change: that of its operation.
#[derive(Debug)]
pub enum ConfirmedChange {}

impl PartialSchema for ConfirmedChange {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("The body of the response of the change's own operation."))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

impl ToSchema for ConfirmedChange {}
