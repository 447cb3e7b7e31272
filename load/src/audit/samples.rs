//! Are sampled orders there as they were answered? Read back, and asked for again under their keys.

use super::AuditedPartner;
use super::account::get_ok;
use crate::acknowledgements::Sample;
use crate::client::ApiResponse;
use crate::wire::OrderView;

/// GET gives each as it was answered.
pub(super) async fn check_read_back(accounts: &mut [AuditedPartner], samples: &[Sample]) -> Result<String, String> {
    for sample in samples {
        let order_id = order_id(sample)?;
        let client = accounts[sample.partner].client();
        let answer = get_ok(client, &format!("/orders/{order_id}")).await?;
        same_order(sample, &answer).map_err(|what| format!("{order_id}: {what}"))?;
    }
    Ok(format!("{} sampled orders", samples.len()))
}

/// A delivered order reads as it was answered, byte for byte; one that was still pending may have moved on.
fn same_order(sample: &Sample, answer: &ApiResponse) -> Result<(), String> {
    if sample.response == answer.body {
        return Ok(());
    }
    let parse = |body| OrderView::parse(body).map_err(|error| format!("is no order: {error}"));
    let (then, now) = (parse(&sample.response)?, parse(&answer.body)?);
    if then.status == "DELIVERED" {
        return Err(format!(
            "reads {} bytes that differ from its answer",
            answer.body.len()
        ));
    }
    let held = |voucher: &str| now.vouchers.iter().any(|other| other.voucher_id == voucher);
    let same = then.order_id == now.order_id
        && then.total_amount.get() == now.total_amount.get()
        && then.currency == now.currency
        && then.vouchers.iter().all(|voucher| held(voucher.voucher_id));
    if same {
        Ok(())
    } else {
        Err("another id, total, currency, or fewer vouchers".to_owned())
    }
}

/// POST under the same key gives each as it was answered, and says that it was.
pub(super) async fn check_replay(accounts: &mut [AuditedPartner], samples: &[Sample]) -> Result<String, String> {
    for sample in samples {
        let order_id = order_id(sample)?;
        let client = accounts[sample.partner].client();
        let answer = client.order(&sample.key, sample.request.clone()).await;
        let answer = answer.map_err(|failure| format!("{order_id}: {failure}"))?;
        if answer.status.as_u16() != sample.status || answer.body != sample.response {
            return Err(format!(
                "{order_id}: status {} or other bytes under its key",
                answer.status
            ));
        }
        if answer.header("idempotent-replayed") != Some("true") {
            return Err(format!("{order_id}: the replay does not say that it is one"));
        }
    }
    Ok(format!("{} sampled orders", samples.len()))
}

fn order_id(sample: &Sample) -> Result<&str, String> {
    OrderView::parse(&sample.response)
        .map(|order| order.order_id)
        .map_err(|error| format!("no order: {error}"))
}
