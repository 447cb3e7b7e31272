//! `GET /nodes` and `GET /lanes`: the nodes of the deployment, and the lanes of this one.

use actix_web::web;
use vouchsafe_actors::journal::LaneStats;
use vouchsafe_domain::node::LaneBody;
use vouchsafe_wire::filter::WholeList;

use crate::api::error::ApiResult;
use crate::api::list_request::{ListRequest, list_response, sorted_list_response};
use crate::api::operator::OperatorState;

/// `GET /nodes`.
pub(super) async fn list(
    service: web::Data<OperatorState>,
    ListRequest { page, .. }: ListRequest<WholeList>,
) -> ApiResult {
    let nodes = service.store.nodes.list().await?;
    sorted_list_response(&page, nodes, |node| node.node.clone())
}

/// `GET /lanes`.
pub(super) async fn list_lanes(
    service: web::Data<OperatorState>,
    ListRequest { page, .. }: ListRequest<WholeList>,
) -> ApiResult {
    let after: Option<usize> = page.after()?;
    let lanes = service.engine.lanes().into_iter().enumerate();
    let rest = lanes
        .filter(|(lane, _)| after.is_none_or(|after| *lane > after))
        .map(|(lane, stats)| reading(lane, stats));
    list_response(&page, rest.take(page.fetch_limit()), |lane| lane.lane)
}

fn reading(lane: usize, stats: LaneStats) -> LaneBody {
    LaneBody {
        lane,
        in_flight: stats.in_flight,
        queued: stats.queued,
        batches: stats.batches,
        last_batch_records: stats.last_batch_records,
        last_commit_us: u64::try_from(stats.last_commit.as_micros()).unwrap_or(u64::MAX),
        can_commit: stats.can_commit,
    }
}
