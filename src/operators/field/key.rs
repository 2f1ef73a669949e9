//! Takes one field's value out of a record by its serialization.

use serde::ser::{Error, Impossible, SerializeStruct};
use serde::{Serialize, Serializer};

use super::{FieldError, FieldKey};

type Result<T> = std::result::Result<T, FieldError>;

/// Of a struct: the key, if it has the field.
pub(super) struct OfStruct<'a> {
    pub field: &'a str,
}

pub(super) struct Fields<'a> {
    field: &'a str,
    key: Option<FieldKey>,
}

impl SerializeStruct for Fields<'_> {
    type Ok = Option<FieldKey>;
    type Error = FieldError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        if name == self.field {
            self.key = Some(value.serialize(OfField)?);
        }
        Ok(())
    }

    fn end(self) -> Result<Option<FieldKey>> {
        Ok(self.key)
    }
}

/// Of a field.
struct OfField;

fn unexpected<T>(kind: &str) -> Result<T> {
    Err(FieldError::custom(format!("a record is written as {kind}, which it does not say when it is read")))
}

/// What neither a struct with fields nor a field with an order is.
macro_rules! refuse {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty, $kind:literal;)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<$result> {
            unexpected($kind)
        })*

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _name: &'static str,
            _index: u32,
            _variant: &'static str,
            _value: &T,
        ) -> Result<Self::Ok> {
            unexpected("a variant")
        }

        fn is_human_readable(&self) -> bool {
            false
        }
    };
}

macro_rules! values {
    ($($method:ident($type:ty) $value:ident => $key:expr;)*) => {
        $(fn $method(self, $value: $type) -> Result<FieldKey> {
            Ok($key)
        })*
    };
}

impl Serializer for OfField {
    type Ok = FieldKey;
    type Error = FieldError;
    type SerializeSeq = Impossible<FieldKey, FieldError>;
    type SerializeTuple = Impossible<FieldKey, FieldError>;
    type SerializeTupleStruct = Impossible<FieldKey, FieldError>;
    type SerializeTupleVariant = Impossible<FieldKey, FieldError>;
    type SerializeMap = Impossible<FieldKey, FieldError>;
    type SerializeStruct = Impossible<FieldKey, FieldError>;
    type SerializeStructVariant = Impossible<FieldKey, FieldError>;

    values! {
        serialize_bool(bool) value => FieldKey::Bool(value);
        serialize_i8(i8) value => FieldKey::Signed(value.into());
        serialize_i16(i16) value => FieldKey::Signed(value.into());
        serialize_i32(i32) value => FieldKey::Signed(value.into());
        serialize_i64(i64) value => FieldKey::Signed(value.into());
        serialize_i128(i128) value => FieldKey::Signed(value);
        serialize_u8(u8) value => FieldKey::Unsigned(value.into());
        serialize_u16(u16) value => FieldKey::Unsigned(value.into());
        serialize_u32(u32) value => FieldKey::Unsigned(value.into());
        serialize_u64(u64) value => FieldKey::Unsigned(value.into());
        serialize_u128(u128) value => FieldKey::Unsigned(value);
        serialize_f32(f32) value => FieldKey::F32(value);
        serialize_f64(f64) value => FieldKey::F64(value);
        serialize_char(char) value => FieldKey::Char(value);
        serialize_str(&str) value => FieldKey::Text(value.to_owned());
        serialize_bytes(&[u8]) value => FieldKey::Bytes(value.to_owned());
    }

    fn serialize_none(self) -> Result<FieldKey> {
        Ok(FieldKey::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<FieldKey> {
        Ok(FieldKey::Something(Box::new(value.serialize(self)?)))
    }

    fn serialize_unit(self) -> Result<FieldKey> {
        Ok(FieldKey::Nothing)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<FieldKey> {
        value.serialize(self)
    }

    refuse! {
        serialize_unit_struct(_name: &'static str) -> FieldKey, "a unit struct";
        serialize_unit_variant(_name: &'static str, _index: u32, _variant: &'static str) -> FieldKey, "a variant";
        serialize_seq(_length: Option<usize>) -> Self::SerializeSeq, "a list";
        serialize_tuple(_length: usize) -> Self::SerializeTuple, "a tuple";
        serialize_tuple_struct(_name: &'static str, _length: usize) -> Self::SerializeTupleStruct, "a struct";
        serialize_tuple_variant(_name: &'static str, _index: u32, _variant: &'static str, _length: usize)
            -> Self::SerializeTupleVariant, "a variant";
        serialize_map(_length: Option<usize>) -> Self::SerializeMap, "a map";
        serialize_struct(_name: &'static str, _length: usize) -> Self::SerializeStruct, "a struct";
        serialize_struct_variant(_name: &'static str, _index: u32, _variant: &'static str, _length: usize)
            -> Self::SerializeStructVariant, "a variant";
    }
}

type NoKey = Option<FieldKey>;

impl<'a> Serializer for OfStruct<'a> {
    type Ok = NoKey;
    type Error = FieldError;
    type SerializeSeq = Impossible<NoKey, FieldError>;
    type SerializeTuple = Impossible<NoKey, FieldError>;
    type SerializeTupleStruct = Impossible<NoKey, FieldError>;
    type SerializeTupleVariant = Impossible<NoKey, FieldError>;
    type SerializeMap = Impossible<NoKey, FieldError>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Impossible<NoKey, FieldError>;

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Fields<'a>> {
        Ok(Fields { field: self.field, key: None })
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _value: &T) -> Result<NoKey> {
        unexpected("an option")
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _value: &T,
    ) -> Result<NoKey> {
        unexpected("a struct around another value")
    }

    refuse! {
        serialize_bool(_value: bool) -> NoKey, "a truth value";
        serialize_i8(_value: i8) -> NoKey, "a number";
        serialize_i16(_value: i16) -> NoKey, "a number";
        serialize_i32(_value: i32) -> NoKey, "a number";
        serialize_i64(_value: i64) -> NoKey, "a number";
        serialize_u8(_value: u8) -> NoKey, "a number";
        serialize_u16(_value: u16) -> NoKey, "a number";
        serialize_u32(_value: u32) -> NoKey, "a number";
        serialize_u64(_value: u64) -> NoKey, "a number";
        serialize_f32(_value: f32) -> NoKey, "a number";
        serialize_f64(_value: f64) -> NoKey, "a number";
        serialize_char(_value: char) -> NoKey, "a letter";
        serialize_str(_value: &str) -> NoKey, "text";
        serialize_bytes(_value: &[u8]) -> NoKey, "bytes";
        serialize_none() -> NoKey, "nothing";
        serialize_unit() -> NoKey, "nothing";
        serialize_unit_struct(_name: &'static str) -> NoKey, "a unit struct";
        serialize_unit_variant(_name: &'static str, _index: u32, _variant: &'static str) -> NoKey, "a variant";
        serialize_seq(_length: Option<usize>) -> Self::SerializeSeq, "a list";
        serialize_tuple(_length: usize) -> Self::SerializeTuple, "a tuple";
        serialize_tuple_struct(_name: &'static str, _length: usize) -> Self::SerializeTupleStruct, "a struct";
        serialize_tuple_variant(_name: &'static str, _index: u32, _variant: &'static str, _length: usize)
            -> Self::SerializeTupleVariant, "a variant";
        serialize_map(_length: Option<usize>) -> Self::SerializeMap, "a map";
        serialize_struct_variant(_name: &'static str, _index: u32, _variant: &'static str, _length: usize)
            -> Self::SerializeStructVariant, "a variant";
    }
}
