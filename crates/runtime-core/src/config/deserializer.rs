//! From a parsed document to the configuration types, by serde.
//!
//! The deserializer of the `toml` crate reports texts; this one reports [`Fault`]s: which key, what
//! was found, what is allowed. It visits keys in the order of the file, so that the first fault is
//! the first one a reader meets.

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::fault::{Fault, list};

/// Reads a `T` from a table.
pub(super) fn from_table<'de, T: Deserialize<'de>>(table: DeTable<'_>) -> Result<T, Fault> {
    T::deserialize(Value(&DeValue::Table(table)))
}

/// A value of the document.
struct Value<'a>(&'a DeValue<'a>);

impl Value<'_> {
    /// What was found, with its article.
    fn kind(&self) -> &'static str {
        match self.0 {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }

    fn mismatch(&self, expected: &str) -> Fault {
        Fault::new(format!("found {}, expected {expected}", self.kind()))
    }

    /// An integer from 0 to `max`.
    fn unsigned(&self, max: u64) -> Result<u64, Fault> {
        let DeValue::Integer(integer) = self.0 else {
            return Err(self.mismatch("an integer"));
        };
        let expected = || {
            if max < u64::MAX {
                format!("an integer from 0 to {max}")
            } else {
                "an integer from 0".to_owned()
            }
        };
        parse_unsigned(integer)
            .filter(|value| *value <= max)
            .ok_or_else(|| Fault::new(format!("found {integer}, expected {}", expected())))
    }
}

fn parse_unsigned(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Integer(integer) => match parse_unsigned(integer) {
                Some(value) => visitor.visit_u64(value),
                None => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(value) => visitor.visit_i64(value),
                    Err(_) => Err(Fault::new(format!("found {integer}, which is too large"))),
                },
            },
            DeValue::Float(float) => match float.as_str().parse() {
                Ok(value) => visitor.visit_f64(value),
                Err(_) => Err(self.mismatch("a number")),
            },
            DeValue::Datetime(_) => Err(self.mismatch("another type")),
            DeValue::Array(array) => visitor.visit_seq(Array {
                values: array.iter(),
                index: 0,
            }),
            DeValue::Table(table) => visitor.visit_map(Table::new(table)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            _ => Err(self.mismatch("true or false")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_u64(self.unsigned(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // `usize` comes here, too: on a 32-bit machine the visitor checks the rest.
        visitor.visit_u64(self.unsigned(u64::MAX)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            DeValue::String(text) => visitor.visit_str(text),
            _ => Err(self.mismatch("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            DeValue::Array(_) => self.deserialize_any(visitor),
            _ => Err(self.mismatch("an array")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            DeValue::Table(_) => self.deserialize_any(visitor),
            _ => Err(self.mismatch("a table")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // TOML has no null: what is there, is some.
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            DeValue::String(text) => {
                let text: StrDeserializer<'_, Fault> = text.as_ref().into_deserializer();
                visitor.visit_enum(text)
            }
            _ => Err(self.mismatch(&list(variants, '"'))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

/// The rest of an array.
struct Array<'a, I: Iterator<Item = &'a Spanned<DeValue<'a>>>> {
    values: I,
    index: usize,
}

impl<'de, 'a, I: Iterator<Item = &'a Spanned<DeValue<'a>>>> SeqAccess<'de> for Array<'a, I> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(value) = self.values.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Value(value.get_ref()))
            .map(Some)
            .map_err(|fault| fault.under_index(index))
    }
}

/// The rest of a table, in the order of the file.
struct Table<'a> {
    entries: std::vec::IntoIter<(&'a str, &'a DeValue<'a>)>,
    value: Option<(&'a str, &'a DeValue<'a>)>,
}

impl<'a> Table<'a> {
    fn new(table: &'a DeTable<'a>) -> Self {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()))
            .collect();
        Self {
            entries: entries.into_iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Table<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.value = self.entries.next();
        let Some((key, _)) = self.value else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Fault> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        match self.value.take() {
            Some((key, value)) => seed
                .deserialize(Value(value))
                .map_err(|fault| fault.under(key)),
            None => Err(Fault::new("a value was asked for before its key")),
        }
    }
}
