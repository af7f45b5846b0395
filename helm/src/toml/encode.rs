//! Writing TOML as the encoder of Helm does: values first, then tables two columns deeper, keys in byte order.

use std::borrow::Cow;

use super::numbers::local_layout;
use super::{Dialect, quoted, quoted_key};
use crate::bounds::{Walk, check_bytes};
use crate::number::{format_float, plain};
use crate::objects::time::{as_duration, as_time};
use crate::time::{Location, RFC_3339_NANO};
use crate::value::{Json, Map, Shape, Value};

/// Why there is no text.
pub(crate) enum Error {
    /// The encoder refuses the value; its text is what a template gets.
    Refused(&'static str),
    /// We refuse it.
    Unsupported(String),
}

/// The TOML of a value. Anything but a map is written as it would stand behind a key.
pub(crate) fn encode(value: &Value, dialect: Dialect) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder {
        dialect,
        out: Vec::new(),
        walk: Walk::copying(),
    };
    encoder.encode(&mut Vec::new(), value)?;
    Ok(encoder.out)
}

/// What decides where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nil,
    /// Behind its key.
    Plain,
    Table,
    /// A list of tables alone.
    Tables,
}

/// A value, as far as TOML tells it from others.
enum Form<'v> {
    Nil,
    Text(Vec<u8>),
    Time(Vec<u8>),
    Verbatim(String),
    Float(f64),
    List(Vec<Value>),
    Map(Cow<'v, Map>),
}

fn form(value: &Value) -> Result<Form<'_>, Error> {
    if let Some(time) = as_time(value) {
        return Ok(Form::Time(match local_layout(time.location()) {
            Some(layout) => time.told_in(Location::Utc).format(layout.as_bytes()),
            None => time.format(RFC_3339_NANO),
        }));
    }
    Ok(match value {
        Value::Nil => Form::Nil,
        Value::Bool(value) => Form::Verbatim(value.to_string()),
        Value::Int(bits, int_type) => Form::Verbatim(int_type.number(*bits).to_string()),
        Value::Float(number) => Form::Float(*number),
        Value::Str(text) => Form::Text(text.to_vec()),
        Value::Bytes(bytes) => Form::List(bytes.iter().map(|byte| Value::int(i64::from(*byte))).collect()),
        Value::List(list) if list.is_nil() => Form::Nil,
        Value::Map(map) if map.is_nil() => Form::Nil,
        Value::List(list) => Form::List(list.items().to_vec()),
        Value::Map(map) => Form::Map(Cow::Borrowed(map)),
        Value::Obj(object) => match (object.shape(), object.json()) {
            (Shape::Number(bits, int_type), _) => match as_duration(value) {
                Some(duration) => Form::Text(duration.to_string().into_bytes()),
                None => Form::Verbatim(int_type.number(bits).to_string()),
            },
            (Shape::Map(map), None) => Form::Map(Cow::Owned(map)),
            (Shape::List(list), None) => Form::List(list.items().to_vec()),
            (Shape::Pointer(_), Some(Json::Value(Value::Str(text)))) => Form::Text(text.to_vec()),
            _ => {
                return Err(Error::Unsupported(format!(
                    "toToml of {} is not supported",
                    object.type_name()
                )));
            }
        },
    })
}

/// A float always has a point or an exponent.
fn float(number: f64, dialect: Dialect) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let text = match dialect {
        Dialect::V1_0 => plain(number),
        Dialect::V1_1 => format_float(number),
    };
    if text.contains(['.', 'e']) {
        text
    } else {
        format!("{text}.0")
    }
}

struct Encoder {
    dialect: Dialect,
    out: Vec<u8>,
    walk: Walk,
}

impl Encoder {
    fn visit(&mut self, depth: usize) -> Result<(), Error> {
        self.walk
            .visit(depth)
            .and_then(|()| check_bytes(self.out.len()))
            .map_err(|bound| Error::Unsupported(bound.to_string()))
    }

    fn kind(&mut self, value: &Value, depth: usize) -> Result<Kind, Error> {
        self.visit(depth)?;
        Ok(match form(value)? {
            Form::Nil => Kind::Nil,
            Form::Text(_) | Form::Time(_) | Form::Verbatim(_) | Form::Float(_) => Kind::Plain,
            Form::Map(_) => Kind::Table,
            Form::List(items) => {
                let mut kind = if items.is_empty() { Kind::Plain } else { Kind::Tables };
                for item in &items {
                    match self.kind(item, depth + 1)? {
                        Kind::Nil => return Err(Error::Refused("toml: cannot encode array with nil element")),
                        Kind::Table => {}
                        Kind::Plain | Kind::Tables => kind = Kind::Plain,
                    }
                }
                kind
            }
        })
    }

    fn encode(&mut self, path: &mut Vec<Vec<u8>>, value: &Value) -> Result<(), Error> {
        self.visit(path.len())?;
        match (form(value)?, self.kind(value, path.len())?) {
            // Only a list that is all there is is written even when it was never made.
            (Form::Nil, _) if path.is_empty() && matches!(value, Value::List(_)) => {
                self.element(Form::List(Vec::new()), 0)
            }
            (Form::Nil, _) => Ok(()),
            (Form::Map(map), _) => self.table(path, &map),
            (Form::List(items), Kind::Tables) => self.tables(path, &items),
            (form, _) => {
                let depth = path.len();
                let Some(key) = path.last() else {
                    return self.element(form, depth);
                };
                let key = quoted_key(key);
                self.indent(depth);
                self.out.extend_from_slice(&key);
                self.out.extend_from_slice(b" = ");
                self.element(form, depth)?;
                self.new_line();
                Ok(())
            }
        }
    }

    fn table(&mut self, path: &mut Vec<Vec<u8>>, map: &Map) -> Result<(), Error> {
        if path.len() == 1 {
            self.new_line();
        }
        if !path.is_empty() {
            self.header(path, "[", "]");
        }
        self.entries(path, map)
    }

    fn tables(&mut self, path: &mut Vec<Vec<u8>>, items: &[Value]) -> Result<(), Error> {
        if path.is_empty() {
            return Err(Error::Refused("toml: top-level values must be Go maps or structs"));
        }
        for item in items {
            if let Form::Map(map) = form(item)? {
                self.new_line();
                self.header(path, "[[", "]]");
                self.entries(path, &map)?;
            }
        }
        Ok(())
    }

    fn header(&mut self, path: &[Vec<u8>], open: &str, close: &str) {
        self.indent(path.len());
        self.out.extend_from_slice(open.as_bytes());
        let keys: Vec<Vec<u8>> = path.iter().map(|key| quoted_key(key)).collect();
        self.out.extend_from_slice(&keys.join(&b'.'));
        self.out.extend_from_slice(close.as_bytes());
        self.new_line();
    }

    /// What stands behind its key comes before the tables.
    fn entries(&mut self, path: &mut Vec<Vec<u8>>, map: &Map) -> Result<(), Error> {
        let (plain, tables) = self.sorted(map, path.len())?;
        for (key, value) in plain.into_iter().chain(tables) {
            path.push(key);
            self.encode(path, &value)?;
            path.pop();
        }
        Ok(())
    }

    #[expect(clippy::type_complexity, reason = "the same entries twice")]
    fn sorted(&mut self, map: &Map, depth: usize) -> Result<(Vec<(Vec<u8>, Value)>, Vec<(Vec<u8>, Value)>), Error> {
        let (mut plain, mut tables) = (Vec::new(), Vec::new());
        for (key, value) in map.to_vec() {
            let entries = match self.kind(&value, depth + 1)? {
                Kind::Nil | Kind::Plain => &mut plain,
                Kind::Table | Kind::Tables => &mut tables,
            };
            entries.push((key.to_vec(), value));
        }
        Ok((plain, tables))
    }

    /// A value behind its key or in a list.
    fn element(&mut self, form: Form<'_>, depth: usize) -> Result<(), Error> {
        self.visit(depth)?;
        match form {
            Form::Nil => {}
            Form::Text(text) => self.out.extend_from_slice(&quoted(&text)),
            Form::Time(text) => self.out.extend_from_slice(&text),
            Form::Verbatim(text) => self.out.extend_from_slice(text.as_bytes()),
            Form::Float(number) => self.out.extend_from_slice(float(number, self.dialect).as_bytes()),
            Form::List(items) => {
                self.out.push(b'[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        self.out.extend_from_slice(b", ");
                    }
                    self.element(self::form(item)?, depth + 1)?;
                }
                self.out.push(b']');
            }
            Form::Map(map) => {
                let (plain, tables) = self.sorted(&map, depth)?;
                self.out.push(b'{');
                self.inline(&plain, !tables.is_empty(), depth)?;
                self.inline(&tables, false, depth)?;
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    /// Entries of a table on one line. A comma follows an entry unless it is the last, also when only nil comes after it.
    fn inline(&mut self, entries: &[(Vec<u8>, Value)], more_follow: bool, depth: usize) -> Result<(), Error> {
        for (position, (key, value)) in entries.iter().enumerate() {
            let form = form(value)?;
            if matches!(form, Form::Nil) {
                continue;
            }
            self.out.extend_from_slice(&quoted_key(key));
            self.out.extend_from_slice(b" = ");
            self.element(form, depth + 1)?;
            if more_follow || position + 1 < entries.len() {
                self.out.extend_from_slice(b", ");
            }
        }
        Ok(())
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n(b' ', 2 * depth.saturating_sub(1)));
    }

    /// Nothing at the start of the text.
    fn new_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b'\n');
        }
    }
}
