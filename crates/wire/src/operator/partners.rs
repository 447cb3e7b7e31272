//! Operations and bodies of `/partners`.

mod arguments;
mod limits_patch;
pub(super) mod patch;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::partner::{Partner, PartnerFilter};

use self::limits_patch::{LimitsPatch, validate_limits};
pub use self::patch::PartnerPatch;
use super::credentials::{CredentialDetails, IssuedCredential};
use super::erasure::{ErasureReport, PartnerErasureRequest};
use super::patch_field::some_object;
use super::text::Name;
use crate::column::col;
use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::filter::WholeList;
use crate::limit_use::LimitUse;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::{Never, Sometimes};
use crate::operator::operation::{Operation, OperatorAccess, delete, get, patch, post};
use crate::partner::certification::Certification;

operations! {
    OperatorAccess;
    LIST_PARTNERS: Operation<PartnerFilter, Page<Partner>> =
        get("/partners", Role::Viewer, "listPartners", "List partners")
            .columns(&[
                col("Name", "name").link("/partners/{partner_id}").text(16),
                col("Partner", "partner_id").at(0),
                col("Suspended", "suspended"),
                col("Certified", "certified_at").at(4),
                col("Created", "created_at"),
                col("Allowlist", "allowlist").text(14).terminal_only(),
            ]);
    CREATE_PARTNER: Operation<NewPartner, CreatedPartner<'static>> =
        post("/partners", Role::Admin, Never, "createPartner", "Create a partner");
    GET_PARTNER: Operation<(), PartnerWithCredentials<'static>> =
        get("/partners/{partner_id}", Role::Viewer, "getPartner", "Get a partner");
    CHANGE_PARTNER: Operation<PartnerPatch, Partner> = patch(
        "/partners/{partner_id}",
        Role::Admin,
        Sometimes(&[ChangeKind::PartnerChange]),
        "changePartner",
        "Change the terms of a partner",
    )
        .errors(&[Code::InvalidRowHmac]);
    GET_CERTIFICATION: Operation<(), Certification> =
        get("/partners/{partner_id}/certification", Role::Viewer, "getCertification", "Get the certification of a partner")
            .errors(&[Code::RouteNotFound])
            .table_columns(&[
                col("Check", "check"),
                col("State", "state"),
                col("Observed", "at"),
                col("Reason", "reason").text(30),
                col("Advice", "advice").console_only(),
            ]);
    RESTART_CERTIFICATION: Operation<(), ()> =
        delete("/partners/{partner_id}/certification", Role::Operator, Never, "restartCertification", "Restart a certification")
            .errors(&[Code::RouteNotFound]);
    ERASE_PARTNER: Operation<PartnerErasureRequest, ErasureReport> =
        post("/partners/{partner_id}/erase", Role::Admin, Never, "erasePartner", "Erase the personal data of a partner");
    LIST_LIMIT_USE: Operation<WholeList, Page<LimitUse>> =
        get("/partners/{partner_id}/limits", Role::Viewer, "listLimitUse", "List the use of rate limits")
            .columns(&[
                col("Credential", "credential_id"),
                col("Class", "class"),
                col("Used", "used"),
                col("Quota", "quota"),
                col("Seconds", "window_s"),
                col("Default limit", "is_default"),
            ]);
}

/// A partner to create.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
#[command(mut_arg("allowlist", |allow| allow.help(
        "Network or address from which it may call; without any, all are denied. Can be repeated"
    )))]
pub struct NewPartner {
    /// Display name.
    #[arg(long)]
    name: Name,
    /// Networks from which the partner may call; an empty list denies all.
    #[command(flatten)]
    allowlist: Allowlist,
    /// Rate limits that differ from the settings.
    #[serde(default, deserialize_with = "some_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[command(flatten)]
    limits: Option<LimitsPatch>,
}

impl NewPartner {
    /// The partner with a new id.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn into_partner(self, now: OffsetDateTime) -> Result<Partner, InvalidRequest> {
        let mut partner = Partner::new(self.name.into(), self.allowlist, now);
        self.limits.unwrap_or_default().apply(&mut partner.limits);
        partner.limits = validate_limits(partner.limits)?;
        Ok(partner)
    }
}

/// A new partner with its first credential; `null` in production.
#[derive(Serialize, ToSchema)]
pub struct CreatedPartner<'a> {
    #[serde(flatten)]
    pub partner: &'a Partner,
    #[schema(required)]
    pub credential: Option<&'a IssuedCredential>,
}

/// `GET /partners/{partner_id}/credentials` lists the others.
pub const MAX_EMBEDDED_CREDENTIALS: usize = 25;

/// A partner with its newest credentials, without keys and secrets.
#[derive(Serialize, ToSchema)]
pub struct PartnerWithCredentials<'a> {
    #[serde(flatten)]
    pub partner: &'a Partner,
    pub credentials: Vec<CredentialDetails>,
}
