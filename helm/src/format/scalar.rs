//! Numbers and strings under a verb with its flags: bases, signs, precision, padding.

use super::quote::{quote, quote_ascii, quote_rune};
use super::{FormatError, Printer};
use crate::number::format_float;
use crate::text::{self, runes};

impl Printer {
    /// Pads to the width, counted in runes.
    pub(super) fn pad(&mut self, text: &[u8]) {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(runes(text).count());
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.padding(missing);
        } else {
            self.padding(missing);
            self.out.extend_from_slice(text);
        }
    }

    fn padding(&mut self, count: usize) {
        // Zeros stand only on the left.
        let byte = if self.flags.zero && !self.flags.minus {
            b'0'
        } else {
            b' '
        };
        self.out.resize(self.out.len() + count, byte);
    }

    fn pad_with_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    /// The first runes, as many as the precision says.
    fn truncated<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        match self.flags.precision {
            Some(precision) => &text[..runes(text).take(precision).map(|rune| rune.bytes.len()).sum()],
            None => text,
        }
    }

    pub(super) fn string(&mut self, text: &[u8]) {
        self.pad(self.truncated(text));
    }

    /// A string under a verb; false when the verb does not fit.
    pub(super) fn text(&mut self, text: &[u8], verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.string(text),
            'q' => self.quoted(text),
            'x' | 'X' => self.hexadecimal(text, verb == 'X'),
            _ => return false,
        }
        true
    }

    pub(super) fn bytes(&mut self, bytes: &[u8], verb: char) {
        match verb {
            's' | 'q' | 'x' | 'X' => {
                self.text(bytes, verb);
            }
            _ => {
                let (open, separator): (&[u8], &[u8]) = if self.flags.sharp_v {
                    (b"[]byte{", b", ")
                } else {
                    (b"[", b" ")
                };
                self.out.extend_from_slice(open);
                for (index, byte) in bytes.iter().enumerate() {
                    if index > 0 {
                        self.out.extend_from_slice(separator);
                    }
                    self.integer(
                        i64::from(*byte),
                        true,
                        if verb == 'v' || verb == 'd' { 'v' } else { verb },
                    );
                }
                self.out.push(if self.flags.sharp_v { b'}' } else { b']' });
            }
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        if self.flags.sharp && can_backquote(text) {
            self.pad(&[b"`", text, b"`"].concat());
        } else if self.flags.plus {
            self.pad(&quote_ascii(text));
        } else {
            self.pad(&quote(text));
        }
    }

    fn hexadecimal(&mut self, text: &[u8], is_upper: bool) {
        let text = &text[..self.flags.precision.unwrap_or(text.len()).min(text.len())];
        let prefix = match (self.flags.sharp, is_upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        let alphabet = if is_upper {
            b"0123456789ABCDEF"
        } else {
            b"0123456789abcdef"
        };
        let mut digits = String::new();
        for (index, byte) in text.iter().enumerate() {
            if index > 0 && self.flags.space {
                digits.push(' ');
            }
            if index == 0 || self.flags.space {
                digits.push_str(prefix);
            }
            digits.extend([byte >> 4, byte & 0xf].map(|half| char::from(alphabet[usize::from(half)])));
        }
        self.pad(digits.as_bytes());
    }

    /// An integer under a verb; false when the verb does not fit.
    #[expect(clippy::cast_sign_loss, reason = "Go prints the bits of the number")]
    pub(super) fn integer(&mut self, value: i64, is_unsigned: bool, verb: char) -> bool {
        let magnitude = value.unsigned_abs();
        let digits = match verb {
            'v' if self.flags.sharp_v && is_unsigned => format!("{magnitude:#x}"),
            'v' | 'd' => magnitude.to_string(),
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'c' => {
                self.pad(character(value).encode_utf8(&mut [0; 4]).as_bytes());
                return true;
            }
            'q' => {
                self.pad(&quote_rune(character(value), self.flags.plus));
                return true;
            }
            'U' => {
                self.unicode(value as u64);
                return true;
            }
            _ => return false,
        };
        self.signed_digits(digits, value < 0, verb);
        true
    }

    fn signed_digits(&mut self, mut digits: String, is_negative: bool, verb: char) {
        let has_sign = is_negative || self.flags.plus || self.flags.space;
        let least = match self.flags.precision {
            Some(0) if digits == "0" => {
                self.pad_with_spaces(b"");
                return;
            }
            Some(precision) => precision,
            None if self.flags.zero && !self.flags.minus => {
                self.flags.width.unwrap_or(0).saturating_sub(usize::from(has_sign))
            }
            None => 0,
        };
        if digits.len() < least {
            digits.insert_str(0, &"0".repeat(least - digits.len()));
        }
        if self.flags.sharp {
            match verb {
                'b' => digits.insert_str(0, "0b"),
                'o' if !digits.starts_with('0') => digits.insert(0, '0'),
                'x' => digits.insert_str(0, "0x"),
                'X' => digits.insert_str(0, "0X"),
                _ => {}
            }
        }
        if verb == 'O' {
            digits.insert_str(0, "0o");
        }
        if is_negative {
            digits.insert(0, '-');
        } else if self.flags.plus {
            digits.insert(0, '+');
        } else if self.flags.space {
            digits.insert(0, ' ');
        }
        self.pad_with_spaces(digits.as_bytes());
    }

    fn unicode(&mut self, code: u64) {
        let least = self.flags.precision.unwrap_or(4).max(4);
        let mut written = format!("U+{code:0least$X}");
        let character = u32::try_from(code).ok().and_then(char::from_u32);
        if self.flags.sharp
            && let Some(character) = character.filter(|character| text::is_print(*character))
        {
            written.extend([' ', '\'', character, '\'']);
        }
        self.pad_with_spaces(written.as_bytes());
    }

    /// A float under a verb; false when the verb does not fit.
    pub(super) fn float(&mut self, value: f64, verb: char) -> Result<bool, FormatError> {
        let precision = self.flags.precision;
        let magnitude = value.abs();
        let unsigned = match verb {
            _ if !value.is_finite() && matches!(verb, 'v' | 'g' | 'G' | 'e' | 'E' | 'f' | 'F') => {
                if value.is_nan() {
                    "NaN".to_owned()
                } else {
                    "Inf".to_owned()
                }
            }
            'v' | 'g' | 'G' => match precision {
                None => format_float(magnitude),
                Some(precision) => general(magnitude, precision.max(1)),
            },
            'e' | 'E' => exponent_form(magnitude, precision.unwrap_or(6)),
            'f' | 'F' => format!("{magnitude:.*}", precision.unwrap_or(6)),
            'b' | 'x' | 'X' => return Err(FormatError::UnsupportedVerb(verb)),
            _ => return Ok(false),
        };
        let unsigned = if matches!(verb, 'E' | 'G') {
            unsigned.to_uppercase()
        } else {
            unsigned
        };
        let unsigned = if self.flags.sharp && value.is_finite() {
            with_point(&unsigned, verb, precision)
        } else {
            unsigned
        };
        self.signed_float(value, &unsigned);
        Ok(true)
    }

    fn signed_float(&mut self, value: f64, unsigned: &str) {
        let is_negative = value.is_sign_negative() && !value.is_nan();
        let sign = match (is_negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) if value.is_infinite() => "+",
            (false, false, false) => "",
        };
        let written = format!("{sign}{unsigned}");
        if !value.is_finite() {
            self.pad_with_spaces(written.as_bytes());
        } else if !sign.is_empty() && self.flags.zero && !self.flags.minus {
            // The sign stands before the zeros.
            self.out.extend_from_slice(sign.as_bytes());
            let missing = self.flags.width.unwrap_or(0).saturating_sub(written.len());
            self.padding(missing);
            self.out.extend_from_slice(unsigned.as_bytes());
        } else {
            self.pad(written.as_bytes());
        }
    }
}

fn character(code: i64) -> char {
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn can_backquote(text: &[u8]) -> bool {
    runes(text).all(|rune| match rune.character {
        None | Some('\u{feff}' | '`' | '\u{7f}') => false,
        Some(character) => character >= ' ' || character == '\t',
    })
}

/// Rust's exponent form with Go's exponent: a sign and at least two digits.
fn exponent_form(value: f64, precision: usize) -> String {
    let written = format!("{value:.precision$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `%g` with a precision: so many significant digits, without the zeros at the end.
fn general(value: f64, precision: usize) -> String {
    let scientific = exponent_form(value, precision - 1);
    let (mantissa, exponent_text) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let exponent: i32 = exponent_text.parse().unwrap_or(0);
    let whole_digits = usize::try_from(exponent + 1).unwrap_or(0);
    // The threshold is the number of digits when all of them stand before the point.
    let threshold = if precision > digits.len() && digits.len() >= whole_digits {
        digits.len()
    } else {
        precision
    };
    if exponent < -4 || usize::try_from(exponent).is_ok_and(|exponent| exponent >= threshold) {
        let mantissa = if mantissa.contains('.') {
            trim_fraction(mantissa)
        } else {
            mantissa
        };
        return format!("{mantissa}e{exponent_text}");
    }
    let decimals = usize::try_from(i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent).unwrap_or(0);
    let plain = format!("{value:.decimals$}");
    if plain.contains('.') {
        trim_fraction(&plain).to_owned()
    } else {
        plain
    }
}

fn trim_fraction(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

/// The sharp flag: always a decimal point, and `%g` keeps the zeros at the end.
fn with_point(number: &str, verb: char, precision: Option<usize>) -> String {
    let exponent_at = number.find(['e', 'E']).unwrap_or(number.len());
    let (digits, tail) = number.split_at(exponent_at);
    let wanted = if matches!(verb, 'v' | 'g' | 'G') {
        precision.unwrap_or(6)
    } else {
        0
    };
    let significant = digits
        .chars()
        .filter(char::is_ascii_digit)
        .skip_while(|digit| *digit == '0')
        .count();
    let mut written = digits.to_owned();
    let mut missing = wanted.saturating_sub(significant);
    if !digits.contains('.') {
        if digits == "0" {
            missing = missing.saturating_sub(1);
        }
        written.push('.');
    }
    written.push_str(&"0".repeat(missing));
    written.push_str(tail);
    written
}
