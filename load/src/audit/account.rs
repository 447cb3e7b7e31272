//! What does the service say that a partner has? Its balances and its orders, from before a run and after it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::acknowledgements::PartnerAcknowledgements;
use crate::client::ApiResponse;
use crate::money::Amount;
use crate::partner::PartnerClient;
use crate::wire::{ListView, WalletView, order_number};

/// Orders of one page of a list: the most that the contract gives (§3).
const PAGE: usize = 100;

/// Spendable balance per currency.
pub type WalletBalances = BTreeMap<String, Amount>;

/// A partner of a run, and what it had before.
pub struct AuditedPartner {
    client: PartnerClient,
    /// `None` if others spend from the same wallets.
    opening: Option<WalletBalances>,
    orders: Orders,
}

/// What of a partner's orders is from before the run.
enum Orders {
    /// Not known: they are not looked through.
    Unknown,
    /// Those up to this one; `None` if there were none.
    Until(Option<String>),
}

#[derive(Deserialize)]
struct Listed {
    order_id: String,
}

impl AuditedPartner {
    /// Opens an account: reads the balances and the newest order.
    ///
    /// # Errors
    /// A sentence, when they cannot be read.
    pub async fn with_baseline(mut client: PartnerClient) -> Result<Self, String> {
        let opening = Some(read_wallets(&mut client).await?);
        let newest = page(&mut client, "/orders?limit=1").await?.data.pop();
        Ok(Self {
            client,
            opening,
            orders: Orders::Until(newest.map(|order| order.order_id)),
        })
    }

    /// The same on a connection of its own: the service has closed the old one by now, where a run was long.
    pub(super) fn reconnect(&mut self) {
        self.client = self.client.new_connection();
    }

    /// An account whose orders are not looked through.
    #[must_use]
    pub fn without_order_check(client: PartnerClient, opening: Option<WalletBalances>) -> Self {
        Self {
            client,
            opening,
            orders: Orders::Unknown,
        }
    }

    /// Another connection of this partner.
    pub(super) fn new_connection(&self) -> PartnerClient {
        self.client.new_connection()
    }

    pub(super) fn client(&mut self) -> &mut PartnerClient {
        &mut self.client
    }

    /// Whether nobody else spends from its wallets.
    pub(super) fn has_exclusive_wallets(&self) -> bool {
        self.opening.is_some()
    }

    /// Whether its orders are looked through.
    pub(super) fn has_order_baseline(&self) -> bool {
        matches!(self.orders, Orders::Until(_))
    }
}

/// Reads the partner's balances.
///
/// # Errors
/// A sentence, when they cannot be read.
pub async fn read_wallets(client: &mut PartnerClient) -> Result<WalletBalances, String> {
    let answer = get_ok(client, "/wallets").await?;
    let list: ListView<WalletView<'_>> = answer
        .json()
        .map_err(|error| format!("GET /wallets is no list of wallets: {error}"))?;
    let balance = |wallet: WalletView<'_>| {
        let amount = wallet
            .balance
            .get()
            .parse()
            .map_err(|error| format!("balance: {error}"))?;
        Ok((wallet.currency.to_owned(), amount))
    };
    list.data.into_iter().map(balance).collect()
}

/// Each wallet fell by exactly what its partner was acknowledged.
pub(super) async fn check_wallets_debited(accounts: &mut [AuditedPartner], spent: &[PartnerAcknowledgements]) -> Result<String, String> {
    let (nothing, mut sums) = (PartnerAcknowledgements::default(), Vec::new());
    for (number, account) in accounts.iter_mut().enumerate() {
        let Some(opening) = &account.opening else { continue };
        let closing = read_wallets(&mut account.client).await?;
        let spent = &spent.get(number).unwrap_or(&nothing).totals;
        sums.extend(fell(opening, spent, &closing)?);
    }
    Ok(match (accounts.len(), sums.as_slice()) {
        (1, _) => sums.join(", "),
        (partners, [first, ..]) => format!("of {partners} partners, the first: {first}"),
        (partners, []) => format!("of {partners} partners, none changed"),
    })
}

fn fell(opening: &WalletBalances, spent: &WalletBalances, closing: &WalletBalances) -> Result<Vec<String>, String> {
    let mut sums = Vec::new();
    for (currency, before) in opening {
        let after = closing
            .get(currency)
            .ok_or_else(|| format!("{currency} is gone"))?;
        let spent = spent.get(currency).copied().unwrap_or_default();
        if *before - spent != *after {
            return Err(format!(
                "{currency} {before} − acknowledged {spent} is not {after}"
            ));
        }
        if *before != *after {
            sums.push(format!("{currency} {before} − {spent} = {after}"));
        }
    }
    match spent.keys().find(|currency| !opening.contains_key(*currency)) {
        Some(currency) => Err(format!(
            "orders were acknowledged in {currency}, of which there is no wallet"
        )),
        None => Ok(sums),
    }
}

/// Every acknowledged order is in its partner's list once, and no other came in.
pub(super) async fn check_orders_listed(
    accounts: &mut [AuditedPartner],
    acknowledged: &mut [PartnerAcknowledgements],
) -> Result<String, String> {
    let mut count = 0;
    for (number, account) in accounts.iter_mut().enumerate() {
        let Orders::Until(mark) = &account.orders else {
            continue;
        };
        let mut listed = list(&mut account.client, mark.as_deref()).await?;
        listed.sort_unstable();
        let expected = match acknowledged.get_mut(number) {
            Some(books) => {
                books.orders.sort_unstable();
                books.orders.as_slice()
            }
            None => &[],
        };
        same_orders(expected, &listed)?;
        count += listed.len();
    }
    Ok(format!("{count} orders, and no other"))
}

/// Both in ascending order.
fn same_orders(acknowledged: &[u128], listed: &[u128]) -> Result<(), String> {
    let missing = |from: &[u128], of: &[u128]| of.iter().find(|id| from.binary_search(id).is_err()).copied();
    if let Some(lost) = missing(listed, acknowledged) {
        return Err(format!("ord_{lost:032x} was acknowledged and is not listed"));
    }
    if let Some(phantom) = missing(acknowledged, listed) {
        return Err(format!("ord_{phantom:032x} is listed and nobody was told of it"));
    }
    if acknowledged.len() != listed.len() {
        return Err(format!(
            "{} acknowledged, {} listed: an order twice",
            acknowledged.len(),
            listed.len()
        ));
    }
    Ok(())
}

/// The orders from the newest down to, and without, `mark`.
async fn list(client: &mut PartnerClient, mark: Option<&str>) -> Result<Vec<u128>, String> {
    let (mut orders, mut path) = (Vec::new(), format!("/orders?limit={PAGE}"));
    loop {
        let page = page(client, &path).await?;
        for order in page.data {
            if Some(order.order_id.as_str()) == mark {
                return Ok(orders);
            }
            let number = order_number(&order.order_id);
            orders.push(number.ok_or_else(|| format!("{} is no order's id", order.order_id))?);
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(orders);
        };
        path = format!("/orders?limit={PAGE}&cursor={cursor}");
    }
}

async fn page(client: &mut PartnerClient, path: &str) -> Result<ListView<Listed>, String> {
    let answer = get_ok(client, path).await?;
    answer
        .json()
        .map_err(|error| format!("GET {path} is no list of orders: {error}"))
}

/// GET, and success.
pub(super) async fn get_ok(client: &mut PartnerClient, path: &str) -> Result<ApiResponse, String> {
    match client.get(path).await {
        Ok(answer) if answer.status.is_success() => Ok(answer),
        Ok(answer) => {
            let code = answer.error_code().unwrap_or_default();
            Err(format!("GET {path}: {} {code}", answer.status))
        }
        Err(failure) => Err(format!("GET {path}: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_compared_both_ways() {
        for (acknowledged, listed, says) in [
            (&[1, 2][..], &[1, 2][..], None),
            (&[1, 2], &[1], Some("is not listed")),
            (&[1], &[1, 2], Some("nobody was told")),
            (&[1], &[1, 1], Some("twice")),
            (&[1, 1], &[1], Some("twice")),
        ] {
            let found = same_orders(acknowledged, listed);
            match says {
                None => assert_eq!(found, Ok(())),
                Some(says) => assert!(found.clone().unwrap_err().contains(says), "{found:?}"),
            }
        }
    }
}
