//! Did the service do what it acknowledged? After a run: every unknown outcome settled by its key, no voucher twice,
//! sampled orders read back and replayed byte for byte, and the wallet fallen by exactly what was acknowledged.
//!
//! Rule: what could not be checked has failed. A figure counts only with a clean audit.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::books::{Books, Sample};
use crate::client::Answer;
use crate::money::Amount;
use crate::partner::PartnerClient;
use crate::wire::{ListView, OrderView, WalletView};

/// How long unknown outcomes may take to become definite, all together: the service promises to settle what was
/// open within 30 s of a start, and this is twice that.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);
/// Pause between two tries of one key while the service says "not now".
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

/// One question and its answer.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// The numbers behind it, or what broke it.
    pub detail: String,
}

impl Check {
    fn new(name: &'static str, result: Result<String, String>) -> Self {
        let passed = result.is_ok();
        let (Ok(detail) | Err(detail)) = result;
        Self { name, passed, detail }
    }
}

/// All checks of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    /// The checks, in the order they were made.
    pub checks: Vec<Check>,
}

impl Audit {
    /// Whether every check holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let verdict = if check.passed { "ok    " } else { "FAILED" };
            writeln!(f, "  {verdict} {}: {}", check.name, check.detail)?;
        }
        Ok(())
    }
}

/// Spendable balance per currency.
pub type Wallets = BTreeMap<String, Amount>;

/// Reads the partner's balances.
///
/// # Errors
/// A sentence, when they cannot be read.
pub async fn wallets(client: &mut PartnerClient) -> Result<Wallets, String> {
    let answer = read(client, "/wallets").await?;
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

/// Audits a run. `opening` are the balances from before its first order; `None` if others spend from the same
/// wallets, so that their fall proves nothing.
pub async fn audit(client: &mut PartnerClient, mut books: Books, opening: Option<Wallets>) -> Audit {
    let mut checks = vec![Check::new(
        "unknown outcomes settled",
        settle(client, &mut books).await,
    )];
    checks.push(Check::new("orders acknowledged", well_formed(&books)));
    checks.push(Check::new(
        "no voucher twice",
        vouchers_unique(&mut books.vouchers),
    ));
    checks.push(Check::new("read back", read_back(client, books.samples()).await));
    checks.push(Check::new("replayed", replay(client, books.samples()).await));
    if let Some(opening) = opening {
        checks.push(Check::new(
            "wallet",
            wallet_fell(client, &opening, &books.totals).await,
        ));
    }
    Audit { checks }
}

/// Repeats every order of unknown outcome under its key until the answer is definite.
async fn settle(client: &mut PartnerClient, books: &mut Books) -> Result<String, String> {
    let open = std::mem::take(&mut books.unsettled);
    let (deadline, mut executed) = (Instant::now() + SETTLE_WITHIN, 0_u64);
    for (index, order) in open.iter().enumerate() {
        loop {
            let refusal = match client.order(&order.key, order.body.clone()).await {
                Ok(answer) if answer.status.is_success() => {
                    books.acknowledge(&order.key, &order.body, answer.status.as_u16(), &answer.body);
                    executed += 1;
                    break;
                }
                Ok(answer) if is_definite(&answer) => break,
                Ok(answer) => answer.status.to_string(),
                Err(failure) => failure.to_string(),
            };
            if Instant::now() >= deadline {
                let left = open.len() - index;
                return Err(format!(
                    "{left} of {} still open, the first: {refusal}",
                    open.len()
                ));
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
    }
    Ok(format!("{} open, {executed} of them orders", open.len()))
}

fn is_definite(answer: &Answer) -> bool {
    match answer.status.as_u16() {
        409 => answer.error_code().as_deref() != Some("IDEMPOTENCY_IN_PROGRESS"),
        status => (400..500).contains(&status) && status != 429,
    }
}

fn well_formed(books: &Books) -> Result<String, String> {
    if let Some(first) = &books.first_malformed {
        let first = String::from_utf8_lossy(first);
        return Err(format!(
            "{} of {} are not as the contract says: {first}",
            books.malformed, books.orders
        ));
    }
    match books.orders {
        0 => Err("none, so nothing is proven".to_owned()),
        orders => Ok(format!("{orders} orders, {} vouchers", books.vouchers.len())),
    }
}

fn vouchers_unique(vouchers: &mut [u128]) -> Result<String, String> {
    // Sorting once is cheaper on the run than a set that is kept while the clock is ticking.
    vouchers.sort_unstable();
    let twice: Vec<_> = vouchers.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    match twice.first() {
        None => Ok(format!("{} distinct", vouchers.len())),
        Some(pair) => Err(format!("{} repeated, such as vch_{:032x}", twice.len(), pair[0])),
    }
}

async fn read_back(client: &mut PartnerClient, samples: &[Sample]) -> Result<String, String> {
    for sample in samples {
        let order_id = order_id(sample)?;
        let answer = read(client, &format!("/orders/{order_id}")).await?;
        same_order(sample, &answer).map_err(|what| format!("{order_id}: {what}"))?;
    }
    Ok(format!("{} sampled orders", samples.len()))
}

/// A delivered order reads as it was answered, byte for byte; one that was still pending may have moved on.
fn same_order(sample: &Sample, answer: &Answer) -> Result<(), String> {
    if sample.answer == answer.body {
        return Ok(());
    }
    let parse = |body| OrderView::parse(body).map_err(|error| format!("is no order: {error}"));
    let (then, now) = (parse(&sample.answer)?, parse(&answer.body)?);
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

async fn replay(client: &mut PartnerClient, samples: &[Sample]) -> Result<String, String> {
    for sample in samples {
        let order_id = order_id(sample)?;
        let answer = client.order(&sample.key, sample.request.clone()).await;
        let answer = answer.map_err(|failure| format!("{order_id}: {failure}"))?;
        if answer.status.as_u16() != sample.status || answer.body != sample.answer {
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

async fn wallet_fell(
    client: &mut PartnerClient,
    opening: &Wallets,
    spent: &Wallets,
) -> Result<String, String> {
    let closing = wallets(client).await?;
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
        None => Ok(sums.join(", ")),
    }
}

fn order_id(sample: &Sample) -> Result<&str, String> {
    OrderView::parse(&sample.answer)
        .map(|order| order.order_id)
        .map_err(|error| format!("no order: {error}"))
}

async fn read(client: &mut PartnerClient, path: &str) -> Result<Answer, String> {
    match client.get(path).await {
        Ok(answer) if answer.status.is_success() => Ok(answer),
        Ok(answer) => {
            let code = answer.error_code().unwrap_or_default();
            Err(format!("GET {path}: {} {code}", answer.status))
        }
        Err(failure) => Err(format!("GET {path}: {failure}")),
    }
}
