//! Keys by the name of a field, as serde has it: whether a record type has such a field and the field
//! an order is decided when the graph is built, without a record; [`field_key`] takes the key of a
//! record. It never sorts by what has no order that serde could tell: maps, structs, enums, lists.

use std::cmp::Ordering;

use serde::de::DeserializeOwned;
use serde::{Serialize, de, ser};

use crate::api::SortKey;

mod key;
mod kind;

/// The value of a field. Those of one field are of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKey {
    Nothing,
    Bool(bool),
    Signed(i128),
    Unsigned(u128),
    F32(f32),
    F64(f64),
    Char(char),
    Text(String),
    Bytes(Vec<u8>),
    Something(Box<FieldKey>),
}

impl FieldKey {
    /// For comparison across kinds, which only a hand-written encoding can bring about.
    const fn kind(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Bool(_) => 1,
            Self::Signed(_) => 2,
            Self::Unsigned(_) => 3,
            Self::F32(_) => 4,
            Self::F64(_) => 5,
            Self::Char(_) => 6,
            Self::Text(_) => 7,
            Self::Bytes(_) => 8,
            Self::Something(_) => 9,
        }
    }
}

impl SortKey for FieldKey {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Signed(one), Self::Signed(other)) => one.cmp(other),
            (Self::Unsigned(one), Self::Unsigned(other)) => one.cmp(other),
            (Self::F32(one), Self::F32(other)) => one.total_cmp(other),
            (Self::F64(one), Self::F64(other)) => one.total_cmp(other),
            (Self::Char(one), Self::Char(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Bytes(one), Self::Bytes(other)) => one.cmp(other),
            (Self::Something(one), Self::Something(other)) => one.compare(other),
            (one, other) => one.kind().cmp(&other.kind()),
        }
    }
}

/// Whether records of this type can be sorted by this field; or what is wrong.
pub fn check_field<T: DeserializeOwned>(field: &str) -> Result<(), String> {
    kind::check::<T>(field)
}

/// The key of a record.
pub fn field_key<T: Serialize>(record: &T, field: &str) -> Result<FieldKey, String> {
    let key = record.serialize(key::OfStruct { field }).map_err(|error| error.0)?;
    key.ok_or_else(|| format!("a record has no field '{field}': it is left out when it is written"))
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct FieldError(String);

impl ser::Error for FieldError {
    fn custom<M: std::fmt::Display>(message: M) -> Self {
        Self(message.to_string())
    }
}

impl de::Error for FieldError {
    fn custom<M: std::fmt::Display>(message: M) -> Self {
        Self(message.to_string())
    }
}

#[cfg(test)]
mod tests;
