//! How records and keys are encoded: postcard, one behind the other and without separators.

use postcard::ser_flavors::Flavor;
use serde::Serialize;

/// What a record must be.
pub(super) const ENCODABLE: &str = "and records travel as postcard: their types are read as they are written, \
     without serde's untagged, flatten, and skip of fields";

/// Replaces the content of `bytes`.
pub(super) fn encode<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), postcard::Error> {
    bytes.clear();
    append(value, bytes).map(drop)
}

/// Appends to `bytes`, and says how many. What cannot be encoded leaves nothing of itself.
#[inline]
pub(super) fn append<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<usize, postcard::Error> {
    let before = bytes.len();
    if let Err(error) = postcard::serialize_with_flavor(value, Append(bytes)) {
        bytes.truncate(before);
        return Err(error);
    }
    Ok(bytes.len() - before)
}

/// Postcard's own flavours take a vector byte by byte, or for themselves.
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> Result<(), postcard::Error> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> Result<(), postcard::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> Result<(), postcard::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serializer;
    use serde::ser::{Error, SerializeStruct};

    use super::*;

    /// Fails when half of it is written.
    struct Half;

    impl Serialize for Half {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut half = serializer.serialize_struct("Half", 2)?;
            half.serialize_field("text", "written")?;
            Err(S::Error::custom("no more"))
        }
    }

    #[test]
    fn an_encoding_is_appended_whole_or_not_at_all() {
        let mut bytes = vec![9];
        assert_eq!(append(&(1_i64, "ab"), &mut bytes).unwrap(), 4);
        assert_eq!(bytes, [9, 2, 2, b'a', b'b']);
        assert!(append(&Half, &mut bytes).is_err());
        assert_eq!(bytes, [9, 2, 2, b'a', b'b']);
        encode(&3_u8, &mut bytes).unwrap();
        assert_eq!(bytes, [3]);
    }
}
