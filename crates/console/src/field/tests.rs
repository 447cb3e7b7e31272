//! What request types say about the inputs of the pages.

use super::*;
use crate::pages::all_pages;
use crate::visit::all_actions;

fn actions() -> impl Iterator<Item = (&'static str, &'static Action)> {
    all_pages().flat_map(|page| all_actions(page).into_iter().map(|action| (page.path, action)))
}

#[test]
fn inputs_fill_fields_of_the_body_or_placeholders_of_the_path() {
    let mut checked = 0;
    for (page, action) in actions() {
        for input in action.inputs {
            let name = input.name;
            let is_filled = match input.target {
                InputTarget::Field | InputTarget::PageParameter => (action.body)().property(name).is_some(),
                InputTarget::Placeholder { .. } => action.api.placeholders().any(|known| known == name),
                InputTarget::File(_) => true,
            };
            assert!(is_filled, "{page} {}: {name}", action.slug);
            checked += 1;
        }
        for (name, _) in action.fixed {
            assert!(
                (action.body)().property(name).is_some(),
                "{page} {}: {name}",
                action.slug
            );
        }
    }
    assert!(checked > 80, "{checked}");
}

/// The fields of the form at this page, with those of groups.
fn form(page: &str, slug: &str) -> Vec<Field> {
    let found = actions().find(|(path, action)| (*path, action.slug) == (page, slug));
    fields(found.unwrap().1)
}

fn find<'a>(fields: &'a [Field], name: &str) -> &'a Field {
    let mut all = fields.iter().flat_map(Field::with_parts);
    all.find(|field| field.name == name).unwrap()
}

#[test]
fn request_type_determines_kind_need_and_bounds() {
    let product = form("/products/{product_id}", "change");
    let kind = |name: &str| &find(&product, name).kind;
    assert!(matches!(kind("name"), FieldKind::Line));
    assert!(matches!(kind("redemption.terms"), FieldKind::Paragraph));
    assert!(matches!(kind("returnable"), FieldKind::Flag));
    assert!(matches!(kind("denominations"), FieldKind::Lines));
    assert!(matches!(kind("route"), FieldKind::Choice(choices) if choices == &["stock", "vendor"]));
    let validity = find(&product, "min_validity_days");
    assert!(matches!(validity.kind, FieldKind::Number) && !validity.is_required);
    assert!(validity.hint.starts_with("0 to 3650. "), "{}", validity.hint);
    assert!(find(&product, "countries").is_required && validity.is_prefilled);

    let vendor = form("/vendors/{vendor_id}", "change");
    let credential = find(&vendor, "credentials");
    assert!(matches!(credential.kind, FieldKind::Secret) && !credential.is_prefilled);
    let void = form("/products/{product_id}", "void");
    assert!(matches!(find(&void, "codes").kind, FieldKind::Rows));
    let drift = form("/drifts", "resolve");
    let resolution = &find(&drift, "resolution").kind;
    assert!(matches!(resolution, FieldKind::Choice(choices) if choices == &["resolved", "escalated"]));
}

#[test]
fn object_is_a_group_of_its_fields_in_the_order_of_its_type() {
    let product = form("/products/{product_id}", "change");
    let range = find(&product, "denomination_range");
    let FieldKind::Group(parts) = &range.kind else {
        panic!("{}", range.label)
    };
    let labels: Vec<_> = parts.iter().map(|part| &*part.label).collect();
    assert_eq!(labels, ["Min", "Max", "Step"]);
    assert!(range.is_nullable);

    let partner = form("/partners/{partner_id}", "caps");
    assert!(matches!(
        find(&partner, "caps.spend_per_day").kind,
        FieldKind::Amounts
    ));
    assert_eq!(
        find(&partner, "caps.approval_over.within_s").label,
        "Within, in seconds"
    );
    let credential = form("/partners/{partner_id}", "issue");
    assert!(matches!(&find(&credential, "scopes").kind, FieldKind::Choices(scopes) if scopes.len() == 6));
}
