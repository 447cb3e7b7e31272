//! Extraction of history facts from responses: kind, hashes, and data about orders, vouchers and codes.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Call, CodeFact, Event, EventKind, OrderFacts};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::wire::{OrderView, without_first_reads};

/// Response of the codes endpoint.
#[derive(Deserialize)]
struct CodesView {
    order_id: String,
    data: Vec<VoucherCodes>,
}

/// Secret values of one voucher. No `Debug`: a code must not appear in the output of a test.
#[derive(Deserialize)]
struct VoucherCodes {
    voucher_id: String,
    /// Code, and PIN, serial or URL if the product has them.
    credentials: Vec<CodePart>,
}

/// One secret value of a voucher.
#[derive(Deserialize)]
struct CodePart {
    /// `code`, `pin`, `serial` or `url`.
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

/// Turns an invocation event into the completion event of a response.
pub(crate) fn complete_event(event: &mut Event, response: &ApiResponse) {
    event.kind = match response.status.as_u16() {
        200..=299 => EventKind::Ok,
        300..=499 => EventKind::Fail,
        _ => EventKind::Info,
    };
    event.status = Some(response.status.as_u16());
    event.body_hash = Some(match event.f {
        // Reading codes changes what a later read of the order shows.
        Call::GetOrder => sha256_hex(&without_first_reads(&response.body)),
        Call::Order | Call::Codes => sha256_hex(&response.body),
    });
    if event.kind != EventKind::Ok {
        event.code = response.error_code();
        return;
    }
    match event.f {
        Call::Order | Call::GetOrder => {
            if let Ok(order) = OrderView::parse(&response.body) {
                event.order_id = Some(order.order_id.to_owned());
                event.order = Some(order_facts(&order));
            }
        }
        Call::Codes => {
            if let Ok(view) = response.json::<CodesView>() {
                event.codes = Some(code_facts(&view));
                event.order_id = Some(view.order_id);
            }
        }
    }
}

fn order_facts(order: &OrderView<'_>) -> OrderFacts {
    OrderFacts {
        order_status: order.status.to_owned(),
        total_amount: order.total_amount.get().to_owned(),
        currency: order.currency.to_owned(),
        vouchers: order
            .vouchers
            .iter()
            .map(|voucher| voucher.voucher_id.to_owned())
            .collect(),
    }
}

fn code_facts(view: &CodesView) -> Vec<CodeFact> {
    let fact = |voucher: &VoucherCodes| {
        // Serial and URL are excluded: only code and PIN must be unique.
        let mut secret: Vec<_> = voucher
            .credentials
            .iter()
            .filter(|part| matches!(part.kind.as_str(), "code" | "pin"))
            .map(|part| (part.kind.as_str(), part.value.as_str()))
            .collect();
        secret.sort_unstable();
        let code_hash = sha256_hex(format!("{secret:?}").as_bytes());
        CodeFact {
            voucher_id: voucher.voucher_id.clone(),
            code_hash,
        }
    };
    view.data.iter().map(fact).collect()
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
