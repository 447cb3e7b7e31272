//! `vouchsafe trouble`: what may need an operator now, from several lists.

use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;
use vouchsafe_wire::column::{Column, col};
use vouchsafe_wire::operator::monitoring::{ACTOR_SUM_COLUMNS, GET_OVERVIEW, LIST_ACTORS, LIST_REFUSALS};
use vouchsafe_wire::operator::operation::Route;
use vouchsafe_wire::operator::reconciliation::LIST_DRIFTS;
use vouchsafe_wire::operator::refusals::Hours;
use vouchsafe_wire::operator::webhooks::LIST_WEBHOOKS;

use super::CommandOutput;
use super::admin::AdminClient;
use super::output::{format_field_table, format_object};
use super::target::Target;

#[derive(Debug, Args)]
pub struct TroubleArgs {
    /// Age of the oldest refused requests, at most 24h; counted in whole hours.
    #[arg(long, value_name = "AGE", default_value = "1h", value_parser = parse_hours)]
    since: Hours,
}

/// Part of the report: a field of a response that holds a list.
struct Section {
    heading: &'static str,
    /// Its field in the JSON report.
    name: &'static str,
    route: Route,
    query: &'static str,
    field: &'static str,
    columns: &'static [Column],
}

const SECTIONS: [Section; 5] = [
    Section {
        heading: "Failing webhooks",
        name: "webhooks",
        route: LIST_WEBHOOKS.route,
        query: "status=failing",
        field: "data",
        columns: LIST_WEBHOOKS.route.columns,
    },
    Section {
        heading: "Disabled webhooks",
        name: "disabled_webhooks",
        route: LIST_WEBHOOKS.route,
        query: "status=disabled",
        field: "data",
        columns: &[
            col("Webhook", "webhook_id"),
            col("Partner", "partner_id"),
            col("Backlog", "backlog"),
            col("Reason", "disabled_reason"),
            col("Disabled", "disabled_at"),
        ],
    },
    Section {
        heading: "Drifts without a resolution (pending)",
        name: "drifts",
        route: LIST_DRIFTS.route,
        query: "resolution=pending",
        field: "data",
        columns: LIST_DRIFTS.route.columns,
    },
    Section {
        heading: "Low stock",
        name: "overview",
        route: GET_OVERVIEW.route,
        query: "",
        field: "low_stock",
        columns: GET_OVERVIEW.route.columns,
    },
    Section {
        heading: "Actors of this node, since its start",
        name: "actors",
        route: LIST_ACTORS.route,
        query: "limit=1",
        field: "sums",
        columns: &ACTOR_SUM_COLUMNS,
    },
];

/// Rounds up to whole hours.
fn parse_hours(text: &str) -> Result<Hours, String> {
    let expected = || "expected an age of at most 24h, such as 1h".to_owned();
    let age = humantime::parse_duration(text).map_err(|_| expected())?;
    let hours = age.as_secs().div_ceil(Duration::from_hours(1).as_secs()).max(1);
    hours.to_string().parse().map_err(|_| expected())
}

pub(super) async fn run(args: &TroubleArgs, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let overview = admin.query(GET_OVERVIEW, "").await?;
    let query = format!("limit=100&hours={}", args.since);
    let refusals = admin.query(LIST_REFUSALS, &query).await?;
    let mut lists = Vec::new();
    for section in &SECTIONS {
        lists.push((
            section,
            admin
                .query(Target::<(), ()>::of(&section.route), section.query)
                .await?,
        ));
    }
    if admin.is_json_output() {
        return to_json(&overview, &refusals, &lists);
    }
    let mut parts = vec![
        format!("Overview\n{}", format_object(&overview)?),
        format_section(
            "Refused requests of this node",
            &refusals,
            "data",
            LIST_REFUSALS.route.columns,
        )?,
    ];
    for (section, body) in &lists {
        parts.push(format_section(
            section.heading,
            body,
            section.field,
            section.columns,
        )?);
    }
    Ok(parts.join("\n\n").into())
}

fn format_section(heading: &str, body: &str, field: &str, columns: &[Column]) -> anyhow::Result<String> {
    let table = format_field_table(body, field, columns)?;
    let table = if table.lines().count() > 1 {
        &table
    } else {
        "(none)"
    };
    Ok(format!("{heading}\n{table}"))
}

/// The responses by name.
fn to_json(overview: &str, refusals: &str, lists: &[(&Section, String)]) -> anyhow::Result<CommandOutput> {
    let mut report = serde_json::Map::new();
    let lists = lists.iter().map(|(section, body)| (section.name, body.as_str()));
    for (name, body) in [("overview", overview), ("refusals", refusals)]
        .into_iter()
        .chain(lists)
    {
        let body: &RawValue = serde_json::from_str(body)?;
        report.insert(name.to_owned(), serde_json::to_value(body)?);
    }
    Ok(serde_json::to_string(&report)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_rounded_up_to_hours_of_a_day() {
        let hours = |text| parse_hours(text).map(Hours::get).ok();
        assert_eq!(
            ["1s", "1h", "90m", "1d", "25h", "soon"].map(hours),
            [Some(1), Some(1), Some(2), Some(24), None, None]
        );
    }
}
