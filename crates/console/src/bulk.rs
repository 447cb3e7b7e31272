//! Bulk jobs: the choice of entries of a list, and the page that shows the chosen ones before a job
//! starts.

use maud::{Markup, html};
use strum::VariantArray as _;
use vouchsafe_domain::bulk_job::{BulkAction, BulkResult, MAX_OBJECTS};
use vouchsafe_wire::operator::bulk_jobs::{GET_BULK_JOB, LIST_BULK_ITEMS, bulk_operation};
use vouchsafe_wire::operator::operation::Route;
use vouchsafe_wire::page::is_page_parameter;

use crate::api::{AdminApi, Refusal, get};
use crate::form;
use crate::json::Json;
use crate::page::target;
use crate::template::{self, encode};
use crate::visit::{Shown, Visit};

/// Form of the check boxes.
pub(crate) const FORM: &str = "bulk";

/// Values of the parameter `of` of the page: the checked entries, or all that match `filter`.
const SELECTED: &str = "selected";
const ALL: &str = "all";

const fn words(action: BulkAction) -> &'static str {
    match action {
        BulkAction::OrderApprove => "Approve orders",
        BulkAction::OrderReject => "Reject orders",
        BulkAction::OrderCancel => "Cancel orders",
        BulkAction::PayoutPay => "Record payouts as paid",
        BulkAction::PayoutReject => "Reject payouts",
        BulkAction::PayoutFail => "Record payouts as failed",
        BulkAction::RequestConfirm => "Confirm requests",
        BulkAction::RequestDecline => "Decline requests",
        BulkAction::DriftResolve => "Resolve drifts",
        BulkAction::DriftEscalate => "Escalate drifts to the vendor",
        BulkAction::DeliveryReplay => "Replay deliveries",
    }
}

/// The actions on entries of this list that the viewer's role permits.
fn actions<'a>(visit: &'a Visit<'_>, list: &'a Route) -> impl Iterator<Item = BulkAction> + 'a {
    BulkAction::VARIANTS.iter().copied().filter(move |action| {
        let bulk = bulk_operation(*action);
        bulk.list.id == list.id && visit.viewer.role >= bulk.operation.access.role
    })
}

/// Field with the ID of a check box; `None` if the viewer may do nothing with the entries.
pub(crate) fn id_field(visit: &Visit<'_>, list: &Route) -> Option<&'static str> {
    let action = actions(visit, list).next()?;
    Some(bulk_operation(action).id)
}

/// The form of the check boxes. `query` is that of the list in the API.
pub(crate) fn choice(visit: &Visit<'_>, list: &Route, query: &str) -> Markup {
    let mut filter = template::pairs(query.as_bytes());
    filter.retain(|(name, _)| !is_page_parameter(name));
    html! {
        form.filters id=(FORM) action="/bulk-jobs/new" aria-label="Do with many entries" {
            input type="hidden" name="filter" value=(template::query(&filter));
            div.field {
                label for="bulk-action" { "With many entries" }
                select id="bulk-action" name="action" {
                    @for action in actions(visit, list) { option value=(action.into_str()) { (words(action)) } }
                }
            }
            div.buttons {
                button type="submit" name="of" value=(SELECTED) { "The selected" }
                button type="submit" name="of" value=(ALL) { "All that match the filter" }
            }
        }
    }
}

/// The objects of a job to start.
struct Choice {
    action: BulkAction,
    ids: Vec<String>,
    reason: Json,
    /// Whether more than a job takes match the filter.
    has_more: bool,
}

/// The page on which a job starts: the chosen objects and their number, before anything is changed.
///
/// # Errors
/// The API does not show the list or job.
pub(crate) async fn show(api: &impl AdminApi, visit: &Visit<'_>) -> Result<Shown, Refusal> {
    let choice = read_choice(api, visit).await?;
    let content = match choice {
        None => html! {
            h1 { (visit.page.title) }
            p { "Check entries in the list of orders, payouts, requests, drifts or deliveries first." }
        },
        Some(choice) => {
            let mut row = Json::Null;
            let count = choice.ids.len();
            row.set("action", Json::Text(choice.action.into_str().to_owned()));
            row.set(
                "ids",
                Json::List(choice.ids.into_iter().map(Json::Text).collect()),
            );
            row.set("reason", choice.reason);
            html! {
                h1 { (words(choice.action)) ": " span.name { (count) } }
                @if let Some(failed) = visit.failed { (form::render_refusal(failed.refusal)) }
                @if count == 0 { p { "Nothing is selected, or nothing matches the filter." } }
                @else {
                    @if choice.has_more {
                        p.banner role="note" {
                            "More than " (MAX_OBJECTS) " match the filter. These are the first; start another job for the others."
                        }
                    }
                    p { "Each is changed by itself, in your name: what the service refuses stays as it is, and the job shows why." }
                    div.actions { (visit.forms(visit.page.actions, &row, "page")) }
                }
            }
        }
    };
    Ok(Shown {
        title: visit.page.title.to_owned(),
        content,
        only_result: None,
    })
}

async fn read_choice(api: &impl AdminApi, visit: &Visit<'_>) -> Result<Option<Choice>, Refusal> {
    let job_id = visit.parameter("job");
    if !job_id.is_empty() {
        let id = |name: &str| (name == "job_id").then(|| job_id.to_owned());
        let job = get(api, target(GET_BULK_JOB).fill(id)).await?.json;
        let query = format!("result={}", BulkResult::Waiting.into_str());
        let items = target(LIST_BULK_ITEMS).fill(id);
        let (ids, has_more) = list_ids(api, &items, &query, "object_id").await?;
        let action = job.get("action").text().and_then(|action| action.parse().ok());
        return Ok(action.map(|action| Choice {
            action,
            ids,
            reason: job.get("reason").clone(),
            has_more,
        }));
    }
    let Ok(action) = visit.parameter("action").parse::<BulkAction>() else {
        return Ok(None);
    };
    let bulk = bulk_operation(action);
    let (ids, has_more) = if visit.parameter("of") == ALL {
        list_ids(api, bulk.list.path, visit.parameter("filter"), bulk.id).await?
    } else {
        let ids = visit.query.iter().filter(|(name, _)| name == "id");
        (ids.map(|(_, id)| id.clone()).collect(), false)
    };
    Ok(Some(Choice {
        action,
        ids,
        reason: Json::Null,
        has_more,
    }))
}

/// The IDs of a list's entries, as many as a job takes, and whether there are more.
async fn list_ids(
    api: &impl AdminApi,
    path: &str,
    filter: &str,
    field: &str,
) -> Result<(Vec<String>, bool), Refusal> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let separator = if filter.is_empty() { "" } else { "&" };
        let page = get(api, format!("{path}?{filter}{separator}limit=100{cursor}"))
            .await?
            .json;
        let found = page.get("data").entries().iter();
        ids.extend(found.filter_map(|entry| entry.get(field).text().map(ToOwned::to_owned)));
        if ids.len() > MAX_OBJECTS {
            ids.truncate(MAX_OBJECTS);
            return Ok((ids, true));
        }
        match page.get("next_cursor").text() {
            Some(next) => cursor = format!("&cursor={}", encode(next)),
            None => return Ok((ids, false)),
        }
    }
}
