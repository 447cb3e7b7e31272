//! Audit of sampled orders: read back, and replayed under their keys.

use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::wire::OrderView;

use super::AuditedPartner;
use super::account::get_ok;
use crate::tally::acknowledgements::Sample;

/// Checks that `GET` returns each sampled order as acknowledged.
pub(super) async fn check_read_back(
    accounts: &mut [AuditedPartner],
    samples: &[Sample],
) -> Result<String, String> {
    for sample in samples {
        let order_id = parse_order_id(sample)?;
        let client = accounts[sample.partner].client();
        let response = get_ok(client, &format!("/orders/{order_id}")).await?;
        compare_order(sample, &response).map_err(|reason| format!("{order_id}: {reason}"))?;
    }
    Ok(format!("{} sampled orders", samples.len()))
}

/// A delivered order must be identical byte for byte. A pending one may have progressed.
fn compare_order(sample: &Sample, response: &ApiResponse) -> Result<(), String> {
    if sample.response == response.body {
        return Ok(());
    }
    let parse = |body| OrderView::parse(body).map_err(|error| format!("invalid order: {error}"));
    let (acknowledged, current) = (parse(&sample.response)?, parse(&response.body)?);
    if acknowledged.status == "DELIVERED" {
        return Err(format!(
            "{} bytes differ from the acknowledged response",
            response.body.len()
        ));
    }
    let is_still_allocated = |voucher: &str| current.vouchers.iter().any(|other| other.voucher_id == voucher);
    let same = acknowledged.order_id == current.order_id
        && acknowledged.total_amount.get() == current.total_amount.get()
        && acknowledged.currency == current.currency
        && acknowledged
            .vouchers
            .iter()
            .all(|voucher| is_still_allocated(voucher.voucher_id));
    if same {
        Ok(())
    } else {
        Err("id, total, currency or vouchers changed".to_owned())
    }
}

/// Checks that `POST` under the same key returns the stored response, marked as a replay.
pub(super) async fn check_replay(
    accounts: &mut [AuditedPartner],
    samples: &[Sample],
) -> Result<String, String> {
    for sample in samples {
        let order_id = parse_order_id(sample)?;
        let client = accounts[sample.partner].client();
        let response = client.order(&sample.key, sample.request.clone()).await;
        let response = response.map_err(|failure| format!("{order_id}: {failure}"))?;
        if response.status.as_u16() != sample.status || response.body != sample.response {
            return Err(format!(
                "{order_id}: different response under its key, status {}",
                response.status
            ));
        }
        if response.header("idempotent-replayed") != Some("true") {
            return Err(format!(
                "{order_id}: the replay lacks `Idempotent-Replayed: true`"
            ));
        }
    }
    Ok(format!("{} sampled orders", samples.len()))
}

fn parse_order_id(sample: &Sample) -> Result<&str, String> {
    OrderView::parse(&sample.response)
        .map(|order| order.order_id)
        .map_err(|error| format!("invalid order: {error}"))
}
