use serde::{Deserialize, Serialize};

use super::*;
use crate::connectors::Date;

#[derive(Serialize, Deserialize)]
struct Inner(u8);

#[derive(Serialize, Deserialize)]
struct Row {
    number: i64,
    small: u8,
    #[serde(rename = "text")]
    renamed: String,
    maybe: Option<f64>,
    wrapped: Inner,
    day: Date,
    letter: char,
    flag: bool,
    list: Vec<i64>,
    pair: (i64, i64),
    map: std::collections::BTreeMap<u8, u8>,
    nested: Option<Nested>,
}

#[derive(Serialize, Deserialize)]
struct Nested {
    any: u8,
}

fn row() -> Row {
    Row {
        number: -3,
        small: 7,
        renamed: "ab".to_owned(),
        maybe: Some(0.5),
        wrapped: Inner(9),
        day: Date(10),
        letter: 'x',
        flag: true,
        list: vec![1],
        pair: (1, 2),
        map: [(1, 2)].into(),
        nested: Some(Nested { any: 1 }),
    }
}

#[test]
fn fields_with_an_order_give_their_values() {
    for (field, expected) in [
        ("number", FieldKey::Signed(-3)),
        ("small", FieldKey::Unsigned(7)),
        ("text", FieldKey::Text("ab".to_owned())),
        ("maybe", FieldKey::Something(Box::new(FieldKey::F64(0.5)))),
        ("wrapped", FieldKey::Unsigned(9)),
        ("day", FieldKey::Signed(10)),
        ("letter", FieldKey::Char('x')),
        ("flag", FieldKey::Bool(true)),
    ] {
        assert_eq!(check_field::<Row>(field), Ok(()), "{field}");
        assert_eq!(field_key(&row(), field), Ok(expected), "{field}");
    }
}

#[test]
fn fields_without_an_order_are_refused() {
    for (field, kind) in [("list", "a list"), ("pair", "a tuple"), ("map", "a map"), ("nested", "a struct")] {
        let expected = format!("it is {kind}, which has no order here; sort by a key function");
        assert_eq!(check_field::<Row>(field), Err(expected));
        assert!(field_key(&row(), field).is_err());
    }
}

#[test]
fn a_field_that_is_not_there_is_refused_with_the_one_that_was_meant() {
    let error = check_field::<Row>("numbr").unwrap_err();
    assert!(
        error.starts_with(
            "there is no such field, did you mean 'number'?; its fields are: number, small, text,"
        )
    );
    assert!(check_field::<Row>("renamed").is_err());
    for error in [check_field::<i64>("number"), check_field::<(i64, i64)>("0"), check_field::<Inner>("0")] {
        assert!(error.unwrap_err().contains("is not a struct whose fields serde reads by name"));
    }
}

#[test]
fn a_field_that_is_left_out_when_it_is_written_is_said_to_be() {
    #[derive(Serialize, Deserialize)]
    struct Gap {
        #[serde(skip_serializing_if = "Option::is_none")]
        gap: Option<u8>,
        other: u8,
    }
    let error = field_key(&Gap { gap: None, other: 1 }, "gap").unwrap_err();
    assert_eq!(error, "a record has no field 'gap': it is left out when it is written");
}

#[test]
fn keys_are_in_the_order_of_their_values_and_nothing_comes_first() {
    let something = |key| FieldKey::Something(Box::new(key));
    for keys in [
        vec![FieldKey::Signed(-1), FieldKey::Signed(1)],
        vec![
            FieldKey::F64(f64::NEG_INFINITY),
            FieldKey::F64(-0.0),
            FieldKey::F64(0.0),
            FieldKey::F64(f64::NAN),
        ],
        vec![FieldKey::F32(-0.0), FieldKey::F32(0.0)],
        vec![FieldKey::Text("Z".to_owned()), FieldKey::Text("a".to_owned())],
        vec![FieldKey::Nothing, something(FieldKey::Bool(false)), something(FieldKey::Bool(true))],
    ] {
        assert!(keys.windows(2).all(|pair| pair[0].compare(&pair[1]).is_lt()), "{keys:?}");
    }
}
