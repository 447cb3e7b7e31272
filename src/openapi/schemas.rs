//! Which schemas does a document need, and which of its enums may grow?
//!
//! Rule: what a request may hold is closed, what an answer may hold grows within v1. So an enum that is met in answers
//! alone is described as a text with the words of today.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Object, Ref, RefOr, Schema};

/// Words of today of a text that may get more (a name that tools know).
const OPEN_WORDS: &str = "x-extensible-enum";

/// The schemas of a document, by name.
#[derive(Default)]
pub(crate) struct Schemas {
    named: BTreeMap<String, RefOr<Schema>>,
    requested: BTreeSet<String>,
}

impl Schemas {
    /// A reference to what answers may hold.
    pub(crate) fn answered<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.collect::<T>();
        reference::<T>()
    }

    /// A reference to what requests may hold.
    pub(crate) fn requested<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let names = self.collect::<T>();
        self.requested.extend(names);
        reference::<T>()
    }

    /// A reference to a page of a list.
    pub(crate) fn page_of<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.collect::<T>();
        let name = format!("{}List", T::name());
        let page = page(&T::name(), reference::<T>());
        self.named.insert(name.clone(), page.into());
        Ref::from_schema_name(name).into()
    }

    /// All of them; enums that may grow are texts.
    pub(crate) fn finish(mut self) -> BTreeMap<String, RefOr<Schema>> {
        for (name, schema) in &mut self.named {
            if let RefOr::T(Schema::Object(object)) = schema
                && !self.requested.contains(name)
            {
                open(object);
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
            assert!(same, "two types of a document are called {name}");
            self.named.insert(name, schema);
        }
        names
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

/// From words that are all there are to the words of today.
fn open(object: &mut Object) {
    let Some(words) = object.enum_values.take() else {
        return;
    };
    let more = "More words may be added within v1: treat one that you do not know as you treat no other.";
    let description = object.description.take().unwrap_or_default();
    object.description = Some(format!("{description} {more}").trim_start().to_owned());
    let words = (OPEN_WORDS, Value::Array(words));
    object.extensions = Some(Extensions::from_iter([words]));
}

/// The words of today of a text that may get more.
pub(crate) fn open_words(description: &str, words: impl IntoIterator<Item = &'static str>) -> Object {
    let mut object = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(words))
        .build();
    open(&mut object);
    object
}

fn page(of: &str, item: RefOr<Schema>) -> Object {
    let has_more = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some("Whether there are entries after these."));
    let next_cursor = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some("The `cursor` of the next page, null on the last."));
    ObjectBuilder::new()
        .description(Some(format!("A page of the list of {of}.")))
        .property("data", ArrayBuilder::new().items(item))
        .property("has_more", has_more)
        .property("next_cursor", next_cursor)
        .required("data")
        .required("has_more")
        .required("next_cursor")
        .build()
}
