//! Integers and strings under a verb with its flags: bases, signs, precision, padding.

use super::quote::{quote, quote_ascii, quote_rune};
use super::{FormatError, Printer};
use crate::text::{self, runes};
use crate::value::{IntType, Value};

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

    pub(super) fn padding(&mut self, count: usize) {
        // Zeros stand only on the left.
        let byte = if self.flags.zero && !self.flags.minus {
            b'0'
        } else {
            b' '
        };
        self.out.resize(self.out.len() + count, byte);
    }

    pub(super) fn pad_with_spaces(&mut self, text: &[u8]) {
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

    pub(super) fn bytes(&mut self, bytes: &[u8], verb: char, depth: usize) -> Result<(), FormatError> {
        match verb {
            's' | 'q' | 'x' | 'X' => {
                self.text(bytes, verb);
            }
            _ => {
                let (open, separator): (&[u8], &[u8]) = match (self.flags.sharp_v, verb) {
                    (true, 'v') if depth == 0 => (b"[]byte{", b", "),
                    (true, _) => (b"[]uint8{", b", "),
                    (false, _) => (b"[", b" "),
                };
                self.out.extend_from_slice(open);
                for (index, byte) in bytes.iter().enumerate() {
                    if index > 0 {
                        self.out.extend_from_slice(separator);
                    }
                    let byte = Value::Int(i64::from(*byte), IntType::Uint8);
                    self.value(&byte, verb, 0)?;
                }
                self.out.push(if self.flags.sharp_v { b'}' } else { b']' });
            }
        }
        Ok(())
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
    pub(super) fn integer(&mut self, value: i64, int_type: IntType, verb: char) -> bool {
        let is_unsigned = int_type.is_unsigned();
        let number = int_type.number(value);
        let magnitude = number.unsigned_abs();
        let digits = match verb {
            'v' if self.flags.sharp_v && is_unsigned => format!("{magnitude:x}"),
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
        let prefix = match verb {
            'v' if self.flags.sharp_v && is_unsigned => "0x",
            'b' if self.flags.sharp => "0b",
            'x' if self.flags.sharp => "0x",
            'X' if self.flags.sharp => "0X",
            _ => "",
        };
        self.signed_digits(digits, prefix, number < 0, verb);
        true
    }

    fn signed_digits(&mut self, mut digits: String, prefix: &str, is_negative: bool, verb: char) {
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
        if self.flags.sharp && matches!(verb, 'o' | 'O') && !digits.starts_with('0') {
            digits.insert(0, '0');
        }
        digits.insert_str(0, prefix);
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
