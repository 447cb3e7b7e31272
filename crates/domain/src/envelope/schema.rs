//! OpenAPI schemas of events: one per kind, with the fields that this kind has, and one of any kind.

use strum::VariantArray as _;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{Object, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{Envelope, OrderEventData, VoucherEventData};
use crate::event_kind::EventKind;

/// An event of any kind. It is one object and no union of the kinds: a client generated from a union fails on
/// a kind that was added later.
#[derive(Debug)]
pub enum Event {}

impl PartialSchema for Event {
    fn schema() -> RefOr<Schema> {
        let mut schema = object(Envelope::schema());
        schema.description = Some(
            "An event. `event` determines the fields of its `data`, see the schema of each event. Ignore \
             events of types that you do not know."
                .to_owned(),
        );
        let data = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("What the event is about."))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)));
        schema
            .properties
            .insert("data".to_owned(), Schema::from(data.build()).into());
        Schema::from(schema).into()
    }
}

impl ToSchema for Event {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Envelope::schemas(schemas);
        OrderEventData::schemas(schemas);
        VoucherEventData::schemas(schemas);
        for kind in EventKind::VARIANTS {
            schemas.push((data_name(*kind), data_schema(*kind).into()));
            schemas.push((kind.schema_name(), event_schema(*kind).into()));
        }
    }
}

impl EventKind {
    /// Name of the schema of the events of this kind.
    #[must_use]
    pub fn schema_name(self) -> String {
        format!("{self:?}Event")
    }

    /// Fields of [`OrderEventData`] that only events of this kind have.
    const fn own_fields(self) -> &'static [&'static str] {
        match self {
            Self::OrderProcessing => &["pending_reason"],
            Self::OrderPartiallyDelivered => &["delivered", "pending", "failed"],
            Self::OrderCancelled => &["by", "reason"],
            Self::OrderRefunded => &["refund"],
            Self::OrderCreated | Self::OrderDelivered | Self::VoucherIssued => &[],
        }
    }
}

fn label(kind: EventKind) -> &'static str {
    kind.into()
}

fn data_name(kind: EventKind) -> String {
    format!("{kind:?}Data")
}

/// The envelope with this kind's label and data.
fn event_schema(kind: EventKind) -> Object {
    let mut schema = object(Envelope::schema());
    schema.description = Some(format!("The event `{}`.", label(kind)));
    let only = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("What happened."))
        .enum_values(Some([label(kind)]));
    schema
        .properties
        .insert("event".to_owned(), Schema::from(only.build()).into());
    let data = Ref::from_schema_name(data_name(kind));
    schema.properties.insert("data".to_owned(), data.into());
    schema
}

/// The data of this kind: what all kinds have, and its own fields.
fn data_schema(kind: EventKind) -> Object {
    if kind == EventKind::VoucherIssued {
        return object(VoucherEventData::schema());
    }
    let mut schema = object(OrderEventData::schema());
    let own = kind.own_fields();
    let of_others = EventKind::VARIANTS.iter().flat_map(|kind| kind.own_fields());
    for field in of_others.filter(|field| !own.contains(field)) {
        schema.properties.remove(*field);
    }
    schema
        .required
        .extend(own.iter().map(|field| (*field).to_owned()));
    schema
}

/// The schema of a struct.
fn object(schema: RefOr<Schema>) -> Object {
    match schema {
        RefOr::T(Schema::Object(object)) => object,
        _ => Object::new(),
    }
}
