//! What kind of thing a field is, found by asking the record type what it would want to read.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::config::nearest;

use super::FieldError;

pub(super) fn check<T: DeserializeOwned>(field: &str) -> Result<(), String> {
    let mut found = None;
    // Always an error: there is no value. The type only says what it would want.
    let _ = T::deserialize(Record { field, found: &mut found }).err();
    let name = std::any::type_name::<T>();
    found.unwrap_or_else(|| {
        Err(format!("{name} is not a struct whose fields serde reads by name; sort it by a key function"))
    })
}

/// What is known of the field.
type Found<'a> = &'a mut Option<Result<(), String>>;

fn stop() -> FieldError {
    FieldError::custom("only the kind was wanted")
}

struct Record<'a> {
    field: &'a str,
    found: Found<'a>,
}

impl<'de> Deserializer<'de> for Record<'_> {
    type Error = FieldError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if !fields.contains(&self.field) {
            let meant = nearest(self.field, fields.iter().copied());
            let meant = meant.map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
            let known = fields.join(", ");
            *self.found = Some(Err(format!("there is no such field{meant}; its fields are: {known}")));
            return Err(stop());
        }
        *self.found = Some(Err("its order is not known; sort by a key function".to_owned()));
        visitor.visit_map(OneField { field: Some(self.field), found: self.found })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, FieldError> {
        Err(stop())
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A struct that has one field.
struct OneField<'a> {
    field: Option<&'a str>,
    found: Found<'a>,
}

impl<'de> MapAccess<'de> for OneField<'_> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some(field) = self.field.take() else { return Ok(None) };
        let field: StrDeserializer<'_, FieldError> = field.into_deserializer();
        seed.deserialize(field).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        seed.deserialize(Field { found: &mut *self.found })
    }
}

struct Field<'a> {
    found: Found<'a>,
}

impl Field<'_> {
    fn has_no_order<V>(self, kind: &str) -> Result<V, FieldError> {
        *self.found = Some(Err(format!("it is {kind}, which has no order here; sort by a key function")));
        Err(stop())
    }
}

/// Kinds that have an order.
macro_rules! ordered {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, FieldError> {
            *self.found = Some(Ok(()));
            Err(stop())
        })*
    };
}

/// Kinds that have none.
macro_rules! without_order {
    ($($method:ident($($argument:ident: $type:ty),*) $kind:literal)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* _visitor: V) -> Result<V::Value, FieldError> {
            self.has_no_order($kind)
        })*
    };
}

impl<'de> Deserializer<'de> for Field<'_> {
    type Error = FieldError;

    ordered! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_unit
    }

    without_order! {
        deserialize_unit_struct(_name: &'static str) "a unit struct"
        deserialize_seq() "a list"
        deserialize_tuple(_length: usize) "a tuple"
        deserialize_tuple_struct(_name: &'static str, _length: usize) "a struct"
        deserialize_map() "a map"
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]) "a struct"
        deserialize_enum(_name: &'static str, _variants: &'static [&'static str]) "an enum"
        deserialize_any() "of any kind"
        deserialize_identifier() "a name"
        deserialize_ignored_any() "ignored"
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
