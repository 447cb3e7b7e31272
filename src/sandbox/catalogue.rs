//! Seeded sandbox catalogue: ordinary products in several currencies, and magic products whose ID selects the
//! outcome.

use anyhow::Context as _;
use time::Date;
use time::macros::date;
use vouchsafe_domain::category::Category;
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::product::content::{BarcodeFormat, ProductContent, Redemption, Translation};
use vouchsafe_domain::product::{ApprovalPolicy, DenominationRange, Product, Sku, SupplyRoute};
use vouchsafe_domain::vendor::{AdapterKind, DEFAULT_CONCURRENCY};
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_store::{AuditActor, ImportTarget, NewVoucher, StockBatch, StockOrigin, VendorConfig};

use crate::service::JobState;

/// An order of one of these products commits, and the sandbox drops its response (contract §11). The second
/// one is the earlier name.
pub(crate) const LOST_RESPONSE_PRODUCTS: [&str; 2] = ["sbx-lost-response", "sbx-lost-answer"];

const CATEGORIES: [(&str, &str); 4] = [
    ("retail", "Shops"),
    ("gaming", "Games"),
    ("travel", "Travel"),
    ("magic", "Magic: the product selects the outcome"),
];

const VENDOR: &str = "mock";

/// Name of the imported mock stock in reconciliations.
const BATCH: &str = "sandbox";

const EXPIRY: Date = date!(2099 - 12 - 31);

/// Mock vouchers per stocked denomination of an ordinary product.
const ORDINARY_STOCK: usize = 200;

/// Mock vouchers of `sbx-instant`: enough for an afternoon of tests.
const INSTANT_STOCK: usize = 5_000;

/// Fields in which the seeded products differ.
struct ProductSeed {
    id: &'static str,
    name: &'static str,
    category: &'static str,
    currency: &'static str,
    countries: &'static [&'static str],
    denominations: &'static [&'static str],
    range: Option<(&'static str, &'static str, &'static str)>,
    route: SupplyRoute,
    approval: ApprovalPolicy,
    /// Mock vouchers of each denomination.
    stock: usize,
}

const ORDINARY: ProductSeed = ProductSeed {
    id: "",
    name: "",
    category: "retail",
    currency: "USD",
    countries: &["US"],
    denominations: &["25"],
    range: None,
    route: SupplyRoute::Stock,
    approval: ApprovalPolicy::Rule,
    stock: ORDINARY_STOCK,
};

const MAGIC: ProductSeed = ProductSeed {
    category: "magic",
    countries: &[],
    route: SupplyRoute::Vendor,
    stock: 0,
    ..ORDINARY
};

/// A product that the vendor delivers in a way of its own.
const fn magic(id: &'static str, name: &'static str) -> ProductSeed {
    ProductSeed { id, name, ..MAGIC }
}

const LOST_RESPONSE: ProductSeed = ProductSeed {
    name: "Response is lost",
    route: SupplyRoute::Stock,
    stock: ORDINARY_STOCK,
    ..MAGIC
};

const PRODUCTS: [ProductSeed; 15] = [
    ProductSeed {
        id: "acme-us",
        name: "Acme Stores",
        denominations: &["10", "25", "50", "100"],
        ..ORDINARY
    },
    ProductSeed {
        id: "acme-eu",
        name: "Acme Stores Europe",
        currency: "EUR",
        countries: &["DE", "FR", "NL"],
        denominations: &["10", "25", "50"],
        ..ORDINARY
    },
    ProductSeed {
        id: "arcade-jp",
        name: "Arcade Points",
        category: "gaming",
        currency: "JPY",
        countries: &["JP"],
        denominations: &["1000", "3000"],
        ..ORDINARY
    },
    ProductSeed {
        id: "souk-kw",
        name: "Souk Card",
        currency: "KWD",
        countries: &["KW"],
        denominations: &["5", "10.500"],
        ..ORDINARY
    },
    ProductSeed {
        id: "globe-air",
        name: "Globe Air Credit",
        category: "travel",
        countries: &[],
        denominations: &[],
        range: Some(("20", "500", "5")),
        route: SupplyRoute::Vendor,
        stock: 0,
        ..ORDINARY
    },
    ProductSeed {
        id: "sbx-instant",
        name: "Delivered at once",
        route: SupplyRoute::Stock,
        stock: INSTANT_STOCK,
        ..MAGIC
    },
    magic("sbx-pending", "Vendor delivers after a second"),
    magic("sbx-slow", "Vendor delivers after a minute"),
    magic("sbx-partial", "Vendor delivers half"),
    magic("sbx-vendor-fails", "Vendor delivers nothing"),
    magic("sbx-vendor-timeout", "Vendor sells, then times out"),
    ProductSeed {
        id: "sbx-out-of-stock",
        name: "Never in stock",
        route: SupplyRoute::Stock,
        ..MAGIC
    },
    ProductSeed {
        id: "sbx-approval",
        name: "Waits for approval",
        route: SupplyRoute::Stock,
        approval: ApprovalPolicy::Always,
        stock: ORDINARY_STOCK,
        ..MAGIC
    },
    ProductSeed {
        id: LOST_RESPONSE_PRODUCTS[0],
        ..LOST_RESPONSE
    },
    ProductSeed {
        id: LOST_RESPONSE_PRODUCTS[1],
        ..LOST_RESPONSE
    },
];

/// Creates the vendor, categories, products and stock; idempotent.
pub(super) async fn seed(service: &JobState) -> anyhow::Result<()> {
    let vendor = VendorConfig {
        vendor_id: VENDOR.to_owned(),
        adapter: AdapterKind::Mock,
        url: None,
        credential: None,
        concurrency: DEFAULT_CONCURRENCY,
    };
    service.store.vendors.put(vendor, AuditActor::service()).await?;
    for (category_id, name) in CATEGORIES {
        let category = Category {
            category_id: category_id.to_owned(),
            name: name.to_owned(),
            parent_id: None,
        };
        service
            .store
            .categories
            .put(category, AuditActor::service())
            .await?;
    }
    for seed in &PRODUCTS {
        seed.put(service).await?;
    }
    Ok(())
}

/// Adds the product that version 1.0.0-rc.1 seeded under its earlier name only.
pub(super) async fn add_renamed(service: &JobState) -> anyhow::Result<()> {
    let catalogue = service.catalogue.current();
    let [is_known, is_earlier_known] = LOST_RESPONSE_PRODUCTS.map(|id| {
        let id = id.parse().ok();
        id.is_some_and(|id| catalogue.get(&id).is_some())
    });
    if is_known || !is_earlier_known {
        return Ok(());
    }
    let seed = ProductSeed {
        id: LOST_RESPONSE_PRODUCTS[0],
        ..LOST_RESPONSE
    };
    seed.put(service).await
}

impl ProductSeed {
    /// Creates or replaces the product with its texts, and imports its stock.
    async fn put(&self, service: &JobState) -> anyhow::Result<()> {
        let product = self
            .build_product(service)
            .with_context(|| format!("product {}", self.id))?;
        let products = &service.store.products;
        products.put(product.clone(), AuditActor::service()).await?;
        let product = match self.translation()? {
            None => product,
            Some(translation) => {
                let id = product.product_id.clone();
                let put = products.put_translation(id, translation, AuditActor::service());
                put.await?.unwrap_or(product)
            }
        };
        service.catalogue.put(product.clone());
        for denomination in &product.denominations {
            let sku = Sku {
                product_id: product.product_id.clone(),
                denomination: denomination.amount,
            };
            self.import_stock(service, &product, sku).await?;
        }
        Ok(())
    }

    fn build_product(&self, service: &JobState) -> anyhow::Result<Product> {
        let currency: Currency = self.currency.parse()?;
        let amount = |text: &str| Amount::parse(text, currency);
        let denominations = self
            .denominations
            .iter()
            .map(|text| amount(text).map(|amount| amount.of(currency)))
            .collect::<Result<_, _>>()?;
        let range = |(min, max, step): (&str, &str, &str)| -> anyhow::Result<DenominationRange> {
            let amounts = [amount(min)?, amount(max)?, amount(step)?];
            Ok(DenominationRange::new(amounts, currency))
        };
        Ok(Product {
            name: self.name.to_owned(),
            brand: "Sandbox".to_owned(),
            category_id: self.category.to_owned(),
            vendor: VENDOR.to_owned(),
            countries: self.countries.iter().map(|&code| code.to_owned()).collect(),
            denominations,
            denomination_range: self.range.map(range).transpose()?,
            expiry_policy: ExpiryPolicy::fixed_date("2099-12-31"),
            redemption: Redemption {
                instructions: "A sandbox voucher: it cannot be redeemed.".to_owned(),
                terms: "For tests only.".to_owned(),
            },
            content: ProductContent {
                description: "A voucher for tests.".to_owned(),
                images: vec!["https://vouchsafe.example/sandbox.png".to_owned()],
                barcode_format: Some(BarcodeFormat::Code128),
                balance_check_url: Some("https://vouchsafe.example/balance".to_owned()),
                support_email: Some("support@vouchsafe.example".to_owned()),
                ..ProductContent::default()
            },
            route: self.route,
            approval: self.approval,
            returnable: self.route == SupplyRoute::Vendor,
            low_stock_at: 20,
            ..Product::new(self.id.parse()?, currency, service.clock.now())
        })
    }

    /// The German texts of a product that is sold in Germany.
    fn translation(&self) -> anyhow::Result<Option<Translation>> {
        if !self.countries.contains(&"DE") {
            return Ok(None);
        }
        Ok(Some(Translation {
            language: "de".parse()?,
            description: "Gutschein für Tests.".to_owned(),
            redemption: Redemption {
                instructions: "Gutschein der Sandbox: nicht einlösbar.".to_owned(),
                terms: "Nur für Tests.".to_owned(),
            },
        }))
    }

    /// Imports visibly fake vouchers. Codes are deterministic, so a repetition imports none twice.
    async fn import_stock(&self, service: &JobState, product: &Product, sku: Sku) -> anyhow::Result<()> {
        if self.stock == 0 {
            return Ok(());
        }
        let vault = service.keyring.sealing_vault().await?;
        let ids = service.store.stock.generate_ids(self.stock).await?;
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
                blind_index: vault.blind_index(product.code_scope(), &code),
                code_index: vault.code_index(product.code_scope(), &code),
                sealed: vault.seal(code_id, &sku, &code)?,
                expiry: Some(EXPIRY),
                vendor_reference: None,
            });
        }
        let target = ImportTarget::new(product, sku);
        let named = service
            .store
            .stock
            .open_batch(VENDOR.to_owned(), BATCH.to_owned());
        let origin = StockOrigin::Import(named.await?);
        let batch = StockBatch {
            target,
            vouchers,
            stock_ids: ids.stock,
            origin,
        };
        service.store.stock.import(batch, AuditActor::service()).await?;
        Ok(())
    }
}
