//! Types with named fields are objects in JSON, as their schema says. serde's derived code takes an array of the fields in
//! their order, too; behind [`Objects`] it does not, however deep the type stands.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

/// A part of reading, which asks for a map wherever a type with named fields is read.
#[derive(Debug)]
pub struct Objects<T>(pub T);

/// Reads JSON, in which a type with named fields is an object and nothing else.
///
/// # Errors
/// It is no JSON, or of another form.
pub fn read_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = T::deserialize(Objects(&mut reader))?;
    reader.end()?;
    Ok(value)
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $kind:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Objects(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    forward! {
        deserialize_any() deserialize_bool() deserialize_char() deserialize_str() deserialize_string()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str) deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Objects(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($kind:ty))*) => {
        $(fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool(bool) visit_char(char) visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
        visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128)
        visit_f32(f32) visit_f64(f64) visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(members))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(Objects(seed)).map(|(value, variant)| (value, Objects(variant)))
    }
}

/// Reads the fields of a variant as a value, which has to be a map.
struct Fields<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Fields<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        value.deserialize_map(Objects(self.0))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Objects(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(Fields(visitor))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::read_json;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Trade {
        name: String,
        amount: Option<f64>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Number(u32);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Order {
        None,
        Of(Trade),
        Both(u8, Trade),
        Named { trade: Trade, number: Number },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Trade(Trade),
        Text(String),
    }

    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
        read_json(text.as_bytes()).ok()
    }

    #[test]
    fn an_array_is_no_object_wherever_it_stands() {
        assert!(read::<Trade>(r#"{"name":"ibm","amount":1}"#).is_some());
        assert!(read::<Trade>(r#"{"name":"ibm"}"#).is_some(), "what is optional may be left out");
        for wrong in [r#"["ibm",1]"#, r#"["ibm",1.0]"#, "[]", "null", "7", r#""ibm""#] {
            assert_eq!(read::<Trade>(wrong), None, "{wrong}");
        }
        assert_eq!(read::<(Trade, u32)>(r#"[["ibm",1],2]"#), None);
        assert_eq!(read::<Option<Trade>>(r#"["ibm",1]"#), None);
        assert_eq!(read::<Vec<Trade>>(r#"[["ibm",1]]"#), None);
        assert_eq!(read::<std::collections::BTreeMap<String, Trade>>(r#"{"a":["ibm",1]}"#), None);
        for wrong in [
            r#"{"Of":["ibm",1]}"#,
            r#"{"Both":[1,["ibm",1]]}"#,
            r#"{"Named":[["ibm",1],2]}"#,
            r#"{"Named":{"trade":["ibm",1],"number":2}}"#,
        ] {
            assert_eq!(read::<Order>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn all_that_is_written_is_read() {
        let trade = || Trade { name: "ibm".into(), amount: Some(1.5) };
        let orders = [
            Order::None,
            Order::Of(trade()),
            Order::Both(3, trade()),
            Order::Named { trade: trade(), number: Number(7) },
        ];
        let eithers = [Either::Trade(trade()), Either::Text("x".into())];
        let bytes = serde_json::to_vec(&(&orders, &eithers, (), 'c', -1i8)).unwrap();
        let all: ([Order; 4], [Either; 2], (), char, i8) = read_json(&bytes).unwrap();
        assert_eq!(all, (orders, eithers, (), 'c', -1));
        for wrong in ["7 8", "{", ""] {
            assert_eq!(read::<u32>(wrong), None, "{wrong}");
        }
    }
}
