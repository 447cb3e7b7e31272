//! Audit of balances and order lists, before and after a run.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::wire::{ListView, WalletView, order_number};

use crate::tally::acknowledgements::PartnerAcknowledgements;

/// Page size: the maximum of the contract (§3).
const PAGE: usize = 100;

/// Spendable balances by currency.
pub type WalletBalances = BTreeMap<String, Decimal>;

/// A partner with its state before the run.
pub struct AuditedPartner {
    client: PartnerClient,
    /// `None` if others spend from the same wallets.
    opening: Option<WalletBalances>,
    orders: OrderBaseline,
}

/// Boundary between earlier orders and those of the run.
enum OrderBaseline {
    /// Unknown: the order list is not checked.
    Unknown,
    /// The newest order before the run; `None` if there was none.
    Newest(Option<String>),
}

#[derive(Deserialize)]
struct ListedOrder {
    order_id: String,
}

impl AuditedPartner {
    /// Reads the balances and the newest order.
    ///
    /// # Errors
    /// A message, if they cannot be read.
    pub async fn with_baseline(mut client: PartnerClient) -> Result<Self, String> {
        let opening = Some(read_wallets(&mut client).await?);
        let newest = fetch_order_page(&mut client, "/orders?limit=1").await?.data.pop();
        Ok(Self {
            client,
            opening,
            orders: OrderBaseline::Newest(newest.map(|order| order.order_id)),
        })
    }

    /// Replaces the connection, which the service has closed during a long run.
    pub(super) fn reconnect(&mut self) {
        self.client = self.client.new_connection();
    }

    /// A partner whose order list is not checked.
    #[must_use]
    pub fn without_order_check(client: PartnerClient, opening: Option<WalletBalances>) -> Self {
        Self {
            client,
            opening,
            orders: OrderBaseline::Unknown,
        }
    }

    pub(super) fn new_connection(&self) -> PartnerClient {
        self.client.new_connection()
    }

    pub(super) fn client(&mut self) -> &mut PartnerClient {
        &mut self.client
    }

    /// Whether only this run spends from its wallets.
    pub(super) fn has_exclusive_wallets(&self) -> bool {
        self.opening.is_some()
    }

    pub(super) fn has_order_baseline(&self) -> bool {
        matches!(self.orders, OrderBaseline::Newest(_))
    }
}

/// Reads the balances of a partner.
///
/// # Errors
/// A message, if they cannot be read.
pub async fn read_wallets(client: &mut PartnerClient) -> Result<WalletBalances, String> {
    let response = get_ok(client, "/wallets").await?;
    let list: ListView<WalletView<'_>> = response
        .json()
        .map_err(|error| format!("GET /wallets: invalid response: {error}"))?;
    let balance = |wallet: WalletView<'_>| {
        let amount =
            Decimal::from_str_exact(wallet.balance.get()).map_err(|error| format!("balance: {error}"))?;
        Ok((wallet.currency.to_owned(), amount))
    };
    list.data.into_iter().map(balance).collect()
}

/// Checks that each balance decreased by exactly the acknowledged totals.
pub(super) async fn check_wallets_debited(
    accounts: &mut [AuditedPartner],
    spent: &[PartnerAcknowledgements],
) -> Result<String, String> {
    let (no_orders, mut changes) = (PartnerAcknowledgements::default(), Vec::new());
    for (number, account) in accounts.iter_mut().enumerate() {
        let Some(opening) = &account.opening else { continue };
        let closing = read_wallets(&mut account.client).await?;
        let spent = &spent.get(number).unwrap_or(&no_orders).totals;
        changes.extend(check_debits(opening, spent, &closing)?);
    }
    Ok(match (accounts.len(), changes.as_slice()) {
        (1, _) => changes.join(", "),
        (partners, [first, ..]) => format!("{partners} partners, first: {first}"),
        (partners, []) => format!("{partners} partners, no change"),
    })
}

fn check_debits(
    opening: &WalletBalances,
    spent: &WalletBalances,
    closing: &WalletBalances,
) -> Result<Vec<String>, String> {
    let mut changes = Vec::new();
    for (currency, before) in opening {
        let after = closing
            .get(currency)
            .ok_or_else(|| format!("the {currency} wallet no longer exists"))?;
        let spent = spent.get(currency).copied().unwrap_or_default();
        if *before - spent != *after {
            return Err(format!(
                "{currency} {before} − acknowledged {spent} is not {after}"
            ));
        }
        if *before != *after {
            changes.push(format!("{currency} {before} − {spent} = {after}"));
        }
    }
    match spent.keys().find(|currency| !opening.contains_key(*currency)) {
        Some(currency) => Err(format!(
            "orders were acknowledged in {currency}, but there is no such wallet"
        )),
        None => Ok(changes),
    }
}

/// Checks that each partner's list contains every acknowledged order once and no other.
pub(super) async fn check_orders_listed(
    accounts: &mut [AuditedPartner],
    acknowledged: &mut [PartnerAcknowledgements],
) -> Result<String, String> {
    let mut count = 0;
    for (number, account) in accounts.iter_mut().enumerate() {
        let OrderBaseline::Newest(mark) = &account.orders else {
            continue;
        };
        let mut listed = list_orders_since(&mut account.client, mark.as_deref()).await?;
        listed.sort_unstable();
        let expected = match acknowledged.get_mut(number) {
            Some(own) => {
                own.orders.sort_unstable();
                own.orders.as_slice()
            }
            None => &[],
        };
        compare_orders(expected, &listed)?;
        count += listed.len();
    }
    Ok(format!("{count} orders, no others"))
}

/// Compares two ascending lists.
fn compare_orders(acknowledged: &[u128], listed: &[u128]) -> Result<(), String> {
    let first_missing =
        |from: &[u128], of: &[u128]| of.iter().find(|id| from.binary_search(id).is_err()).copied();
    if let Some(lost) = first_missing(listed, acknowledged) {
        return Err(format!("ord_{lost:032x} was acknowledged but is not listed"));
    }
    if let Some(phantom) = first_missing(acknowledged, listed) {
        return Err(format!("ord_{phantom:032x} is listed but was never acknowledged"));
    }
    if acknowledged.len() != listed.len() {
        return Err(format!(
            "{} acknowledged, {} listed: duplicate order",
            acknowledged.len(),
            listed.len()
        ));
    }
    Ok(())
}

/// Lists orders from the newest back to `mark`, which is excluded.
async fn list_orders_since(client: &mut PartnerClient, mark: Option<&str>) -> Result<Vec<u128>, String> {
    let (mut orders, mut path) = (Vec::new(), format!("/orders?limit={PAGE}"));
    loop {
        let page = fetch_order_page(client, &path).await?;
        for order in page.data {
            if Some(order.order_id.as_str()) == mark {
                return Ok(orders);
            }
            let number = order_number(&order.order_id);
            orders.push(number.ok_or_else(|| format!("invalid order id {}", order.order_id))?);
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(orders);
        };
        path = format!("/orders?limit={PAGE}&cursor={cursor}");
    }
}

async fn fetch_order_page(client: &mut PartnerClient, path: &str) -> Result<ListView<ListedOrder>, String> {
    let response = get_ok(client, path).await?;
    response
        .json()
        .map_err(|error| format!("GET {path}: invalid response: {error}"))
}

/// Sends `GET` and requires a 2xx response.
pub(super) async fn get_ok(client: &mut PartnerClient, path: &str) -> Result<ApiResponse, String> {
    match client.get(path).await {
        Ok(response) if response.status.is_success() => Ok(response),
        Ok(response) => {
            let code = response.error_code().unwrap_or_default();
            Err(format!("GET {path}: {} {code}", response.status))
        }
        Err(failure) => Err(format!("GET {path}: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_orders_finds_missing_extra_and_duplicate() {
        for (acknowledged, listed, expected_text) in [
            (&[1, 2][..], &[1, 2][..], None),
            (&[1, 2], &[1], Some("is not listed")),
            (&[1], &[1, 2], Some("never acknowledged")),
            (&[1], &[1, 1], Some("duplicate")),
            (&[1, 1], &[1], Some("duplicate")),
        ] {
            let found = compare_orders(acknowledged, listed);
            match expected_text {
                None => assert_eq!(found, Ok(())),
                Some(expected_text) => {
                    assert!(found.clone().unwrap_err().contains(expected_text), "{found:?}")
                }
            }
        }
    }
}
