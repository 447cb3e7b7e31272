//! OpenAPI operations of `/bulk-jobs`.

use serde_json::{Value, json};
use vouchsafe_wire::operator::bulk_jobs;

use super::describe;
use crate::openapi::Operation;

pub(super) fn bulk_jobs() -> [Operation; bulk_jobs::OPERATIONS.len()] {
    let ended = job("ENDED", 2);
    [
        describe(bulk_jobs::LIST_BULK_JOBS, "Newest first. A job is listed for a year.").list("Page of jobs.", ended.clone()),
        describe(
            bulk_jobs::START_BULK_JOB,
            "Calls the operation of the action for each object, one after the other, in your name: roles, second operators, a recent \
            sign-in, validation and audit entries are those of the operation. The response arrives at once; the job goes on. A \
            second operator confirms each change, or many with `REQUEST_CONFIRM`, which refuses changes whose response has a \
            secret. A job stops to change anything when your account is disabled or loses the role. If its node stops, the job is \
            `INTERRUPTED` after a minute: start another one of the objects whose result is `WAITING`. An object that the first job \
            has changed meanwhile is refused, or sent again by `DELIVERY_REPLAY`.",
        )
        .json_body(json!({
            "action": "ORDER_APPROVE", "reason": "agreed by telephone",
            "ids": ["ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e60"],
        }))
        .created("The job.", job("RUNNING", 0)),
        describe(bulk_jobs::GET_BULK_JOB, "").ok("The job.", ended),
        describe(bulk_jobs::LIST_BULK_ITEMS, "In the order of the request.").list(
            "Page of objects with their results.",
            json!({
                "position": 2, "object_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e60", "result": "REFUSED",
                "error_code": "ORDER_NOT_AWAITING_APPROVAL", "message": "the order does not wait for approval", "request_id": null,
                "ended_at": "2026-11-20T12:00:00.223456Z",
            }),
        ),
    ]
}

fn job(status: &str, results: u32) -> Value {
    json!({
        "job_id": "blk_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "action": "ORDER_APPROVE", "reason": "agreed by telephone",
        "operator": "jane.doe", "status": status, "objects": 2, "done": results / 2, "requested": 0, "refused": results / 2, "failed": 0,
        "started_at": "2026-11-20T12:00:00.123456Z", "ended_at": (results > 0).then_some("2026-11-20T12:00:00.223456Z"),
        "trace_id": "0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
    })
}
