//! Shares of processors.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::decimal::{Decimal, DecimalError};
use crate::{Error, ErrorKind, Result};

/// What a share may look like, for error messages.
const EXPECTED: &str = "a number of processors such as \"1.0\", 0.5 or 2, from 0.01 to 1000000";

/// Billionths in one processor.
const NANO: i64 = 1_000_000_000;
/// The kernel grants at least 1 ms of every 100 ms.
const MIN_NANO_CPUS: i64 = NANO / 100;
/// More processors than any machine has.
const MAX_NANO_CPUS: i64 = 1_000_000 * NANO;

/// How many processors' worth of time a container may use, written as a text or a number: `"1.0"`,
/// `0.5`, `2`.
///
/// Kept exactly, in billionths; a number with more digits is refused, not rounded. `Display` writes
/// at least one digit after the point, and what it writes is read back as the same share.
///
/// ```
/// # use prx_runtime_core::config::CpuLimit;
/// let limit: CpuLimit = "1.5".parse()?;
/// assert_eq!(limit.nano_cpus(), 1_500_000_000);
/// # Ok::<(), prx_runtime_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuLimit {
    nano_cpus: i64,
}

impl CpuLimit {
    /// One processor.
    pub const ONE: Self = Self { nano_cpus: NANO };

    /// The share in billionths of a processor, as the Docker API takes it. Always positive.
    pub const fn nano_cpus(self) -> i64 {
        self.nano_cpus
    }
}

impl fmt::Display for CpuLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.nano_cpus % NANO);
        let fraction = match fraction.trim_end_matches('0') {
            "" => "0",
            digits => digits,
        };
        write!(f, "{}.{fraction}", self.nano_cpus / NANO)
    }
}

impl FromStr for CpuLimit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).map_err(|problem| Error::new(ErrorKind::InvalidConfig, problem))
    }
}

/// The share that `text` says, or what is wrong with it.
fn parse(text: &str) -> Result<CpuLimit, String> {
    let problem = |what: &str| format!("{text:?} {what}; expected {EXPECTED}");
    if text.is_empty() {
        return Err(format!("is empty; expected {EXPECTED}"));
    }
    if text.starts_with('-') {
        return Err(problem("is negative"));
    }
    let number = Decimal::parse(text).map_err(|error| problem(&error.to_string()))?;
    if !number.is_whole_times(NANO.unsigned_abs()) {
        return Err(problem(&DecimalError::TooPrecise.to_string()));
    }
    match i64::try_from(number.times(NANO.unsigned_abs())) {
        Ok(0) => Err(problem("is zero")),
        Ok(nano_cpus) if nano_cpus < MIN_NANO_CPUS => Err(problem("is too small")),
        Ok(nano_cpus) if nano_cpus <= MAX_NANO_CPUS => Ok(CpuLimit { nano_cpus }),
        _ => Err(problem("is too large")),
    }
}

impl Serialize for CpuLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShareVisitor;

        impl Visitor<'_> for ShareVisitor {
            type Value = CpuLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_u64<E: de::Error>(self, share: u64) -> Result<CpuLimit, E> {
                parse(&share.to_string()).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, share: i64) -> Result<CpuLimit, E> {
                parse(&share.to_string()).map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<CpuLimit, E> {
                // `Display` of a float is the shortest decimal that means it, never an exponent.
                parse(&share.to_string()).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CpuLimit, E> {
                parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(ShareVisitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CpuLimit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CpuLimit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "number"],
            "format": "processors",
            "minimum": 0.01,
            "maximum": 1_000_000,
            "pattern": r"^[0-9]+(\.[0-9]+)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_way_of_writing() {
        for (text, nano_cpus) in [
            ("1.0", NANO),
            ("1", NANO),
            ("0.5", NANO / 2),
            ("0.01", MIN_NANO_CPUS),
            ("1.000000001", NANO + 1),
            ("1000000", MAX_NANO_CPUS),
        ] {
            assert_eq!(
                text.parse::<CpuLimit>().unwrap().nano_cpus(),
                nano_cpus,
                "{text}"
            );
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, problem) in [
            ("", "is empty"),
            ("0", "\"0\" is zero"),
            ("0.0", "\"0.0\" is zero"),
            ("0.001", "\"0.001\" is too small"),
            ("-1", "\"-1\" is negative"),
            ("1000001", "\"1000001\" is too large"),
            ("99999999999", "\"99999999999\" is too large"),
            (
                "1.0000000001",
                "\"1.0000000001\" has too many digits after the point",
            ),
            ("inf", "\"inf\" is not a number"),
            ("NaN", "\"NaN\" is not a number"),
            ("two", "\"two\" is not a number"),
        ] {
            let error = text.parse::<CpuLimit>().unwrap_err();
            assert_eq!(
                error.message(),
                format!("{problem}; expected {EXPECTED}"),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn display_is_read_back(nano_cpus in MIN_NANO_CPUS..=MAX_NANO_CPUS) {
            let limit = CpuLimit { nano_cpus };
            prop_assert_eq!(limit.to_string().parse::<CpuLimit>().unwrap(), limit);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<CpuLimit>();
        }

        #[test]
        fn agrees_with_integer_arithmetic(whole in 0i64..2_000_000, thousandths in 0i64..1000) {
            let exact = whole * NANO + thousandths * (NANO / 1000);
            let read = format!("{whole}.{thousandths:03}").parse::<CpuLimit>();
            if (MIN_NANO_CPUS..=MAX_NANO_CPUS).contains(&exact) {
                prop_assert_eq!(read.unwrap().nano_cpus(), exact);
            } else {
                prop_assert!(read.is_err());
            }
        }
    }
}
