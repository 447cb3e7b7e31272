//! Live actors that no order of the load uses: an order of a SKU without stock starts its inventory actor,
//! which stays in memory.

use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use crate::deployment::TestDeployment;
use crate::deployment::operator::Operator;

/// Concurrent connections that start actors.
const STARTERS: u32 = 16;

/// Attempts per order: the first claims of thousands of SKUs overload the service for a moment.
const ATTEMPTS: u32 = 50;

const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Product whose face values are the SKUs without stock.
const PRODUCT: &str = "idle-actors";

/// Error code of an order of a SKU without stock, which has started the actor.
const NO_STOCK: &str = "INSUFFICIENT_INVENTORY";

/// Orders one voucher of each of `count` SKUs without stock.
pub(crate) async fn start_idle_actors(
    deployment: &mut TestDeployment,
    credentials: &Credentials,
    count: u32,
) -> anyhow::Result<()> {
    // A range of one value is no range.
    let range = json!({ "min": 1, "max": count.max(2), "step": 1 });
    deployment.operator().put_product(PRODUCT, &[], range).await?;
    let url = deployment.base_url();
    let starters = (1..=STARTERS).map(|first| {
        let client = PartnerClient::new(&url, credentials.clone());
        async move { order_each(client?, (first..=count).step_by(STARTERS as usize)).await }
    });
    try_join_all(starters).await.map(drop)
}

async fn order_each(
    mut client: PartnerClient,
    denominations: impl Iterator<Item = u32>,
) -> anyhow::Result<()> {
    for denomination in denominations {
        let body = format!(
            r#"{{"items":[{{"product_id":"{PRODUCT}","denomination":{denomination},"quantity":1}}]}}"#
        );
        for attempt in 1.. {
            let response = client
                .order(&format!("start-{denomination}"), body.clone())
                .await?;
            if response.error_code().as_deref() == Some(NO_STOCK) {
                break;
            }
            let text = String::from_utf8_lossy(&response.body);
            ensure!(
                response.status == StatusCode::SERVICE_UNAVAILABLE && attempt < ATTEMPTS,
                "order of a SKU without stock: {} {text}",
                response.status
            );
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
    Ok(())
}

/// Counts the live actors of all kinds.
pub(crate) async fn count_actors(operator: &mut Operator) -> anyhow::Result<u64> {
    let actors: Value = operator.get("/admin/v1/actors?limit=1").await?.json()?;
    let sums = actors["sums"].as_array().context("/actors has no sums")?;
    Ok(sums.iter().filter_map(|kind| kind["actors"].as_u64()).sum())
}
