//! `vouchsafe stock void`: takes a SKU or a list of codes of any length out of sale.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};
use vouchsafe_domain::stock::level::CodeVoidOutcome;
use vouchsafe_wire::json::JsonObject;
use vouchsafe_wire::operator::stock::VOID_STOCK;
use vouchsafe_wire::operator::stock::row::RowError;
use vouchsafe_wire::operator::stock::void::{MAX_CODES, NamedCode, RejectedCode, VoidReport, VoidRequest};
use vouchsafe_wire::operator::stock::voucher_list::{ListPurpose, ListedVoucher};

use super::CommandOutput;
use super::admin::AdminClient;
use super::voucher_file::{parse_list, read_bytes};

/// Result for a line of the list.
struct VoidedLine {
    /// Position in the list, from 0.
    index: usize,
    line: u64,
    reason: CodeVoidOutcome,
}

/// Voids what the request names, or the codes of a file in parts. Codes that the product does not have are a
/// failure: a mistyped code stays on sale.
pub(super) async fn void(
    mut request: VoidRequest,
    codes: Option<&Path>,
    accept_as_is: bool,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    let Some(file) = codes else {
        let report = send(&request, admin).await?;
        let text = serde_json::to_string(&report)?;
        return admin.show(text, |_| Ok(format_report(report.voided, &[])));
    };
    let product_id = request.product_id.clone();
    let convert = |listed: &ListedVoucher<'_>| named_code(&product_id, listed);
    let codes = parse_list(file, &read_bytes(file)?, ListPurpose::Void, accept_as_is, convert)?;
    let (mut voided, mut rejected) = (0, Vec::new());
    for (number, part) in codes.chunks(MAX_CODES).enumerate() {
        let copy = |(_, code): &(u64, NamedCode)| JsonObject(code.clone());
        request.codes = Some(part.iter().map(copy).collect());
        let report = send(&request, admin).await.with_context(|| {
            format!(
                "{} codes were voided before; repeat the command",
                number * MAX_CODES
            )
        })?;
        voided += report.voided;
        for RejectedCode { index, reason } in report.rejected {
            let (line, _) = part.get(index).context("unexpected response format")?;
            rejected.push(VoidedLine {
                index: number * MAX_CODES + index,
                line: *line,
                reason,
            });
        }
    }
    // Unknown codes first, then by line.
    rejected.sort_by_key(|one| (one.reason != CodeVoidOutcome::Unknown, one.line));
    let lines = rejected.iter();
    let lines: Vec<Value> = lines
        .map(|one| json!({ "index": one.index, "line": one.line, "reason": one.reason }))
        .collect();
    let body = json!({ "voided": voided, "rejected": lines }).to_string();
    let output = admin.show(body, |_| Ok(format_report(voided, &rejected)))?;
    Ok(CommandOutput {
        succeeded: rejected.iter().all(|one| one.reason != CodeVoidOutcome::Unknown),
        ..output
    })
}

async fn send(request: &VoidRequest, admin: &AdminClient) -> anyhow::Result<VoidReport> {
    let response = admin.call(VOID_STOCK, Some(request)).await?;
    serde_json::from_str(&response).context("unexpected response format")
}

fn named_code(product_id: &str, listed: &ListedVoucher<'_>) -> Result<NamedCode, RowError> {
    if listed.product_id.is_some_and(|id| id != product_id) {
        return Err(RowError::OtherSku("product_id"));
    }
    Ok(NamedCode {
        code: listed.voucher.parts.code.to_owned(),
        pin: listed.voucher.parts.pin.map(ToOwned::to_owned),
    })
}

fn format_report(voided: u64, rejected: &[VoidedLine]) -> String {
    let unknown = rejected
        .iter()
        .filter(|one| one.reason == CodeVoidOutcome::Unknown);
    let unknown = unknown.count();
    let mut text = String::new();
    if unknown > 0 {
        text.push_str(&format!(
            "UNKNOWN {unknown}: the product has no such code, and a card with a mistyped code stays on sale\n"
        ));
    }
    for one in &rejected[..unknown] {
        text.push_str(&format!("  line {}: {}\n", one.line, one.reason.into_str()));
    }
    text.push_str(&format!("voided {voided}"));
    for one in &rejected[unknown..] {
        text.push_str(&format!("\n  line {}: {}", one.line, one.reason.into_str()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_are_shown_first() {
        let line = |line, reason| VoidedLine {
            index: 0,
            line,
            reason,
        };
        let rejected = [line(7, CodeVoidOutcome::Unknown), line(2, CodeVoidOutcome::Sold)];
        let text = format_report(3, &rejected);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("UNKNOWN 1:"), "{text}");
        assert_eq!(lines[1..], ["  line 7: UNKNOWN", "voided 3", "  line 2: SOLD"]);
        assert_eq!(format_report(3, &[]), "voided 3");
    }
}
