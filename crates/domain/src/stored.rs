//! Lenient JSON form of stored values: a field that a newer version has added is ignored.
//!
//! During a rolling upgrade an older node reads rows of a newer one. The types are strict, because request
//! bodies share them.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, IntoDeserializer, MapAccess,
    Visitor,
};
use serde_json::value::RawValue;

/// A stored value. Its structs, also nested ones, ignore unknown fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Stored<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(Lenient(deserializer)).map(Self)
    }
}

/// A [`Stored`] value with its JSON text, which has the unknown fields, too.
#[derive(Debug, Clone)]
pub struct StoredText<T> {
    pub value: T,
    pub text: Box<RawValue>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for StoredText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Stored(value) = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { value, text })
    }
}

/// Removes unknown fields from the structs that another deserializer, map access or seed yields.
struct Lenient<D>(D);

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Lenient<D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(LenientVisitor { visitor, fields: &[] })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_struct(name, fields, LenientVisitor { visitor, fields })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Lenient<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Lenient(deserializer))
    }
}

/// Visits a struct with these fields, or an optional one.
struct LenientVisitor<V> {
    visitor: V,
    fields: &'static [&'static str],
}

impl<'de, V: Visitor<'de>> Visitor<'de> for LenientVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Lenient(deserializer))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(KnownFields {
            map,
            fields: self.fields,
        })
    }
}

struct KnownFields<A> {
    map: A,
    fields: &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KnownFields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            if self.fields.contains(&name.as_str()) {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            self.map.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(Lenient(seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::partner::caps::PartnerCaps;

    #[test]
    fn unknown_fields_of_stored_caps_and_limits_are_ignored() {
        let known = r#"{"pending_orders":3,"pending_amount":{"USD":10.05},"approval_over":{"within_s":60,"orders":9}}"#;
        let newer = r#"{"later":{"a":[1]},"pending_orders":3,"pending_amount":{"USD":10.05},"approval_over":{"within_s":60,"later":null,"orders":9},"last":1}"#;
        let Stored(caps) = serde_json::from_str::<Stored<PartnerCaps>>(newer).unwrap();
        assert_eq!(caps, serde_json::from_str(known).unwrap());
        assert!(
            serde_json::from_str::<PartnerCaps>(newer).is_err(),
            "a request body is strict"
        );

        let known = r#"{"orders":{"quota":5,"window_s":60},"vouchers":null}"#;
        let newer =
            r#"{"orders":{"quota":5,"window_s":60,"burst":1},"vouchers":null,"webhooks":{"quota":1}}"#;
        let Stored(limits) = serde_json::from_str::<Stored<Limits>>(newer).unwrap();
        assert_eq!(limits, serde_json::from_str(known).unwrap());
        assert!(serde_json::from_str::<Limits>(newer).is_err());
    }

    #[test]
    fn invalid_stored_value_is_an_error() {
        for text in [
            "[]",
            r#"{"pending_orders":-1}"#,
            r#"{"pending_amount":{"USD":1.001}}"#,
            "{",
        ] {
            assert!(
                serde_json::from_str::<Stored<PartnerCaps>>(text).is_err(),
                "{text}"
            );
        }
    }
}
