//! Operations and bodies of `/bulk-jobs`, and what each action calls.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::bounds::List;
use vouchsafe_domain::bulk_job::{BulkAction, BulkItem, BulkItemFilter, BulkJob, MAX_OBJECTS};
use vouchsafe_domain::operator::Role;

use super::operation::SecondOperator::Never;
use super::operation::{Operation, OperatorAccess, Route, get, post};
use super::text::Reason;
use super::{change_requests, orders, payouts, reconciliation, webhooks};
use crate::column::col;
use crate::error_body::InvalidRequest;
use crate::filter::NoFilter;
use crate::json;
use crate::operation::{Page, operations};

operations! {
    OperatorAccess;
    LIST_BULK_JOBS: Operation<NoFilter, Page<BulkJob>> =
        get("/bulk-jobs", Role::Viewer, "listBulkJobs", "List bulk jobs")
            .columns(&[
                col("Job", "job_id"),
                col("Action", "action"),
                col("Status", "status"),
                col("Objects", "objects"),
                col("Done", "done"),
                col("Requested", "requested"),
                col("Refused", "refused"),
                col("Failed", "failed"),
                col("Operator", "operator").text(12),
                col("Started", "started_at"),
                col("Reason", "reason").text(12).terminal_only(),
                col("Trace", "trace_id").terminal_only(),
            ]);
    START_BULK_JOB: Operation<BulkJobRequest, BulkJob> =
        post("/bulk-jobs", Role::Operator, Never, "startBulkJob", "Start a bulk job");
    GET_BULK_JOB: Operation<(), BulkJob> = get("/bulk-jobs/{job_id}", Role::Viewer, "getBulkJob", "Get a bulk job");
    LIST_BULK_ITEMS: Operation<BulkItemFilter, Page<BulkItem>> =
        get("/bulk-jobs/{job_id}/items", Role::Viewer, "listBulkItems", "List the objects of a bulk job")
            .columns(&[
                col("Number", "position"),
                col("Object", "object_id"),
                col("Result", "result"),
                col("Error", "error_code").text(20),
                col("Request", "request_id"),
                col("Message", "message").text(20),
                col("Time", "ended_at"),
            ]);
}

type ObjectIds = List<String, 1, MAX_OBJECTS>;

/// An action on many objects.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct BulkJobRequest {
    #[serde(deserialize_with = "json::enum_value")]
    #[arg(
        value_parser = vouchsafe_domain::arguments::enum_parser::<BulkAction>(),
        help = "What is done with each object"
    )]
    pub action: BulkAction,
    /// IDs of orders, payouts, change requests, drifts or deliveries, as the action needs.
    #[schema(value_type = ObjectIds)]
    #[arg(value_name = "ID", help = "IDs of the objects, of one kind")]
    pub ids: Vec<String>,
    /// Reason, the same for each object. Decisions on orders and drifts need one; a confirmation and a replay
    /// have none.
    #[serde(default)]
    #[arg(long, help = "Reason, the same for each object")]
    pub reason: Option<Reason>,
}

/// What an action calls for each object.
#[derive(Debug, Clone, Copy)]
pub struct BulkOperation {
    pub operation: Route,
    /// The list of the objects.
    pub list: Route,
    /// Field and placeholder with the ID.
    pub id: &'static str,
    pub reason: ReasonUse,
    /// Fields of the body, the same for each object.
    pub fixed: Option<(&'static str, &'static str)>,
}

/// Whether an action has a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonUse {
    Required,
    Optional,
    /// Its operation has no body.
    None,
}

/// The operation of an action.
#[must_use]
pub const fn bulk_operation(action: BulkAction) -> BulkOperation {
    let order = BulkOperation {
        operation: orders::APPROVE_ORDER.route,
        list: orders::SEARCH_ORDERS.route,
        id: "order_id",
        reason: ReasonUse::Required,
        fixed: None,
    };
    let payout = BulkOperation {
        operation: payouts::PAY_PAYOUT.route,
        list: payouts::LIST_PAYOUTS.route,
        id: "payout_id",
        reason: ReasonUse::Optional,
        fixed: None,
    };
    let request = BulkOperation {
        operation: change_requests::CONFIRM_CHANGE_REQUEST.route,
        list: change_requests::LIST_CHANGE_REQUESTS.route,
        id: "request_id",
        reason: ReasonUse::None,
        fixed: None,
    };
    let drift = BulkOperation {
        operation: reconciliation::RESOLVE_DRIFT.route,
        list: reconciliation::LIST_DRIFTS.route,
        id: "drift_id",
        reason: ReasonUse::Required,
        fixed: Some(("resolution", "resolved")),
    };
    match action {
        BulkAction::OrderApprove => order,
        BulkAction::OrderReject => BulkOperation {
            operation: orders::REJECT_ORDER.route,
            ..order
        },
        BulkAction::OrderCancel => BulkOperation {
            operation: orders::CANCEL_ORDER.route,
            ..order
        },
        BulkAction::PayoutPay => payout,
        BulkAction::PayoutReject => BulkOperation {
            operation: payouts::REJECT_PAYOUT.route,
            ..payout
        },
        BulkAction::PayoutFail => BulkOperation {
            operation: payouts::FAIL_PAYOUT.route,
            ..payout
        },
        BulkAction::RequestConfirm => request,
        BulkAction::RequestDecline => BulkOperation {
            operation: change_requests::DECLINE_CHANGE_REQUEST.route,
            reason: ReasonUse::Optional,
            ..request
        },
        BulkAction::DriftResolve => drift,
        BulkAction::DriftEscalate => BulkOperation {
            fixed: Some(("resolution", "escalated")),
            ..drift
        },
        BulkAction::DeliveryReplay => BulkOperation {
            operation: webhooks::REPLAY_DELIVERY.route,
            list: webhooks::LIST_DELIVERIES.route,
            id: "delivery_id",
            reason: ReasonUse::None,
            fixed: None,
        },
    }
}

impl BulkOperation {
    /// Path of the operation for an object, below the prefix of the operator API.
    #[must_use]
    pub fn path(&self, object_id: &str) -> String {
        self.operation
            .path
            .replace(&format!("{{{}}}", self.id), object_id)
    }

    /// The body of each request, as JSON; `None` if the operation has none.
    #[must_use]
    pub fn body(&self, reason: Option<&str>) -> Option<String> {
        if self.reason == ReasonUse::None {
            return None;
        }
        let fields = self
            .fixed
            .into_iter()
            .chain(reason.map(|reason| ("reason", reason)));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
        Some(serde_json::Value::Object(fields.collect()).to_string())
    }
}

impl BulkJobRequest {
    /// # Errors
    /// `VALIDATION_FAILED` for too many or no objects, an ID that is none or is repeated, or a reason that is
    /// missing or has no use.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        if self.ids.is_empty() || self.ids.len() > MAX_OBJECTS {
            let message = format!("expected 1 to {MAX_OBJECTS} IDs; start several jobs for more");
            return Err(InvalidRequest::field("ids", message));
        }
        let mut seen = std::collections::HashSet::new();
        for (index, id) in self.ids.iter().enumerate() {
            let field = || format!("ids[{index}]");
            if !is_object_id(id) {
                let message = "expected a prefix such as ord_ and 32 lower-case hex digits";
                return Err(InvalidRequest::field(field(), message));
            }
            if !seen.insert(id) {
                return Err(InvalidRequest::field(field(), "given more than once"));
            }
        }
        match (bulk_operation(self.action).reason, &self.reason) {
            (ReasonUse::Required, None) => Err(InvalidRequest::field("reason", "is missing")),
            (ReasonUse::None, Some(_)) => Err(InvalidRequest::field(
                "reason",
                "this action has no reason; remove it",
            )),
            _ => Ok(()),
        }
    }
}

/// Whether the text can be an ID: it becomes part of a path.
fn is_object_id(text: &str) -> bool {
    text.split_once('_').is_some_and(|(prefix, digits)| {
        (1..=4).contains(&prefix.len())
            && prefix.bytes().all(|byte| byte.is_ascii_lowercase())
            && digits.len() == 32
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    const ID: &str = "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

    fn check(action: BulkAction, ids: &[&str], reason: Option<&str>) -> String {
        let request = BulkJobRequest {
            action,
            ids: ids.iter().map(ToString::to_string).collect(),
            reason: reason.map(|reason| reason.parse().unwrap()),
        };
        request
            .check()
            .map_or_else(|error| error.message, |()| String::new())
    }

    #[test]
    fn action_calls_an_operation_on_an_entry_of_its_list() {
        for action in BulkAction::VARIANTS {
            let bulk = bulk_operation(*action);
            assert!(bulk.list.is_list, "{action:?}");
            assert!(!bulk.path(ID).contains('{'), "{action:?}: {}", bulk.path(ID));
            let has_id = |column: &crate::column::Column| column.fields == bulk.id;
            assert!(has_id(&bulk.list.columns[0]), "{action:?}");
        }
        let escalate = bulk_operation(BulkAction::DriftEscalate);
        assert_eq!(
            escalate.body(Some("a \"b\"")).unwrap(),
            r#"{"reason":"a \"b\"","resolution":"escalated"}"#
        );
        assert_eq!(bulk_operation(BulkAction::RequestConfirm).body(None), None);
    }

    #[test]
    fn job_needs_distinct_ids_and_the_reason_of_its_action() {
        assert_eq!(check(BulkAction::OrderApprove, &[ID], Some("r")), "");
        assert_eq!(check(BulkAction::DeliveryReplay, &[ID], None), "");
        for (action, ids, reason, message) in [
            (BulkAction::OrderApprove, &[ID][..], None, "reason: is missing"),
            (
                BulkAction::RequestConfirm,
                &[ID],
                Some("r"),
                "reason: this action has no reason; remove it",
            ),
            (
                BulkAction::OrderApprove,
                &[ID, ID],
                Some("r"),
                "ids[1]: given more than once",
            ),
            (
                BulkAction::OrderApprove,
                &["ord_1/../x"],
                Some("r"),
                "ids[0]: expected a prefix such as ord_ and 32 lower-case hex digits",
            ),
            (
                BulkAction::OrderApprove,
                &[],
                Some("r"),
                "ids: expected 1 to 1000 IDs; start several jobs for more",
            ),
        ] {
            assert_eq!(check(action, ids, reason), message);
        }
    }
}
