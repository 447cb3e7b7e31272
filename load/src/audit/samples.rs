//! Audit of sampled orders: read back, and replayed under their keys.

use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::wire::{OrderView, without_first_reads};

use super::AuditedPartner;
use super::account::get_ok;
use crate::tally::acknowledgements::Sample;

/// Checks each sampled order with the client of its partner.
pub(super) async fn check_samples(
    accounts: &mut [AuditedPartner],
    samples: &[Sample],
    check: impl AsyncFn(&mut PartnerClient, &Sample, &OrderView<'_>) -> Result<(), String>,
) -> Result<String, String> {
    for sample in samples {
        let order = OrderView::parse(&sample.response).map_err(|error| format!("invalid order: {error}"))?;
        let client = accounts[sample.partner].client();
        let result = check(client, sample, &order).await;
        result.map_err(|reason| format!("{}: {reason}", order.order_id))?;
    }
    Ok(format!("{} sampled orders", samples.len()))
}

/// `GET` must return the order as acknowledged: a delivered one byte for byte, but for reads of its codes. A
/// pending one may have progressed.
pub(super) async fn read_back(
    client: &mut PartnerClient,
    sample: &Sample,
    acknowledged: &OrderView<'_>,
) -> Result<(), String> {
    let response = get_ok(client, &format!("/orders/{}", acknowledged.order_id)).await?;
    if *without_first_reads(&response.body) == *sample.response {
        return Ok(());
    }
    if acknowledged.status == "DELIVERED" {
        let length = response.body.len();
        return Err(format!("{length} bytes differ from the acknowledged response"));
    }
    let current = OrderView::parse(&response.body).map_err(|error| format!("invalid order: {error}"))?;
    let is_still_allocated = |voucher: &str| current.vouchers.iter().any(|other| other.voucher_id == voucher);
    let same = acknowledged.order_id == current.order_id
        && acknowledged.total_amount.get() == current.total_amount.get()
        && acknowledged.currency == current.currency
        && acknowledged
            .vouchers
            .iter()
            .all(|voucher| is_still_allocated(voucher.voucher_id));
    same.then_some(())
        .ok_or_else(|| "id, total, currency or vouchers changed".to_owned())
}

/// `POST` under the same key must return the stored response, marked as a replay.
pub(super) async fn replay(
    client: &mut PartnerClient,
    sample: &Sample,
    _acknowledged: &OrderView<'_>,
) -> Result<(), String> {
    let response = client.order(&sample.key, sample.request.clone()).await;
    let response = response.map_err(|failure| failure.to_string())?;
    if response.status.as_u16() != sample.status || response.body != sample.response {
        return Err(format!(
            "different response under its key, status {}",
            response.status
        ));
    }
    if response.header("idempotent-replayed") != Some("true") {
        return Err("the replay lacks `Idempotent-Replayed: true`".to_owned());
    }
    Ok(())
}
