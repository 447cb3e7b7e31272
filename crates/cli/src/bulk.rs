//! `vouchsafe bulk`: one action on many objects, as one job.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde::Deserialize;
use vouchsafe_domain::bulk_job::{BulkAction, BulkItemFilter, BulkJobStatus, BulkResult, MAX_OBJECTS};
use vouchsafe_domain::ids::BulkJobId;
use vouchsafe_wire::column::of_terminal;
use vouchsafe_wire::operator::bulk_jobs::{
    BulkJobRequest, GET_BULK_JOB, LIST_BULK_ITEMS, LIST_BULK_JOBS, START_BULK_JOB, bulk_operation,
};
use vouchsafe_wire::query;

use super::admin::{AdminClient, ListArgs, NO_BODY};
use super::examples::examples;
use super::exit::UsageError;
use super::id::{BulkJobRef, ObjectRef as _};
use super::target::Target;
use super::{CommandOutput, output, print_error};

/// Between two looks at a job that runs.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Start a job, wait for its end and print the result of each object.
    #[command(after_help = examples![
        "vouchsafe bulk start ORDER_APPROVE ORDER_ID --reason 'agreed by telephone'",
    ])]
    Start(StartArgs),
    /// Start a job of the objects that an interrupted job has left, with its action and reason.
    #[command(after_help = examples!["vouchsafe bulk continue JOB_ID"])]
    Continue(BulkJobRef),
    /// List jobs, newest first.
    #[command(after_help = examples!["vouchsafe bulk list"])]
    List(ListArgs),
    /// Show a job.
    #[command(after_help = examples!["vouchsafe bulk show JOB_ID"])]
    Show(BulkJobRef),
    /// List the objects of a job with their results.
    #[command(after_help = examples!["vouchsafe bulk items JOB_ID --result REFUSED"])]
    Items(ItemsArgs),
}

#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    request: BulkJobRequest,
    /// All that match these filters instead of IDs, as in the query of their list, such as
    /// 'pending_reason=APPROVAL&partner_id=PARTNER_ID'.
    #[arg(long, value_name = "FILTERS", conflicts_with = "ids")]
    filter: Option<String>,
}

#[derive(Debug, Args)]
pub struct ItemsArgs {
    #[command(flatten)]
    job: BulkJobRef,
    #[command(flatten)]
    list: ListArgs<BulkItemFilter>,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Start(StartArgs { mut request, filter }) => {
            if let Some(filter) = filter {
                request.ids = find_ids(admin, request.action, &filter).await?;
            }
            if request.ids.is_empty() {
                return Err(UsageError("name the IDs of the objects, or --filter".to_owned()).into());
            }
            start(admin, &request).await
        }
        Action::Continue(job) => continue_job(admin, &job).await,
        Action::List(list) => admin.list(LIST_BULK_JOBS, &list).await,
        Action::Show(job) => admin.run(job.at(GET_BULK_JOB)).await,
        Action::Items(args) => admin.list(args.job.at(LIST_BULK_ITEMS), &args.list).await,
    }
}

/// A page of a list whose entries have IDs.
#[derive(Deserialize)]
struct IdPage {
    data: Vec<serde_json::Map<String, serde_json::Value>>,
    next_cursor: Option<String>,
}

/// The IDs of the objects that match the filters.
async fn find_ids(admin: &AdminClient, action: BulkAction, filter: &str) -> anyhow::Result<Vec<String>> {
    let bulk = bulk_operation(action);
    let list = Target::<(), ()>::of(&bulk.list);
    list_ids(admin, list, filter, bulk.id).await
}

async fn list_ids(
    admin: &AdminClient,
    list: Target<(), ()>,
    filter: &str,
    field: &str,
) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    let mut pairs =
        query::split(filter).map_err(|error| UsageError(format!("--filter: {}", error.message)))?;
    pairs.push(("limit".to_owned(), "100".to_owned()));
    let list = list.query(&query::to_string(&pairs)?);
    let mut body = admin.call(list.clone(), NO_BODY).await?;
    loop {
        let page: IdPage = serde_json::from_str(&body).context("unexpected response format")?;
        let found = page.data.iter().filter_map(|entry| entry.get(field)?.as_str());
        ids.extend(found.map(ToOwned::to_owned));
        if ids.len() > MAX_OBJECTS {
            bail!("more than {MAX_OBJECTS} objects match; narrow --filter, for example by a time");
        }
        match page.next_cursor {
            Some(cursor) => body = admin.call(list.at_cursor(&cursor), NO_BODY).await?,
            None => return Ok(ids),
        }
    }
}

#[derive(Deserialize)]
struct Job {
    job_id: BulkJobId,
    action: BulkAction,
    reason: Option<String>,
    status: BulkJobStatus,
    objects: u32,
    done: u32,
    requested: u32,
    refused: u32,
    failed: u32,
}

async fn continue_job(admin: &AdminClient, job: &BulkJobRef) -> anyhow::Result<CommandOutput> {
    let found: Job = serde_json::from_str(&admin.call(job.at(GET_BULK_JOB), NO_BODY).await?)
        .context("unexpected response format")?;
    let items = job.at(LIST_BULK_ITEMS).untyped();
    let waiting = format!("result={}", BulkResult::Waiting.into_str());
    let ids = list_ids(admin, items, &waiting, "object_id").await?;
    if found.status == BulkJobStatus::Running || ids.is_empty() {
        bail!("the job runs, or each of its objects has a result; `vouchsafe bulk show` shows it");
    }
    let reason = found.reason.map(|reason| reason.parse()).transpose();
    let request = BulkJobRequest {
        action: found.action,
        ids,
        reason: reason.map_err(anyhow::Error::msg)?,
    };
    start(admin, &request).await
}

/// Starts a job, and prints its results when it has ended.
async fn start(admin: &AdminClient, request: &BulkJobRequest) -> anyhow::Result<CommandOutput> {
    let mut body = admin.call(START_BULK_JOB, Some(request)).await?;
    let mut results = 0;
    let job = loop {
        let job: Job = serde_json::from_str(&body).context("unexpected response format")?;
        let now = job.done + job.requested + job.refused + job.failed;
        if now > results && !admin.is_json_output() {
            print_error(&format!("{now} of {} objects", job.objects));
            results = now;
        }
        if job.status != BulkJobStatus::Running {
            break job;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        let target = Target::from(GET_BULK_JOB).with("job_id", &job.job_id.to_string());
        body = admin.call(target, NO_BODY).await?;
    };
    let succeeded = job.done + job.requested == job.objects;
    let text = if admin.is_json_output() {
        body
    } else {
        let items = Target::from(LIST_BULK_ITEMS).with("job_id", &job.job_id.to_string());
        let rows = admin.query(items, &format!("limit={}", 100)).await?;
        let columns = of_terminal(LIST_BULK_ITEMS.route.columns);
        let items = output::format_list(
            &rows,
            &columns,
            "",
            &super::table_options::TableOptions::default(),
        )?;
        let more = if job.objects > 100 {
            format!("\nMore: vouchsafe bulk items {} --csv", job.job_id)
        } else {
            String::new()
        };
        format!(
            "{items}{more}\n{}: {} of {} done, {} wait for another operator, {} refused, {} failed",
            job.job_id, job.done, job.objects, job.requested, job.refused, job.failed
        )
    };
    Ok(CommandOutput { text, succeeded })
}
