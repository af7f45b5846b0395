//! From JSON text to plain data, with the error texts of `encoding/json`.

use std::collections::BTreeMap;

use super::Error;
use crate::bounds::{Walk, check_document};
use crate::yaml::Node;

/// Reads a text that holds one JSON value; every number is a float.
pub fn decode(text: &[u8]) -> Result<Node, Error> {
    match decode_partly(text)? {
        (node, None) => Ok(node),
        (_, Some(error)) => Err(Error::Refused(error)),
    }
}

/// Reads what it can: a number that is out of range becomes null, and is what the error is about. Go fills its target in so too.
pub(crate) fn decode_partly(text: &[u8]) -> Result<(Node, Option<String>), Error> {
    match decode_whole(text) {
        // At the end Go looks whether a space could follow, and may complain about that.
        Err(Error::Refused(error)) if error == END => decode_whole(&[text, b" "].concat()),
        result => result,
    }
}

const END: &str = "unexpected end of JSON input";

fn decode_whole(text: &[u8]) -> Result<(Node, Option<String>), Error> {
    let mut decoder = Decoder::new(text, END);
    let node = decoder.value(0)?;
    decoder.skip_space();
    match decoder.peek() {
        None => Ok((node, decoder.out_of_range)),
        Some(_) => Err(decoder.unexpected("after top-level value")),
    }
}

/// Reads the value that a text begins with, as Go's `json.Decoder` does, and gives its length.
pub(crate) fn decode_first<T: Build>(text: &[u8]) -> Result<(T, usize), Error> {
    let mut decoder = Decoder::new(text, "unexpected EOF");
    if decoder.peek().is_none() {
        return Err(Error::Refused("EOF".to_owned()));
    }
    let value = decoder.value(0)?;
    match decoder.out_of_range {
        None => Ok((value, decoder.position)),
        Some(error) => Err(Error::Refused(error)),
    }
}

/// What JSON is read into.
pub(crate) trait Build: Sized {
    /// `null`
    fn null() -> Self;
    /// `true` or `false`
    fn bool(value: bool) -> Self;
    /// A number as written; nothing when it is out of range.
    fn number(text: &str) -> Option<Self>;
    /// A string.
    fn text(text: String) -> Self;
    /// An array.
    fn list(items: Vec<Self>) -> Self;
    /// An object. Of equal keys the last counts.
    fn map(entries: BTreeMap<String, Self>) -> Self;
}

impl Build for Node {
    fn null() -> Self {
        Self::Null
    }

    fn bool(value: bool) -> Self {
        Self::Bool(value)
    }

    fn number(text: &str) -> Option<Self> {
        text.parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(Self::Float)
    }

    fn text(text: String) -> Self {
        Self::Text(text)
    }

    fn list(items: Vec<Self>) -> Self {
        Self::List(items)
    }

    fn map(entries: BTreeMap<String, Self>) -> Self {
        Self::Map(entries)
    }
}

struct Decoder<'a> {
    text: &'a [u8],
    position: usize,
    walk: Walk,
    /// About what the maps take.
    bytes: usize,
    /// What Go says of a text that ends too early.
    too_short: &'static str,
    /// Of the first number that is out of range.
    out_of_range: Option<String>,
}

impl<'a> Decoder<'a> {
    /// A decoder at the first value of a text.
    fn new(text: &'a [u8], too_short: &'static str) -> Self {
        let mut decoder = Self {
            text,
            position: 0,
            walk: Walk::copying(),
            bytes: 0,
            too_short,
            out_of_range: None,
        };
        decoder.skip_space();
        decoder
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.position += 1;
        }
    }

    /// The error for the byte at the position, or for the end of the text.
    fn unexpected(&self, place: &str) -> Error {
        Error::Refused(match self.peek() {
            None => self.too_short.to_owned(),
            Some(byte) => format!("invalid character {} {place}", quote(byte)),
        })
    }

    fn expect(&mut self, byte: u8, place: &str) -> Result<(), Error> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(place));
        }
        self.position += 1;
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        check_document(self.bytes).map_err(Error::Bound)
    }

    fn value<T: Build>(&mut self, depth: usize) -> Result<T, Error> {
        self.walk.visit(depth).map_err(Error::Bound)?;
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(T::text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", T::bool(true)),
            Some(b'f') => self.literal("false", T::bool(false)),
            Some(b'n') => self.literal("null", T::null()),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn literal<T>(&mut self, word: &str, value: T) -> Result<T, Error> {
        for byte in word.bytes() {
            self.expect(byte, &format!("in literal {word} (expecting {})", quote(byte)))?;
        }
        Ok(value)
    }

    fn object<T: Build>(&mut self, depth: usize) -> Result<T, Error> {
        self.position += 1;
        let mut entries = BTreeMap::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(T::map(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.skip_space();
            self.expect(b':', "after object key")?;
            self.skip_space();
            let node = self.value(depth + 1)?;
            entries.insert(key, node);
            self.skip_space();
            if self.peek() == Some(b'}') {
                self.position += 1;
                self.take(Node::memory_of_entries(entries.len()))?;
                return Ok(T::map(entries));
            }
            self.expect(b',', "after object key:value pair")?;
        }
    }

    fn array<T: Build>(&mut self, depth: usize) -> Result<T, Error> {
        self.position += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(T::list(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.peek() == Some(b']') {
                self.position += 1;
                return Ok(T::list(items));
            }
            self.expect(b',', "after array element")?;
        }
    }

    fn number<T: Build>(&mut self) -> Result<T, Error> {
        let start = self.position;
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        if self.peek() == Some(b'0') {
            self.position += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.position += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.position += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = String::from_utf8_lossy(&self.text[start..self.position]);
        Ok(T::number(&text).unwrap_or_else(|| {
            self.out_of_range
                .get_or_insert_with(|| format!("json: cannot unmarshal number {text} into Go value of type float64"));
            T::null()
        }))
    }

    fn digits(&mut self, place: &str) -> Result<(), Error> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected(place));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Error> {
        self.position += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(to_text(&bytes));
                }
                Some(b'\\') => {
                    self.position += 1;
                    let character = self.escape()?;
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None | Some(0..=0x1f) => return Err(self.unexpected("in string literal")),
                Some(byte) => {
                    bytes.push(byte);
                    self.position += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.position += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.position += 1;
        Ok(character)
    }

    /// The digits of `\uXXXX`, and a second escape when the first is half of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let high = self.four_hex_digits()?;
        if let Some(character) = char::from_u32(high) {
            return Ok(character);
        }
        let after_high = self.position;
        if (0xd800..0xdc00).contains(&high) && self.text[self.position..].starts_with(b"\\u") {
            self.position += 2;
            let low = self.four_hex_digits()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.position = after_high;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_hex_digits(&mut self) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.position += 1;
        }
        Ok(code)
    }
}

/// Broken bytes become U+FFFD, each alone.
fn to_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// A byte as Go's error texts quote it.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\x07' => r"'\a'".to_owned(),
        b'\x08' => r"'\b'".to_owned(),
        b'\x0b' => r"'\v'".to_owned(),
        b'\x0c' => r"'\f'".to_owned(),
        b' '..=b'~' => format!("'{}'", char::from(byte)),
        0..=0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0x9f | 0xad => format!("'\\u{:04x}'", u32::from(byte)),
        _ => format!("'{}'", char::from(byte)),
    }
}
