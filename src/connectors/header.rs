//! The column names of a row type, found without a row: a subtask without records writes a header
//! too.

use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the fields of a struct, as serde has them; `None` for all other types.
pub(super) fn field_names<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut names = None;
    // Always an error: there is no value. The type only says what it would want.
    let _ = T::deserialize(Probe { names: &mut names }).err();
    names
}

struct Probe<'a> {
    names: &'a mut Option<&'static [&'static str]>,
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = de::value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.names = Some(fields);
        Err(de::Error::custom("only the names were wanted"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("not a struct with named fields"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn a_struct_has_the_names_that_serde_gives_its_fields() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only the names of its fields matter")]
        struct Row {
            first: i64,
            #[serde(rename = "the second")]
            second: String,
        }
        assert_eq!(field_names::<Row>(), Some(["first", "the second"].as_slice()));
    }

    #[test]
    fn other_types_have_none() {
        assert_eq!(field_names::<i64>(), None);
        assert_eq!(field_names::<(i64, String)>(), None);
    }
}
