//! From values to JSON text: which fields an object has, in which order, and how strings are escaped.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Error;
use crate::bounds::{BoundError, MAX_DEPTH, beyond, check_bytes};
use crate::number;
use crate::value::{Json, Map, Shape, Value};

/// Whether `<`, `>` and `&` are escaped, which Go does unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `json.Marshal`
    Html,
    /// An encoder with `SetEscapeHTML(false)`.
    Minimal,
}

/// The compact JSON of a value.
pub fn encode(value: &Value, escape: Escape) -> Result<String, Error> {
    let mut encoder = Encoder {
        text: String::new(),
        escape,
        indent: None,
        open: Vec::new(),
    };
    encoder.value(value, 0)?;
    Ok(encoder.text)
}

/// The JSON of a value with two columns per level: `json.MarshalIndent(value, "", "  ")`.
pub fn encode_pretty(value: &Value, escape: Escape) -> Result<String, Error> {
    let mut encoder = Encoder {
        text: String::new(),
        escape,
        indent: Some("  "),
        open: Vec::new(),
    };
    encoder.value(value, 0)?;
    Ok(encoder.text)
}

struct Encoder {
    text: String,
    escape: Escape,
    indent: Option<&'static str>,
    /// The maps that the current one lies in.
    open: Vec<Map>,
}

impl Encoder {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Bound(beyond(BoundError::Depth)));
        }
        check_bytes(self.text.len()).map_err(Error::Bound)?;
        match value {
            Value::List(list) if list.is_nil() => self.text.push_str("null"),
            Value::Map(map) if map.is_nil() => self.text.push_str("null"),
            Value::Nil => self.text.push_str("null"),
            Value::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Value::Int(bits, int_type) => self.text.push_str(&int_type.number(*bits).to_string()),
            Value::Float(number) if number.is_finite() => self.text.push_str(&number::format_json_float(*number)),
            Value::Float(number) => {
                let number = number::format_float(*number);
                return Err(Error::Refused(format!("json: unsupported value: {number}")));
            }
            Value::Str(text) => self.string(text),
            Value::Bytes(bytes) => {
                self.text.push('"');
                STANDARD.encode_string(bytes, &mut self.text);
                self.text.push('"');
            }
            Value::List(list) => self.list(list.items(), depth)?,
            Value::Map(map) => self.map(map, depth)?,
            Value::Obj(object) => match object.json() {
                Some(Json::Fields(fields)) => self.fields(&fields, depth)?,
                Some(Json::Value(value)) => self.value(&value, depth + 1)?,
                Some(Json::Refused(error)) => return Err(Error::Refused(error)),
                None => match object.shape() {
                    Shape::Struct(fields) | Shape::Pointer(fields) => self.fields(&fields, depth)?,
                    Shape::Map(map) => self.map(&map, depth)?,
                    Shape::List(list) => self.list(list.items(), depth)?,
                    Shape::Number(bits, int_type) => self.text.push_str(&int_type.number(bits).to_string()),
                    Shape::Complex(..) => return Err(Error::Refused("json: unsupported type: complex128".to_owned())),
                },
            },
        }
        Ok(())
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<(), Error> {
        self.text.push('[');
        for (position, item) in items.iter().enumerate() {
            self.separate(position > 0, depth + 1);
            self.value(item, depth + 1)?;
        }
        self.close(']', items.is_empty(), depth);
        Ok(())
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<(), Error> {
        if self.open.iter().any(|outer| outer.is_same(map)) {
            let cycle = format!("json: unsupported value: encountered a cycle via {}", map.type_name());
            return Err(Error::Refused(cycle));
        }
        self.open.push(map.clone());
        let entries = map.entries();
        self.object(entries.iter().map(|(key, value)| (&**key, value)), depth)?;
        self.open.pop();
        Ok(())
    }

    fn fields(&mut self, fields: &[(&'static str, Value)], depth: usize) -> Result<(), Error> {
        self.object(fields.iter().map(|(name, value)| (name.as_bytes(), value)), depth)
    }

    fn object<'v>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (&'v [u8], &'v Value)>,
        depth: usize,
    ) -> Result<(), Error> {
        let empty = entries.len() == 0;
        self.text.push('{');
        for (position, (key, value)) in entries.enumerate() {
            self.separate(position > 0, depth + 1);
            self.string(key);
            self.text.push_str(if self.indent.is_some() { ": " } else { ":" });
            self.value(value, depth + 1)?;
        }
        self.close('}', empty, depth);
        Ok(())
    }

    fn separate(&mut self, comma: bool, depth: usize) {
        if comma {
            self.text.push(',');
        }
        self.new_line(depth);
    }

    fn close(&mut self, bracket: char, empty: bool, depth: usize) {
        if !empty {
            self.new_line(depth);
        }
        self.text.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.text.push('\n');
            for _ in 0..depth {
                self.text.push_str(indent);
            }
        }
    }

    fn string(&mut self, bytes: &[u8]) {
        self.text.push('"');
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                self.character(character);
            }
            // Each broken byte counts alone.
            for _ in chunk.invalid() {
                self.text.push_str("\\ufffd");
            }
        }
        self.text.push('"');
    }

    fn character(&mut self, character: char) {
        match character {
            '"' => self.text.push_str("\\\""),
            '\\' => self.text.push_str("\\\\"),
            '\x08' => self.text.push_str("\\b"),
            '\x0c' => self.text.push_str("\\f"),
            '\n' => self.text.push_str("\\n"),
            '\r' => self.text.push_str("\\r"),
            '\t' => self.text.push_str("\\t"),
            '\0'..='\x1f' | '\u{2028}' | '\u{2029}' => self.unicode_escape(character),
            '<' | '>' | '&' if self.escape == Escape::Html => self.unicode_escape(character),
            _ => self.text.push(character),
        }
    }

    fn unicode_escape(&mut self, character: char) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "\\u{:04x}", u32::from(character));
    }
}
