//! Exact decimal numbers: what sizes, processor shares and durations are written with.

use std::fmt;

/// The most digits after the point that are worked with. More are refused, not rounded.
const MAX_FRACTION_DIGITS: usize = 18;

/// Why a text is no usable decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecimalError {
    /// Not of the form `digits` or `digits.digits`.
    Malformed,
    /// More digits after the point than [`MAX_FRACTION_DIGITS`].
    TooPrecise,
    /// Too large for the arithmetic.
    TooLarge,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "is not a number",
            Self::TooPrecise => "has too many digits after the point",
            Self::TooLarge => "is too large",
        })
    }
}

/// A number as it was written: `whole + fraction / scale`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal {
    whole: u64,
    fraction: u64,
    /// A power of ten.
    scale: u64,
}

impl Decimal {
    /// Reads `digits` or `digits.digits`; no sign, no exponent, no blank.
    pub(super) fn parse(text: &str) -> Result<Self, DecimalError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(DecimalError::Malformed),
            None => (text, ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(DecimalError::Malformed);
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > MAX_FRACTION_DIGITS {
            return Err(DecimalError::TooPrecise);
        }
        let mut scale = 1;
        let mut numerator = 0;
        for digit in fraction.bytes() {
            scale *= 10;
            numerator = numerator * 10 + u64::from(digit - b'0');
        }
        Ok(Self {
            whole: whole.parse().map_err(|_| DecimalError::TooLarge)?,
            fraction: numerator,
            scale,
        })
    }

    /// The number times `unit`, rounded down to a whole number.
    pub(super) fn times(self, unit: u64) -> u128 {
        let unit = u128::from(unit);
        // Neither product can overflow: each factor has at most 64 bits.
        u128::from(self.whole) * unit + u128::from(self.fraction) * unit / u128::from(self.scale)
    }

    /// Whether the number times `unit` is a whole number.
    pub(super) fn is_whole_times(self, unit: u64) -> bool {
        (u128::from(self.fraction) * u128::from(unit)).is_multiple_of(u128::from(self.scale))
    }
}

/// Parts `text` after its number: `("1.5", "g")`.
pub(super) fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly() {
        let half = Decimal::parse("1.50").unwrap();
        assert_eq!(half.times(1024), 1536);
        assert!(half.is_whole_times(2));
        assert!(!half.is_whole_times(1));
        assert_eq!(Decimal::parse("0.3").unwrap().times(1024), 307);
    }

    #[test]
    fn refuses_other_forms() {
        for text in [
            "", ".", "1.", ".5", "-1", "+1", "1e3", "1.2.3", "inf", "0x10", "1_000", "٣",
        ] {
            assert_eq!(
                Decimal::parse(text).unwrap_err(),
                DecimalError::Malformed,
                "{text}"
            );
        }
        assert_eq!(
            Decimal::parse("0.1234567890123456789").unwrap_err(),
            DecimalError::TooPrecise
        );
        assert_eq!(
            Decimal::parse("18446744073709551616").unwrap_err(),
            DecimalError::TooLarge
        );
    }
}
