//! The seeded catalogue: ordinary products in several currencies, and magic ones whose id decides what happens.

use anyhow::Context as _;
use time::Date;
use time::macros::date;
use vouchsafe_actors::domain::money::{Amount, Currency};
use vouchsafe_actors::domain::product::{
    Approval, DenominationRange, ExpiryKind, ExpiryPolicy, Product, Redemption, Route, Sku,
};

use crate::service::Service;
use crate::store::{By, Category, ImportTarget, NewVoucher, Origin, StockBatch, VendorTerms};
use crate::vault::code::{CodeParts, VoucherCode};
use crate::vendor::{AdapterKind, DEFAULT_CONCURRENCY};

/// The categories: id, name.
const CATEGORIES: [(&str, &str); 4] = [
    ("retail", "Shops"),
    ("gaming", "Games"),
    ("travel", "Travel"),
    ("magic", "Magic: the product decides what happens"),
];

/// The vendor of every product.
const VENDOR: &str = "mock";

/// The last valid day of mock vouchers.
const EXPIRY: Date = date!(2099 - 12 - 31);

/// How many mock vouchers a stocked denomination of an ordinary product gets.
const ORDINARY_STOCK: usize = 200;

/// How many `sbx-instant` gets: enough for an afternoon of trying.
const INSTANT_STOCK: usize = 5_000;

/// What the seed says of a product; the rest is the same for all.
struct Seed {
    id: &'static str,
    name: &'static str,
    category: &'static str,
    currency: &'static str,
    countries: &'static [&'static str],
    denominations: &'static [&'static str],
    range: Option<(&'static str, &'static str, &'static str)>,
    route: Route,
    approval: Approval,
    /// Mock vouchers of each denomination.
    stock: usize,
}

const ORDINARY: Seed = Seed {
    id: "",
    name: "",
    category: "retail",
    currency: "USD",
    countries: &["US"],
    denominations: &["25"],
    range: None,
    route: Route::Stock,
    approval: Approval::Rule,
    stock: ORDINARY_STOCK,
};

const MAGIC: Seed = Seed {
    category: "magic",
    countries: &[],
    route: Route::Vendor,
    stock: 0,
    ..ORDINARY
};

const PRODUCTS: [Seed; 14] = [
    Seed {
        id: "acme-us",
        name: "Acme Stores",
        denominations: &["10", "25", "50", "100"],
        ..ORDINARY
    },
    Seed {
        id: "acme-eu",
        name: "Acme Stores Europe",
        currency: "EUR",
        countries: &["DE", "FR", "NL"],
        denominations: &["10", "25", "50"],
        ..ORDINARY
    },
    Seed {
        id: "arcade-jp",
        name: "Arcade Points",
        category: "gaming",
        currency: "JPY",
        countries: &["JP"],
        denominations: &["1000", "3000"],
        ..ORDINARY
    },
    Seed {
        id: "souk-kw",
        name: "Souk Card",
        currency: "KWD",
        countries: &["KW"],
        denominations: &["5", "10.500"],
        ..ORDINARY
    },
    Seed {
        id: "globe-air",
        name: "Globe Air Credit",
        category: "travel",
        countries: &[],
        denominations: &[],
        range: Some(("20", "500", "5")),
        route: Route::Vendor,
        stock: 0,
        ..ORDINARY
    },
    Seed {
        id: "sbx-instant",
        name: "Delivered at once",
        route: Route::Stock,
        stock: INSTANT_STOCK,
        ..MAGIC
    },
    Seed {
        id: "sbx-pending",
        name: "The vendor fills it in a second",
        ..MAGIC
    },
    Seed {
        id: "sbx-slow",
        name: "The vendor fills it in a minute",
        ..MAGIC
    },
    Seed {
        id: "sbx-partial",
        name: "The vendor fills half of it",
        ..MAGIC
    },
    Seed {
        id: "sbx-vendor-fails",
        name: "The vendor fills nothing of it",
        ..MAGIC
    },
    Seed {
        id: "sbx-vendor-timeout",
        name: "The vendor sells it, then times out",
        ..MAGIC
    },
    Seed {
        id: "sbx-out-of-stock",
        name: "Never there",
        route: Route::Stock,
        ..MAGIC
    },
    Seed {
        id: "sbx-approval",
        name: "Waits for approval",
        route: Route::Stock,
        approval: Approval::Always,
        stock: ORDINARY_STOCK,
        ..MAGIC
    },
    Seed {
        id: "sbx-lost-answer",
        name: "The answer is lost",
        route: Route::Stock,
        stock: ORDINARY_STOCK,
        ..MAGIC
    },
];

/// Puts the vendor, categories and products in; what is there already is replaced by the same.
pub(super) async fn seed(service: &Service) -> anyhow::Result<()> {
    let vendor = VendorTerms {
        vendor_id: VENDOR.to_owned(),
        adapter: AdapterKind::Mock,
        url: None,
        credential: None,
        concurrency: DEFAULT_CONCURRENCY,
    };
    service.store.put_vendor(vendor, By::service()).await?;
    for (category_id, name) in CATEGORIES {
        let category = Category {
            category_id: category_id.to_owned(),
            name: name.to_owned(),
            parent_id: None,
        };
        service.store.put_category(category, By::service()).await?;
    }
    for seed in &PRODUCTS {
        let product = seed
            .product(service)
            .with_context(|| format!("product {}", seed.id))?;
        service.store.put_product(product.clone(), By::service()).await?;
        service.catalogue.put(product.clone());
        for denomination in &product.denominations {
            let sku = Sku {
                product_id: product.product_id.clone(),
                denomination: *denomination,
            };
            seed.stock(service, &product, sku).await?;
        }
    }
    Ok(())
}

impl Seed {
    fn product(&self, service: &Service) -> anyhow::Result<Product> {
        let currency: Currency = self.currency.parse()?;
        let amount = |text: &str| Amount::parse(text, currency);
        let denominations = self
            .denominations
            .iter()
            .map(|text| amount(text))
            .collect::<Result<_, _>>()?;
        let range = |(min, max, step): (&str, &str, &str)| -> anyhow::Result<DenominationRange> {
            Ok(DenominationRange {
                min: amount(min)?,
                max: amount(max)?,
                step: amount(step)?,
            })
        };
        Ok(Product {
            product_id: self.id.parse()?,
            name: self.name.to_owned(),
            brand: "Sandbox".to_owned(),
            category_id: self.category.to_owned(),
            vendor: VENDOR.to_owned(),
            currency,
            countries: self.countries.iter().map(|&code| code.to_owned()).collect(),
            denominations,
            denomination_range: self.range.map(range).transpose()?,
            expiry_policy: ExpiryPolicy {
                kind: ExpiryKind::FixedDate,
                value: Some("2099-12-31".into()),
            },
            redemption: Redemption {
                instructions: "A sandbox voucher: it cannot be redeemed.".to_owned(),
                terms: "For tests only.".to_owned(),
            },
            route: self.route,
            approval: self.approval,
            returnable: self.route == Route::Vendor,
            min_validity_days: 0,
            low_stock_at: 20,
            discontinued: false,
            updated_at: service.clock.now(),
        })
    }

    /// Mock vouchers: visibly fake, and the same at every try, so that none comes in twice.
    async fn stock(&self, service: &Service, product: &Product, sku: Sku) -> anyhow::Result<()> {
        if self.stock == 0 {
            return Ok(());
        }
        let vault = service.keyring.sealing().await?;
        let ids = service.store.take_stock_ids(self.stock).await?;
        let mut vouchers = Vec::with_capacity(self.stock);
        for (number, code_id) in ids.codes.into_iter().enumerate() {
            let text = format!(
                "SANDBOX-{}-{}-{number:06}",
                self.id.to_uppercase(),
                sku.denomination.minor()
            );
            let code = VoucherCode::parse(CodeParts {
                code: &text,
                pin: Some("0000"),
                ..CodeParts::default()
            })?;
            vouchers.push(NewVoucher {
                code_id,
                blind_index: vault.blind_index(&product.brand, &code),
                sealed: vault.seal(code_id, &sku, &code)?,
                expiry: Some(EXPIRY),
                vendor_reference: None,
            });
        }
        let target = ImportTarget {
            sku,
            brand: product.brand.clone(),
            currency: product.currency,
        };
        let batch = StockBatch {
            target,
            vouchers,
            stock_ids: ids.stock,
            origin: Origin::Import,
        };
        service.store.import_stock(batch, By::service()).await?;
        Ok(())
    }
}
