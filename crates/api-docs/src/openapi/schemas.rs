//! Schema collection of an OpenAPI document.
//!
//! Enums in requests are closed, and so are those whose values are final within v1. All others, and the types
//! of events, may get new values, so they are published as strings with `x-extensible-enum`.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Object, Ref, RefOr, Schema};
use vouchsafe_wire::page::MAX_COUNT;
use vouchsafe_wire::schema::make_extensible;

/// Enums of responses that get no new values within v1, so that generated clients have types for them.
/// versioning.md lists them.
const FINAL_ENUMS: [&str; 8] = [
    "Availability",
    "CheckState",
    "ExpiryKind",
    "OrderStatus",
    "PayoutStatus",
    "RefundScope",
    "Source",
    "WebhookStatus",
];

/// Enums that may get new values within v1, and that requests contain, too.
const OPEN_ENUMS: [&str; 1] = ["EventKind"];

/// The schemas of a document by name.
#[derive(Default)]
pub struct Schemas {
    named: BTreeMap<String, RefOr<Schema>>,
    request_schemas: BTreeSet<String>,
}

impl Schemas {
    /// Adds the schema of a response and returns a reference.
    pub fn response<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.collect::<T>();
        reference::<T>()
    }

    /// Adds the schema of a request and returns a reference.
    pub fn request<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let names = self.collect::<T>();
        self.request_schemas.extend(names);
        reference::<T>()
    }

    /// Adds the schema of a page of a list and returns a reference.
    pub fn page_of<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.add_page::<T>(page_schema(&T::name(), reference::<T>()))
    }

    /// Adds the schema of a page of a list that also counts its entries, and returns a reference.
    pub fn counted_page_of<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let mut page = page_schema(&T::name(), reference::<T>());
        let count = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
            .minimum(Some(0))
            .maximum(Some(MAX_COUNT))
            .description(Some(
                "Entries of the list that match the filters, only with `count=true`. Null if there are more than 10,000.",
            ));
        page.properties.insert("count".to_owned(), count.into());
        self.add_page::<T>(page)
    }

    fn add_page<T: ToSchema>(&mut self, page: Object) -> RefOr<Schema> {
        self.collect::<T>();
        let name = format!("{}List", T::name());
        self.named.insert(name.clone(), page.into());
        Ref::from_schema_name(name).into()
    }

    /// All schemas, with the enums made extensible that may get new values.
    pub fn finish(mut self) -> BTreeMap<String, RefOr<Schema>> {
        for (name, schema) in &mut self.named {
            let is_final = self.request_schemas.contains(name) || FINAL_ENUMS.contains(&name.as_str());
            if let RefOr::T(Schema::Object(object)) = schema
                && (!is_final || OPEN_ENUMS.contains(&name.as_str()))
            {
                make_extensible(object);
            }
        }
        self.named
    }

    fn collect<T: ToSchema>(&mut self) -> Vec<String> {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        let names = found.iter().map(|(name, _)| name.clone()).collect();
        for (name, schema) in found {
            let same = self.named.get(&name).is_none_or(|known| *known == schema);
            assert!(same, "two types with different schemas are named {name}");
            self.named.insert(name, schema);
        }
        names
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

fn page_schema(of: &str, item: RefOr<Schema>) -> Object {
    let has_more = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some("Whether another page follows."));
    let next_cursor = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some(
            "Pass it as `cursor` for the next page. Null on the last page.",
        ));
    ObjectBuilder::new()
        .description(Some(format!("A page of a list of {of}.")))
        .property("data", ArrayBuilder::new().items(item))
        .property("has_more", has_more)
        .property("next_cursor", next_cursor)
        .required("data")
        .required("has_more")
        .required("next_cursor")
        .build()
}
