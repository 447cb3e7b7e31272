//! `vouchsafe health`: readiness of the service, for container health checks and units.

use std::time::Duration;

use clap::Args;
use vouchsafe_wire::health::GET_READINESS;

use super::client::{ClientCertificate, ErrorResponse, build_client, parse_url, send};
use super::examples::examples;
use super::{CONNECTION_OPTIONS, CommandOutput, LocalService, output};

/// `/readyz` itself gives the database one second.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe health",
    "vouchsafe health --admin-url http://127.0.0.1:8081",
])]
pub struct HealthArgs {
    /// URL of the operator listener [default: from VOUCHSAFE_ADMIN_ADDR].
    #[arg(
        long = "admin-url",
        help_heading = CONNECTION_OPTIONS,
        env = "VOUCHSAFE_ADMIN_URL",
        value_name = "URL"
    )]
    url: Option<String>,

    #[command(flatten)]
    certificate: ClientCertificate,
}

pub(super) async fn run(
    args: &HealthArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let url = args.url.as_deref().unwrap_or(&local_service.admin_url);
    parse_url(url, "--admin-url")?;
    let url = url.trim_end_matches('/');
    let request = build_client(url, &args.certificate)?.get(format!("{url}{}", GET_READINESS.route.path));
    let response = send(request.timeout(HEALTH_TIMEOUT), url, "--admin-url").await?;
    if !response.status.is_success() {
        return Err(ErrorResponse::new(response.status, response.body, json).into());
    }
    if json {
        return Ok(response.body.into());
    }
    output::format_object(&response.body).map(CommandOutput::from)
}
