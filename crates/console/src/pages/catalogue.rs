//! Catalogue: categories and products, with the import of a product's vouchers.

use vouchsafe_wire::operator::{catalogue, stock};

use super::audit_of;
use crate::page::{Action, Input, List, Object, Page, REASON, Section, Source, choice, col, filter, target};

/// The definition of a product. A change replaces all of it, so the form begins with the current values.
const PRODUCT: [Input; 28] = [
    Input::field("name", "Name"),
    Input::field("brand", "Brand"),
    Input::field("category_id", "Category ID"),
    Input::field("vendor", "Vendor ID"),
    Input::field("currency", "Currency"),
    Input::field("denominations", "Denominations")
        .hint("Face values, one per line. May be empty if there is a range."),
    Input::field("denomination_range", "Range").hint("Of further face values. Not set: none."),
    Input::field("countries", "Countries").hint("Codes of two letters, one per line. Empty: everywhere."),
    Input::field("expiry_policy.type", "Expiry policy"),
    Input::field("expiry_policy.expires_on", "Last valid day")
        .hint("Only for FIXED_DATE, such as 2027-12-31."),
    Input::field("expiry_policy.valid_months", "Months of validity").hint("Only for MONTHS_FROM_ISSUE."),
    Input::field("route", "When stock is short")
        .hint("stock: only imported vouchers are sold. vendor: vouchers are bought."),
    Input::field("approval", "Orders that wait for approval"),
    Input::field("code_identity", "Codes are unique by"),
    Input::field("code_case", "Case of codes")
        .hint("ignored: codes that differ only in case are one. Cannot change once the brand has stock."),
    Input::field("returnable", "The vendor accepts returned vouchers"),
    Input::field("min_validity_days", "Least validity in days"),
    Input::field("low_stock_at", "Low stock at"),
    Input::field("content.language", "Language of the texts")
        .hint("Such as en. Texts in other languages are below."),
    Input::field("content.description", "Description"),
    Input::field("redemption.instructions", "Instructions").hint("For the holder of a voucher."),
    Input::field("redemption.terms", "Terms"),
    Input::field("content.images", "Images")
        .hint("Addresses with https, one per line, the most important one first."),
    Input::field("content.barcode_format", "Barcode").hint("Not set: the code is typed in."),
    Input::field("content.balance_check_url", "Balance check"),
    Input::field("content.support_email", "Support by e-mail"),
    Input::field("content.support_phone", "Support by telephone"),
    Input::field("content.support_url", "Support page"),
];

const DISCONTINUED: Input = Input::field("discontinued", "Sales have ended");

const PRODUCT_ID: Input = Input::placeholder("product_id", "Product ID")
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

const fn put_translation(slug: &'static str, label: &'static str) -> Action {
    Action::new(slug, label, catalogue::PUT_PRODUCT_TRANSLATION)
        .fixed(&[("redemption", "{}")])
        .inputs(&TRANSLATION)
}

const TRANSLATION: [Input; 4] = [
    Input::placeholder("language", "Language")
        .hint("Such as de or pt-BR. Texts in this language are replaced."),
    Input::field("description", "Description"),
    Input::field("redemption.instructions", "Instructions"),
    Input::field("redemption.terms", "Terms"),
];

/// The definition of a product after another input.
const fn with(first: Input) -> [Input; 29] {
    let mut inputs = [first; 29];
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

const CATEGORY_NAME: Input = Input::field("name", "Name");

const PARENT: Input = Input::field("parent_id", "ID of the parent category");

pub(super) static PAGES: [Page; 3] = [
    Page::list("/categories", "Categories", List::of(catalogue::LIST_CATEGORIES).row_actions(&[put_category("change", "Change")
                .inputs(&[CATEGORY_NAME, PARENT])
                .done("The category was changed.")])).actions(&[put_category("create", "Create a category")
            .inputs(&[
                Input::placeholder("category_id", "Category ID").hint("Of a-z, 0-9, '-', '_' and '.'. It cannot be changed."),
                CATEGORY_NAME,
                PARENT,
            ])
            .done("The category was created.")]),
    Page::list("/products", "Products", List::of(catalogue::LIST_PRODUCTS).filters(&[
                filter("name", "ID, name or brand"),
                filter("category_id", "Category ID"),
                filter("vendor", "Vendor ID"),
                choice("discontinued", "Sales have ended", || vec!["false", "true"]),
            ])).actions(&[CREATE_PRODUCT]),
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
                col("Language", "content.language"),
                col("Description", "content.description"),
                col("Instructions", "redemption.instructions"),
                col("Terms", "redemption.terms"),
                col("Images", "content.images"),
                col("Barcode", "content.barcode_format"),
                col("Balance check", "content.balance_check_url"),
                col("Support", "content.support_email content.support_phone content.support_url"),
                col("Changed", "updated_at"),
            ], &[
                Section::new("Texts in other languages", Source::Field("translations"), &[
                    col("Language", "language"),
                    col("Description", "description"),
                    col("Instructions", "redemption.instructions"),
                    col("Terms", "redemption.terms"),
                ], "The texts exist in one language.").row_actions(&[
                    put_translation("translation", "Change").done("The texts were changed."),
                    Action::new("delete-translation", "Delete", catalogue::DELETE_PRODUCT_TRANSLATION)
                        .dangerous()
                        .done("The texts were deleted."),
                ]),
                Section::list("Stock", target(stock::LIST_STOCK).query("product_id={product_id}&limit=50"), "/stock?product_id={product_id}", "No voucher was imported."),
                Section::list("Stock by expiry", target(stock::LIST_STOCK_EXPIRIES).query("product_id={product_id}&limit=24"), "/expiries?product_id={product_id}", "No voucher is available."),
                audit_of("subject={product_id}&limit=10", "/audit?subject={product_id}"),
            ])).actions(&[
            CHANGE_PRODUCT,
            put_translation("translate", "Translate").done("The texts were saved."),
            Action::by_query("import", "Import vouchers", stock::IMPORT_STOCK, "product_id={product_id}&denomination={denomination}&batch={batch}")
            .inputs(&[
                Input::placeholder("denomination", "Denomination").hint("Such as 25.00."),
                Input::optional_placeholder("batch", "Batch")
                    .hint("A name for reconciliation. Empty: the time of the import."),
                Input::file("file", "File", ".csv,.ndjson,.jsonl")
                    .hint("CSV with a header of code, pin, serial, url and expiry, or without one code and PIN per line, or NDJSON (.ndjson, .jsonl), of any size."),
            ])
            .note(
                "Can be repeated: no voucher is imported twice. Codes are encrypted while the file \
                 arrives, and not shown. Lines that are rejected are listed; the others are imported.",
            )
            .shows("Result of the import"),
            Action::new("void", "Void vouchers", stock::VOID_STOCK)
                .inputs(&[
                    Input::page_parameter("product_id"),
                    Input::field("denomination", "All free vouchers of this denomination"),
                    Input::field("expected_count", "Number of free vouchers of the denomination")
                        .hint("Leave it empty to be told the number; nothing is voided then."),
                    Input::field("codes", "Or single codes").hint("One per line, with its PIN after a comma."),
                    REASON,
                ])
                .fixed(&[("expected_count", "0")])
                .dangerous()
                .note("Voided vouchers are never sold. This cannot be undone.")
                .shows("Result of the void"),
        ]),
];
