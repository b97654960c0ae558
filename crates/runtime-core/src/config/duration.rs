//! Durations as people type them.

use std::time::Duration;

use super::decimal::{Decimal, DecimalError, split_unit};
use crate::{Error, ErrorKind, Result};

/// What a duration may look like, for error messages.
const EXPECTED: &str = "a duration such as 500ms, 1.5s, 2m or 1h (a number alone is seconds)";

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Reads `500ms`, `5s`, `2m`, `1h`, `1.5s`; a number without a unit is seconds.
///
/// Zero and negative durations are refused, each with words of its own, and so is what does not fit
/// a [`Duration`]. Below a nanosecond the value is rounded down.
///
/// # Errors
///
/// [`ErrorKind::InvalidRequest`], with what was found and what is allowed.
///
/// ```
/// # use std::time::Duration;
/// # use prx_runtime_core::config::parse_duration;
/// assert_eq!(parse_duration("1.5s")?, Duration::from_millis(1500));
/// # Ok::<(), prx_runtime_core::Error>(())
/// ```
pub fn parse_duration(text: &str) -> Result<Duration> {
    parse(text).map_err(|problem| Error::new(ErrorKind::InvalidRequest, problem))
}

fn parse(text: &str) -> Result<Duration, String> {
    let problem = |what: &str| format!("{text:?} {what}; expected {EXPECTED}");
    if text.is_empty() {
        return Err(format!("an empty duration; expected {EXPECTED}"));
    }
    if text.starts_with('-') {
        return Err(problem("is negative"));
    }
    let (number, unit) = split_unit(text);
    let number = Decimal::parse(number).map_err(|error| match error {
        DecimalError::Malformed => problem("is not a duration"),
        other => problem(&other.to_string()),
    })?;
    let unit_nanos = match unit {
        "ms" => NANOS_PER_SECOND / 1000,
        "" | "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3600 * NANOS_PER_SECOND,
        _ => return Err(problem(&format!("has an unknown unit {unit:?}"))),
    };
    let nanos = number.times(unit_nanos);
    if nanos == 0 {
        return Err(problem("is zero"));
    }
    let second = u128::from(NANOS_PER_SECOND);
    let seconds = u64::try_from(nanos / second).map_err(|_| problem("is too large"))?;
    let rest = u32::try_from(nanos % second).map_err(|_| problem("is too large"))?;
    Ok(Duration::new(seconds, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("5s", 5000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1.5s", 1500),
            ("5", 5000),
            ("0.25h", 900_000),
        ] {
            assert_eq!(
                parse_duration(text).unwrap(),
                Duration::from_millis(millis),
                "{text}"
            );
        }
        assert_eq!(
            parse_duration("0.0000015s").unwrap(),
            Duration::from_nanos(1500)
        );
        assert_eq!(
            parse_duration("18446744073709551615").unwrap(),
            Duration::from_secs(u64::MAX)
        );
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, problem) in [
            ("", "an empty duration"),
            ("0", "\"0\" is zero"),
            ("0ms", "\"0ms\" is zero"),
            ("-5s", "\"-5s\" is negative"),
            (
                "5 minutes",
                "\"5 minutes\" has an unknown unit \" minutes\"",
            ),
            ("5S", "\"5S\" has an unknown unit \"S\""),
            ("soon", "\"soon\" is not a duration"),
            (
                "18446744073709551615h",
                "\"18446744073709551615h\" is too large",
            ),
            (
                "99999999999999999999",
                "\"99999999999999999999\" is too large",
            ),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!(error.message(), format!("{problem}; expected {EXPECTED}"));
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn agrees_with_integer_arithmetic(whole: u64, thousandths in 0u64..1000, unit in 0usize..4) {
            let (name, millis) = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)][unit];
            let micros = (u128::from(whole) * 1000 + u128::from(thousandths)) * millis;
            let read = parse_duration(&format!("{whole}.{thousandths:03}{name}"));
            if micros == 0 || micros / 1_000_000 > u128::from(u64::MAX) {
                prop_assert!(read.is_err());
            } else {
                prop_assert_eq!(read.unwrap().as_nanos(), micros * 1000);
            }
        }
    }
}
