//! Buying what orders wait for: what is in stock is taken, the rest is bought, and each purchase is asked about until its
//! vendor has said its last word.
//!
//! | step | on disk |
//! |---|---|
//! | an order is taken up | PROCESSING, and what was in stock |
//! | its purchases are written down | each under its key, before a vendor hears of it |
//! | a vendor is asked: buy, or what became of it | a claim, so that one node asks at a time |
//! | what it sold is stock | sealed, kept for the order |
//! | it is delivered, as far as the order still wants it | vouchers issued; the rest is anybody's stock |
//! | the vendor's last word is noted | nothing more comes of the purchase |
//! | no purchase of the order goes on | what is missing is paid back, the order closed |
//!
//! Rule: every step may be repeated. A node that dies between two leaves what the next one finds by asking the database.

use std::collections::HashMap;
use std::sync::Arc;

use actix_web::web;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use time::{Duration, OffsetDateTime};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, warn};
use uuid::Uuid;
use vouchsafe_actors::domain::order::Order;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::flows::{self, Delivery};

use crate::service::Service;
use crate::store::{
    By, ImportOutcome, ImportTarget, NewPurchase, NewVoucher, Noted, Purchase, StockBatch, Vendor,
    WaitingOrder,
};
use crate::vendor::{
    Adapter, AdapterKind, Bought, BuyRequest, Failure, PurchaseKey, Rest, Terms, VendorVoucher,
};

/// How often orders and purchases are looked for.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// How many orders are taken up in one look.
const ORDERS_AT_ONCE: usize = 50;

/// How soon, and how late at most, a vendor is asked about a purchase again: a quarter of its age lies between.
const ASK_AGAIN: (Duration, Duration) = (Duration::milliseconds(250), Duration::minutes(5));

/// What is wrong with a purchase that cannot go on for a reason of ours.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error("the database did not answer: {0}")]
    Database(#[from] sqlx::Error),
    #[error("no data key can be had: {0}")]
    Locked(#[from] crate::keyring::KeyringError),
    #[error("a code cannot be sealed: {0}")]
    Unsealed(#[from] crate::vault::seal::SealError),
    #[error("the order could not be moved on: {0}")]
    Unanswered(#[from] flows::Unanswered),
    #[error("its product is not in the catalogue as it was")]
    ProductChanged,
}

/// A vendor that is spoken to.
struct Line {
    adapter: Arc<Adapter>,
    vendor: Vendor,
    under_way: usize,
}

/// Buys for as long as the service lives. Never returns.
pub(crate) async fn keep_buying(service: &web::Data<Service>) {
    let mut tick = interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lines: HashMap<String, Line> = HashMap::new();
    let mut under_way = FuturesUnordered::new();
    // What an earlier start of this node was asking about, nobody asks about now.
    if let Err(error) = service
        .store
        .free_purchases(service.node.identity().name.clone())
        .await
    {
        warn!(%error, "purchases of an earlier start stay claimed until their claims end");
    }
    loop {
        tokio::select! {
            Some(vendor_id) = under_way.next(), if !under_way.is_empty() => {
                let vendor_id: String = vendor_id;
                lines.entry(vendor_id).and_modify(|line| line.under_way -= 1);
            }
            _ = tick.tick() => {
                connect(service, &mut lines).await;
                settle_orders(service, &lines).await;
                for (vendor_id, line) in &mut lines {
                    for purchase in claim(service, vendor_id, line).await {
                        line.under_way += 1;
                        let (adapter, vendor_id) = (Arc::clone(&line.adapter), vendor_id.clone());
                        under_way.push(async move {
                            pursue(service, &adapter, purchase).await;
                            vendor_id
                        });
                    }
                }
            }
        }
    }
}

/// Orders for which nothing is being bought: they are taken up, or nothing more comes for them.
async fn settle_orders(service: &Service, lines: &HashMap<String, Line>) {
    let waiting = match service.store.orders_for_vendors(ORDERS_AT_ONCE).await {
        Ok(waiting) => waiting,
        Err(error) => return warn!(%error, "orders that wait for vendors cannot be read now"),
    };
    for order in waiting {
        if let Err(error) = settle(service, lines, order).await {
            warn!(order.id = %order.order_id, %error, "an order that waits for a vendor stays where it is for now");
        }
    }
}

async fn settle(
    service: &Service,
    lines: &HashMap<String, Line>,
    waiting: WaitingOrder,
) -> Result<(), Stuck> {
    let WaitingOrder {
        partner_id,
        order_id,
        bought,
    } = waiting;
    if bought {
        flows::give_up(&service.engine, partner_id, order_id).await?;
        return Ok(());
    }
    let Some(order) = service.store.find_order(partner_id, order_id).await? else {
        return Ok(());
    };
    let asked = wishes(service, &order).iter().any(|wish| {
        let kind = lines.get(&wish.vendor).map(|line| line.vendor.adapter);
        kind.is_some_and(|kind| kind != AdapterKind::Manual)
    });
    let Some(order) = flows::take_up(&service.engine, partner_id, order_id, asked).await? else {
        return Ok(());
    };
    let purchases = wishes(service, &order);
    service
        .store
        .open_purchases(partner_id, order_id, purchases)
        .await?;
    Ok(())
}

/// What is to be bought for each line that still waits for something.
fn wishes(service: &Service, order: &Order) -> Vec<NewPurchase> {
    let catalogue = service.catalogue.now();
    let requested_at = service.clock.now();
    let lines = (0_u16..).zip(&order.lines);
    let missing = lines.filter(|(_, line)| line.pending() > 0 && !line.stock_only && !order.closed);
    let wish = |(number, line): (u16, &vouchsafe_actors::domain::order::OrderLine)| {
        let product = catalogue.get(&line.product_id)?;
        Some(NewPurchase {
            line: number,
            vendor: product.vendor.clone(),
            request: BuyRequest {
                key: PurchaseKey(Uuid::now_v7()),
                product_id: line.product_id.clone(),
                denomination: line.denomination.of(order.total.currency),
                quantity: line.pending(),
                requested_at,
                expiry_policy: product.expiry_policy.clone(),
            },
        })
    };
    missing.filter_map(wish).collect()
}

/// Brings what speaks to vendors up to date. One whose terms have not changed keeps its adapter, which knows how it was.
async fn connect(service: &Service, lines: &mut HashMap<String, Line>) {
    let vendors = match service.store.list_vendors().await {
        Ok(vendors) => vendors,
        Err(error) => return warn!(%error, "the vendors cannot be read now"),
    };
    for vendor in vendors {
        if lines
            .get(&vendor.vendor_id)
            .is_some_and(|line| line.vendor == vendor)
        {
            continue;
        }
        match adapter_of(service, &vendor).await {
            Ok(adapter) => {
                let under_way = lines.get(&vendor.vendor_id).map_or(0, |line| line.under_way);
                let line = Line {
                    adapter: Arc::new(adapter),
                    under_way,
                    vendor: vendor.clone(),
                };
                lines.insert(vendor.vendor_id, line);
            }
            Err(reason) => warn!(vendor.id = vendor.vendor_id, %reason, "a vendor cannot be spoken to"),
        }
    }
}

async fn adapter_of(service: &Service, vendor: &Vendor) -> Result<Adapter, String> {
    let access = service.store.find_vendor(vendor.vendor_id.clone()).await;
    let access = access.map_err(|error| error.to_string())?.ok_or("it is gone")?;
    let open = |sealed| service.keyring.vault().open_credential(&vendor.vendor_id, sealed);
    let credential = access.credential.as_ref().map(open).transpose();
    let url = vendor.url.as_deref().map(str::parse).transpose();
    let terms = Terms {
        kind: vendor.adapter,
        url: url.map_err(|_| "its url is none")?,
        credential: credential.map_err(|error| error.to_string())?,
    };
    Adapter::connect(&terms, Arc::clone(&service.clock)).map_err(|error| error.to_string())
}

async fn claim(service: &Service, vendor_id: &str, line: &Line) -> Vec<Purchase> {
    let free = usize::from(line.vendor.concurrency).saturating_sub(line.under_way);
    if free == 0 {
        return Vec::new();
    }
    let node = service.node.identity().name.clone();
    let claimed = service
        .store
        .claim_purchases(node, vendor_id.to_owned(), free)
        .await;
    claimed.unwrap_or_else(|error| {
        warn!(%error, vendor.id = vendor_id, "purchases cannot be claimed now");
        Vec::new()
    })
}

/// Asks about a purchase once, and notes what came of it.
async fn pursue(service: &web::Data<Service>, adapter: &Adapter, purchase: Purchase) {
    let key = purchase.request.key;
    let answer = ask(adapter, &purchase).await;
    let noted = match take_in(service, &purchase, answer).await {
        Ok(noted) => noted,
        Err(stuck) => {
            error!(purchase.id = %key, error = %stuck, "a purchase cannot go on for now");
            Noted {
                key,
                ended: false,
                after: pause(service.clock.now(), &purchase),
                last_word: Some(stuck.to_string()),
            }
        }
    };
    if let Err(error) = service.store.note_purchase(noted).await {
        // Its claim ends by itself, and it is asked about again.
        warn!(purchase.id = %key, %error, "what became of a purchase cannot be noted now");
    }
}

/// A vendor that may have heard of it is asked what became of it; one that has not is asked to sell.
async fn ask(adapter: &Adapter, purchase: &Purchase) -> Result<Bought, Failure> {
    if purchase.asked {
        match adapter.poll(&purchase.request).await {
            Err(Failure::Unheard) => {}
            answer => return answer,
        }
    }
    adapter.buy(&purchase.request).await
}

async fn take_in(
    service: &web::Data<Service>,
    purchase: &Purchase,
    answer: Result<Bought, Failure>,
) -> Result<Noted, Stuck> {
    let key = purchase.request.key;
    let (ended, last_word, after) = match answer {
        Ok(Bought { vouchers, rest }) => {
            let sold = vouchers.len();
            stock(service, purchase, &vouchers).await?;
            let kept = service.store.count_bought(key).await? as usize;
            let repeated = sold.saturating_sub(kept);
            let word = (repeated > 0).then(|| format!("{repeated} codes were sold before and are not taken"));
            let word = word.or((rest == Rest::Never).then(|| "the vendor has no more of it".to_owned()));
            (rest != Rest::ToCome, word, None)
        }
        Err(failure) => {
            let ended = matches!(failure, Failure::NotBought(_) | Failure::OutOfStock);
            let after = match &failure {
                Failure::NotNow { after, .. } | Failure::Unknown { after, .. } => *after,
                _ => None,
            };
            if matches!(failure, Failure::Nonsense(_)) {
                error!(purchase.id = %key, %failure, "a vendor's answer was refused; an operator must look at it");
            }
            (ended, Some(failure.to_string()), after)
        }
    };
    hand_over(service, purchase, ended).await?;
    let after = after
        .and_then(|after| Duration::try_from(after).ok())
        .unwrap_or_default();
    Ok(Noted {
        key,
        ended,
        after: pause(service.clock.now(), purchase).max(after),
        last_word,
    })
}

/// Makes stock of what is new of these, kept for the order.
async fn stock(
    service: &web::Data<Service>,
    purchase: &Purchase,
    vouchers: &[VendorVoucher],
) -> Result<(), Stuck> {
    let BuyRequest {
        key,
        product_id,
        denomination,
        ..
    } = &purchase.request;
    let kept = service.store.count_bought(*key).await? as usize;
    if kept >= vouchers.len() {
        return Ok(());
    }
    let catalogue = service.catalogue.now();
    let product = catalogue.get(product_id).ok_or(Stuck::ProductChanged)?;
    let target = ImportTarget {
        sku: Sku {
            product_id: product_id.clone(),
            denomination: denomination.amount,
        },
        brand: product.brand.clone(),
        currency: denomination.currency,
    };
    let vault = service.keyring.sealing().await?;
    let ids = service.store.take_stock_ids(vouchers.len()).await?;
    let seal = |(voucher, code_id): (&VendorVoucher, _)| -> Result<NewVoucher, Stuck> {
        Ok(NewVoucher {
            code_id,
            blind_index: vault.blind_index(&target.brand, &voucher.code),
            sealed: vault.seal(code_id, &target.sku, &voucher.code)?,
            expiry: voucher.expiry,
            vendor_reference: Some(voucher.reference.to_string()),
        })
    };
    let sealed = vouchers
        .iter()
        .zip(ids.codes)
        .map(seal)
        .collect::<Result<_, _>>()?;
    let batch = StockBatch {
        target,
        vouchers: sealed,
        stock_ids: ids.stock,
        purchase_id: Some(key.0),
    };
    match service.store.import_stock(batch, By::service()).await? {
        ImportOutcome::Stored(_) => Ok(()),
        ImportOutcome::ProductChanged => Err(Stuck::ProductChanged),
    }
}

/// Gives the order what is kept for it. What it wants no more is anybody's stock once nothing more comes of the purchase.
async fn hand_over(service: &web::Data<Service>, purchase: &Purchase, ended: bool) -> Result<(), Stuck> {
    let key = purchase.request.key;
    let delivery = Delivery {
        purchase_id: key.0,
        partner_id: purchase.partner_id,
        order_id: purchase.order_id,
        line: purchase.line,
    };
    let order = flows::deliver(&service.engine, delivery).await?;
    let wanted_no_more = order.as_ref().is_none_or(|order| order.closed);
    if (ended || wanted_no_more) && service.store.release_bought(key).await? {
        let sku = Sku {
            product_id: purchase.request.product_id.clone(),
            denomination: purchase.request.denomination.amount,
        };
        service.engine.inventory.doubt(&sku);
    }
    Ok(())
}

/// Until a purchase is asked about again: the older it is, the longer.
fn pause(now: OffsetDateTime, purchase: &Purchase) -> Duration {
    let (least, most) = ASK_AGAIN;
    let age: Duration = now - purchase.request.requested_at;
    let later: Duration = age / 4;
    later.clamp(least, most)
}
