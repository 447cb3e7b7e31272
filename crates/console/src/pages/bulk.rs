//! Bulk jobs: list, a job with the result of each object, and the start of one.

use vouchsafe_domain::bulk_job::BulkResult;
use vouchsafe_wire::operator::bulk_jobs;

use super::audit_of;
use crate::json::Json;
use crate::page::{Action, Input, List, Object, Page, REASON, Section, choice, col, labels, target};

fn banner(job: &Json) -> &'static str {
    match job.get("status").text() {
        Some("RUNNING") => "The job runs. Load the page again to see its progress.",
        Some("INTERRUPTED") => {
            "The node of the job has stopped. Objects without a result were not changed, or it is unknown."
        }
        _ => "",
    }
}

pub(super) static PAGES: [Page; 4] = [
    Page::list("/bulk-jobs", "Bulk jobs", List::of(bulk_jobs::LIST_BULK_JOBS)),
    Page::bulk_start("/bulk-jobs/new", "Start a bulk job").actions(&[Action::new(
        "start",
        "Start",
        bulk_jobs::START_BULK_JOB,
    )
    .inputs(&[
        Input::field("action", "Action").prefilled(),
        REASON.prefilled(),
        Input::field("ids", "Objects").prefilled(),
    ])
    .open()
    .leads_to("/bulk-jobs/{job_id}")]),
    Page::object(
        "/bulk-jobs/{job_id}",
        "Bulk job",
        Object::of(
            bulk_jobs::GET_BULK_JOB,
            "job_id",
            &[
                col("Status", "status"),
                col("Action", "action"),
                col("Objects", "objects"),
                col("Done", "done"),
                col("Wait for another operator", "requested"),
                col("Refused", "refused"),
                col("Failed", "failed"),
                col("Reason", "reason"),
                col("Operator", "operator"),
                col("Started", "started_at"),
                col("Last result", "ended_at"),
                col("Trace", "trace_id"),
            ],
            &[
                Section::list(
                    "Results",
                    target(bulk_jobs::LIST_BULK_ITEMS).query("limit=100"),
                    "/bulk-jobs/{job_id}/items",
                    "No objects.",
                ),
                audit_of("subject={job_id}&limit=5", "/audit?subject={job_id}"),
            ],
        )
        .banner(banner)
        .follow_up((
            |job| job.is("status", "INTERRUPTED"),
            "Start a job of what is left",
            "/bulk-jobs/new?job={job_id}",
        )),
    ),
    Page::list(
        "/bulk-jobs/{job_id}/items",
        "Objects of",
        List::of(bulk_jobs::LIST_BULK_ITEMS).filters(&[choice("result", "Result", labels::<BulkResult>)]),
    ),
];
