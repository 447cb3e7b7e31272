//! Catalogue: categories and products, with the import of a product's vouchers.

use vouchsafe_domain::product::{ApprovalPolicy, CodeCase, CodeIdentity, ExpiryKind, SupplyRoute};
use vouchsafe_wire::operator::{catalogue, stock};

use super::audit_of;
use crate::page::{Action, Input, InputKind, List, Object, Page, Section, col, target};

/// The definition of a product. A change replaces all of it, so the form begins with the current values.
const PRODUCT: [Input; 19] = [
    Input::line("name", "Name").prefilled(),
    Input::line("brand", "Brand")
        .prefilled()
        .hint("Codes are unique within a brand."),
    Input::line("category_id", "Category ID").prefilled(),
    Input::line("vendor", "Vendor ID").prefilled(),
    Input::line("currency", "Currency")
        .prefilled()
        .hint("Such as USD."),
    Input::new("denominations", "Denominations", InputKind::Lines)
        .prefilled()
        .hint("Face values, one per line. May be empty if there is a range."),
    Input::new("denomination_range", "Range", InputKind::Json)
        .current()
        .hint("JSON such as {\"min\":\"10.00\",\"max\":\"100.00\",\"step\":\"5.00\"}. Empty: none."),
    Input::new("countries", "Countries", InputKind::Lines)
        .prefilled()
        .hint("Codes of two letters, one per line. Empty: everywhere."),
    Input::choice::<ExpiryKind>("expiry_policy.type", "Expiry policy").prefilled(),
    Input::number("expiry_policy.value", "Value of the expiry policy")
        .current()
        .hint("Months, or a day such as 2027-12-31, as the policy needs it."),
    Input::choice::<SupplyRoute>("route", "When stock is short")
        .prefilled()
        .hint("stock: only imported vouchers are sold. vendor: vouchers are bought."),
    Input::choice::<ApprovalPolicy>("approval", "Orders that wait for approval").prefilled(),
    Input::choice::<CodeIdentity>("code_identity", "Codes are unique by").prefilled(),
    Input::choice::<CodeCase>("code_case", "Case of codes")
        .optional()
        .prefilled()
        .hint("ignored: codes that differ only in case are one. Cannot change once the brand has stock."),
    Input::flag("returnable", "The vendor accepts returned vouchers")
        .optional()
        .prefilled(),
    Input::number("min_validity_days", "Least validity in days")
        .optional()
        .prefilled(),
    Input::number("low_stock_at", "Low stock at")
        .optional()
        .prefilled()
        .hint("Empty: 20."),
    Input::new("redemption.instructions", "Instructions", InputKind::Paragraph)
        .optional()
        .prefilled()
        .hint("For the holder of a voucher."),
    Input::new("redemption.terms", "Terms", InputKind::Paragraph)
        .optional()
        .prefilled(),
];

const DISCONTINUED: Input = Input::flag("discontinued", "Sales have ended")
    .optional()
    .prefilled();

const PRODUCT_ID: Input = Input::line("product_id", "Product ID")
    .hint("Of a-z, 0-9, '-', '_' and '.', such as acme-us. It cannot be changed.");

const fn put_product(slug: &'static str, label: &'static str) -> Action {
    // Required, also without instructions and terms.
    Action::new(slug, label, catalogue::PUT_PRODUCT).fixed(&[("redemption", "{}")])
}

const CREATE_PRODUCT: Action = put_product("create", "Create a product")
    .inputs(&with(PRODUCT_ID))
    .done("The product was created. Import vouchers on its page.");

const CHANGE_PRODUCT: Action = put_product("change", "Change")
    .inputs(&with(DISCONTINUED))
    .done("The product was changed. It applies to new orders.");

/// The definition of a product after another input.
const fn with(first: Input) -> [Input; 20] {
    let mut inputs = [first; 20];
    let mut index = 0;
    while index < PRODUCT.len() {
        inputs[index + 1] = PRODUCT[index];
        index += 1;
    }
    inputs
}

const fn put_category(slug: &'static str, label: &'static str) -> Action {
    Action::new(slug, label, catalogue::PUT_CATEGORY)
}

const CATEGORY_NAME: Input = Input::line("name", "Name").prefilled();

const PARENT: Input = Input::line("parent_id", "ID of the parent category").current();

pub(super) static PAGES: [Page; 3] = [
    Page::list("/categories", "Categories", List::of(catalogue::LIST_CATEGORIES).row_actions(&[put_category("change", "Change")
                .inputs(&[CATEGORY_NAME, PARENT])
                .done("The category was changed.")])).actions(&[put_category("create", "Create a category")
            .inputs(&[
                Input::line("category_id", "Category ID").hint("Of a-z, 0-9, '-', '_' and '.'. It cannot be changed."),
                CATEGORY_NAME,
                PARENT,
            ])
            .done("The category was created.")]),
    Page::list("/products", "Products", List::of(catalogue::LIST_PRODUCTS)).actions(&[CREATE_PRODUCT]),
    Page::object("/products/{product_id}", "Product", Object::of(catalogue::GET_PRODUCT, "name", &[
                col("ID", "product_id"),
                col("Brand", "brand"),
                col("Category", "category_id"),
                col("Vendor", "vendor"),
                col("Currency", "currency"),
                col("Denominations", "denominations"),
                col("Range", "denomination_range"),
                col("Countries", "countries"),
                col("Expiry policy", "expiry_policy"),
                col("Source when stock is short", "route"),
                col("Approval", "approval"),
                col("Returnable", "returnable"),
                col("Codes are unique by", "code_identity"),
                col("Case of codes", "code_case"),
                col("Least validity in days", "min_validity_days"),
                col("Low stock at", "low_stock_at"),
                col("Discontinued", "discontinued"),
                col("Instructions", "redemption.instructions"),
                col("Terms", "redemption.terms"),
                col("Changed", "updated_at"),
            ], &[
                Section::list("Stock", target(stock::LIST_STOCK).query("product_id={product_id}&limit=50"), "/stock?product_id={product_id}", "No voucher was imported."),
                Section::list("Stock by expiry", target(stock::LIST_STOCK_EXPIRIES).query("product_id={product_id}&limit=24"), "/expiries?product_id={product_id}", "No voucher is available."),
                audit_of("subject={product_id}&limit=10", "/audit?subject={product_id}"),
            ])).actions(&[
            CHANGE_PRODUCT,
            Action::new("import",
                "Import vouchers", stock::IMPORT_STOCK).query("product_id={product_id}&denomination={denomination}&batch={batch}")
            .inputs(&[
                Input::line("denomination", "Denomination").hint("Such as 25.00."),
                Input::line("batch", "Batch")
                    .optional()
                    .hint("A name for reconciliation. Empty: the time of the import."),
                Input::new("file", "File", InputKind::File(".csv,.ndjson,.jsonl"))
                    .hint("CSV with a header of code, pin, serial, url and expiry, or NDJSON (.ndjson, .jsonl), of any size."),
            ])
            .note(
                "Can be repeated: no voucher is imported twice. Codes are encrypted while the file arrives, and not shown. Lines that are \
                 rejected are listed; the others are imported.",
            )
            .shows("Vouchers were imported"),
            Action::new("void", "Void vouchers", stock::VOID_STOCK)
                .inputs(&[
                    Input::new("product_id", "Product", InputKind::Param),
                    Input::line("denomination", "All free vouchers of this denomination").optional(),
                    Input::new("codes", "Or single codes", InputKind::Rows)
                        .optional()
                        .hint("CSV with a header of code and pin."),
                    Input::new("reason", "Reason", InputKind::Paragraph).hint("For the audit trail."),
                ])
                .note("Voided vouchers are never sold. This cannot be undone.")
                .shows("Vouchers were voided"),
        ]),
];
