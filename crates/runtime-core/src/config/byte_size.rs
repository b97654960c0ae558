//! Sizes of memory and of files.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::decimal::{Decimal, split_unit};
use crate::{Error, ErrorKind, Result};

/// What a size may look like, for error messages.
const EXPECTED: &str = "a size such as 512, \"64k\", \"256m\" or \"1.5g\" \
     (units b, k, m, g, t, p: powers of 1024, also kb and KiB)";

/// The units, smallest first, each 1024 times the one before.
const UNITS: [(char, u64); 6] = [
    ('b', 1),
    ('k', 1 << 10),
    ('m', 1 << 20),
    ('g', 1 << 30),
    ('t', 1 << 40),
    ('p', 1 << 50),
];

/// A number of bytes, written as an integer or as a text with a unit: `512`, `"64k"`, `"256m"`,
/// `"1.5g"`.
///
/// Units are powers of 1024, as the Docker command line reads them, in either case, with or without
/// `b` or `iB` behind: `m`, `MB` and `MiB` are the same. A fraction of a byte is dropped. `Display`
/// writes the largest unit that divides the size, and what it writes is read back as the same size.
///
/// ```
/// # use prx_runtime_core::config::ByteSize;
/// let size: ByteSize = "256m".parse()?;
/// assert_eq!(size.as_u64(), 268_435_456);
/// assert_eq!(size.to_string(), "256m");
/// # Ok::<(), prx_runtime_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// `mebibytes` times 1024² bytes; the largest size there is where that is more.
    pub const fn mebibytes(mebibytes: u64) -> Self {
        Self(mebibytes.saturating_mul(1 << 20))
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS
            .iter()
            .rev()
            .find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor));
        match unit {
            Some((letter, factor)) if *factor > 1 => write!(f, "{}{letter}", self.0 / factor),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for ByteSize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).map_err(|problem| Error::new(ErrorKind::InvalidConfig, problem))
    }
}

/// The size that `text` says, or what is wrong with it.
fn parse(text: &str) -> Result<ByteSize, String> {
    let problem = |what: &str| format!("{text:?} {what}; expected {EXPECTED}");
    if text.is_empty() {
        return Err(format!("is empty; expected {EXPECTED}"));
    }
    if text.starts_with('-') {
        return Err(problem("is negative"));
    }
    let (number, unit) = split_unit(text);
    let number = Decimal::parse(number).map_err(|error| match error {
        super::decimal::DecimalError::Malformed => problem("is not a size"),
        other => problem(&other.to_string()),
    })?;
    let factor = factor(
        unit.strip_prefix(' ')
            .filter(|unit| !unit.is_empty())
            .unwrap_or(unit),
    )
    .ok_or_else(|| problem(&format!("has an unknown unit {unit:?}")))?;
    u64::try_from(number.times(factor))
        .map(ByteSize)
        .map_err(|_| problem("is too large"))
}

/// How many bytes `unit` stands for.
fn factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let mut letters = unit.chars();
    let Some(first) = letters.next() else {
        return Some(1);
    };
    let (letter, factor) = UNITS.iter().find(|(letter, _)| *letter == first)?;
    match letters.as_str() {
        "" => Some(*factor),
        "b" | "ib" if *letter != 'b' => Some(*factor),
        _ => None,
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes).map(ByteSize).map_err(|_| {
                    E::custom(format_args!("{bytes} is negative; expected {EXPECTED}"))
                })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
                parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}

/// For a field that is a plain count of bytes and is read like a [`ByteSize`].
pub(super) fn deserialize_usize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<usize, D::Error> {
    let size = ByteSize::deserialize(deserializer)?;
    usize::try_from(size.0)
        .map_err(|_| de::Error::custom(format_args!("{size} is more than this machine addresses")))
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "integer"],
            "format": "size",
            "minimum": 0,
            "pattern": r"^[0-9]+(\.[0-9]+)? ?([bB]|[kKmMgGtTpP]([iI]?[bB])?)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_way_of_writing() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512b", 512),
            ("64k", 65_536),
            ("256m", 268_435_456),
            ("256M", 268_435_456),
            ("256mb", 268_435_456),
            ("256MiB", 268_435_456),
            ("256 MiB", 268_435_456),
            ("1g", 1_073_741_824),
            ("1.5g", 1_610_612_736),
            ("0.3k", 307),
            ("2t", 2_199_023_255_552),
            ("1p", 1_125_899_906_842_624),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap(), ByteSize(bytes), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, problem) in [
            ("", "is empty"),
            ("256x", "\"256x\" has an unknown unit \"x\""),
            ("256bb", "\"256bb\" has an unknown unit \"bb\""),
            ("256 ", "\"256 \" has an unknown unit \" \""),
            ("-1m", "\"-1m\" is negative"),
            ("m", "\"m\" is not a size"),
            ("1.m", "\"1.m\" is not a size"),
            ("1e3", "\"1e3\" has an unknown unit \"e3\""),
            ("16384p", "\"16384p\" is too large"),
            (
                "99999999999999999999",
                "\"99999999999999999999\" is too large",
            ),
        ] {
            let error = text.parse::<ByteSize>().unwrap_err();
            assert_eq!(error.message(), format!("{problem}; expected {EXPECTED}"));
        }
    }

    proptest! {
        #[test]
        fn display_is_read_back(bytes: u64) {
            let size = ByteSize(bytes);
            prop_assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }

        #[test]
        fn display_of_round_sizes_is_read_back(count in 0u64..1 << 14, shift in 0u32..50) {
            let size = ByteSize(count << shift);
            prop_assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<ByteSize>();
        }

        #[test]
        fn agrees_with_integer_arithmetic(
            whole in 0u64..1 << 20, thousandths in 0u64..1000, unit in 0usize..6,
        ) {
            let (letter, factor) = UNITS[unit];
            let exact = (u128::from(whole) * 1000 + u128::from(thousandths)) * u128::from(factor) / 1000;
            let read = format!("{whole}.{thousandths:03}{letter}").parse::<ByteSize>();
            match u64::try_from(exact) {
                Ok(bytes) => prop_assert_eq!(read.unwrap(), ByteSize(bytes)),
                Err(_) => prop_assert!(read.is_err()),
            }
        }
    }
}
