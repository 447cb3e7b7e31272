//! Attributes that exclude code from every build but a test's, and attributes that move a module's file.

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ImplItem, Item, Lit, Meta, Token};

/// Returns whether an attribute compiles the code for unit tests only.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    let mut conditions = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.any(|condition| {
        condition
            .parse_args::<Meta>()
            .is_ok_and(|meta| requires_test(&meta))
    })
}

fn requires_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let nested = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
    let nested = nested.unwrap_or_default();
    if list.path.is_ident("all") {
        nested.iter().any(requires_test)
    } else {
        list.path.is_ident("any") && !nested.is_empty() && nested.iter().all(requires_test)
    }
}

/// Returns the value of `#[path = "…"]`.
pub(crate) fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.path().is_ident("path"))?;
    let Expr::Lit(literal) = &attribute.meta.require_name_value().ok()?.value else {
        return None;
    };
    match &literal.lit {
        Lit::Str(path) => Some(path.value()),
        _ => None,
    }
}

pub(crate) fn attributes_of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn attributes_of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the name by which an item is found in its module.
pub(crate) fn name_of_item(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
