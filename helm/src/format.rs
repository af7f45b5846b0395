//! Go's `fmt`: how values print, in `{{ }}`, `print`, `printf` and wherever a function turns a value into text.
//!
//! Decides the shape of compound values here, single values in `scalar` and `float`, format strings in `verbs`, quoting in `quote`.

mod float;
mod quote;
mod scalar;
mod verbs;

pub(crate) use quote::{quote, quote_char, quoted};
pub(crate) use verbs::sprintf;

use crate::bounds::{BoundError, MAX_DEPTH, beyond, check_bytes};
use crate::value::{Element, GoObject, List, Map, Shape, Value};

/// A value that cannot be printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormatError {
    /// Go goes on, and overflows its stack on a value that contains itself.
    #[error(transparent)]
    Bound(BoundError),
    #[error("printf width or precision is larger than {}", verbs::MAX_NUMBER)]
    TooWide,
}

/// Go's `fmt.Sprint`: a space between operands when neither is a string.
pub(crate) fn sprint(values: &[Value]) -> Result<Vec<u8>, FormatError> {
    let mut printer = Printer::default();
    let mut previous_is_string = true;
    for value in values {
        let is_string = matches!(value, Value::Str(_));
        if !is_string && !previous_is_string {
            printer.out.push(b' ');
        }
        printer.argument(value, 'v')?;
        previous_is_string = is_string;
    }
    Ok(printer.out)
}

/// Go's `fmt.Sprintln`: a space between all operands, and a line end.
pub(crate) fn sprintln(values: &[Value]) -> Result<Vec<u8>, FormatError> {
    let mut printer = Printer::default();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.out.push(b' ');
        }
        printer.argument(value, 'v')?;
    }
    printer.out.push(b'\n');
    Ok(printer.out)
}

/// What `{{ value }}` writes for a value that is not nil: a pointer prints as what it points to, by its own `String()`.
pub(crate) fn print_action(value: &Value, out: &mut Vec<u8>) -> Result<(), FormatError> {
    match value {
        Value::Str(text) => out.extend_from_slice(text),
        Value::Obj(object) if let Some(text) = object.pointer_string() => out.extend_from_slice(text.as_bytes()),
        _ => out.extend_from_slice(&sprint_target(value)?),
    }
    Ok(())
}

/// What a value prints as after its pointer was followed.
pub(crate) fn sprint_target(value: &Value) -> Result<Vec<u8>, FormatError> {
    let mut printer = Printer::default();
    match value {
        Value::Obj(object)
            if let Shape::Pointer(fields) = object.shape()
                && object.string().is_none() =>
        {
            printer.structure(&object.type_name(), &fields, 'v', 1)
        }
        _ => printer.argument(value, 'v'),
    }?;
    Ok(printer.out)
}

/// Sprig's `strval`: strings and bytes as they are, everything else as `%v`.
pub(crate) fn to_text(value: &Value) -> Result<Vec<u8>, FormatError> {
    match value {
        Value::Str(text) | Value::Bytes(text) => Ok(text.to_vec()),
        _ => sprint(std::slice::from_ref(value)),
    }
}

/// The texts of all values that are not nil.
pub(crate) fn texts(
    values: &[Value],
    to_text: impl Fn(&Value) -> Result<Vec<u8>, FormatError>,
) -> Result<Vec<Vec<u8>>, FormatError> {
    let mut texts = Vec::new();
    let mut bytes = 0;
    for value in values.iter().filter(|value| !matches!(value, Value::Nil)) {
        let text = to_text(value)?;
        bytes += text.len();
        check_bytes(bytes).map_err(FormatError::Bound)?;
        texts.push(text);
    }
    Ok(texts)
}

/// What `%p` gives: Go's differs in each run.
const ADDRESS: &[u8] = b"0xc000012000";

/// The flags of one verb.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the format language")]
struct Flags {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%+v`: struct fields with their names.
    plus_v: bool,
    /// `%#v`: Go syntax.
    sharp_v: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

#[derive(Default)]
struct Printer {
    out: Vec<u8>,
    flags: Flags,
    /// While a wrong verb is reported, methods are not asked.
    is_reporting: bool,
}

impl Printer {
    /// Prints one operand.
    fn argument(&mut self, value: &Value, verb: char) -> Result<(), FormatError> {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (_, 'T') => self.string(value.type_name().as_bytes()),
            (Value::List(_) | Value::Map(_) | Value::Obj(_), 'w') => self.wrong_verb(value, verb)?,
            (Value::List(_) | Value::Map(_) | Value::Bytes(_), 'p') => self.pad(ADDRESS),
            _ => self.value(value, verb, 0)?,
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) -> Result<(), FormatError> {
        if depth > MAX_DEPTH {
            return Err(FormatError::Bound(beyond(BoundError::Depth)));
        }
        check_bytes(self.out.len()).map_err(FormatError::Bound)?;
        match value {
            Value::Nil => self.wrong_verb(value, verb)?,
            Value::Bool(flag) => match verb {
                't' | 'v' => self.pad(if *flag { b"true" } else { b"false" }),
                _ => self.wrong_verb(value, verb)?,
            },
            Value::Int(number, int_type) => {
                if !self.integer(*number, *int_type, verb) {
                    self.wrong_verb(value, verb)?;
                }
            }
            Value::Float(number) => {
                if !self.float(*number, verb) {
                    self.wrong_verb(value, verb)?;
                }
            }
            Value::Str(text) => {
                if !self.text(text, verb) {
                    self.wrong_verb(value, verb)?;
                }
            }
            Value::Bytes(bytes) => self.bytes(bytes, verb, depth)?,
            Value::List(list) => self.list(&list.type_name(), list, verb, depth)?,
            Value::Map(map) => self.map(&map.type_name(), map, verb, depth)?,
            Value::Obj(object) => {
                if !self.object(&**object, verb, depth)? {
                    self.wrong_verb(value, verb)?;
                }
            }
        }
        Ok(())
    }

    /// False for a verb that does not fit.
    fn object(&mut self, object: &dyn GoObject, verb: char, depth: usize) -> Result<bool, FormatError> {
        let is_stringable = matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') && !self.is_reporting && !self.flags.sharp_v;
        if is_stringable && let Some(text) = object.string() {
            self.text(text.as_bytes(), verb);
            return Ok(true);
        }
        if self.flags.sharp_v
            && let Some(text) = object.go_string()
        {
            self.string(text.as_bytes());
            return Ok(true);
        }
        match object.shape() {
            Shape::Struct(fields) => self.structure(&object.type_name(), &fields, verb, depth)?,
            Shape::Complex(real, imaginary) => return Ok(self.complex(real, imaginary, verb)),
            Shape::Pointer(_) if depth > 0 && !matches!(verb, 'v' | 'b' | 'o' | 'd' | 'x' | 'X') => return Ok(false),
            Shape::Pointer(_) if depth > 0 => {
                // Go follows a pointer only where it begins.
                let address = String::from_utf8_lossy(ADDRESS);
                let written = if self.flags.sharp_v {
                    format!("({})({address})", object.type_name())
                } else {
                    address.into_owned()
                };
                self.out.extend_from_slice(written.as_bytes());
            }
            Shape::Pointer(fields) => {
                self.out.push(b'&');
                self.structure(object.type_name().trim_start_matches('*'), &fields, verb, depth + 1)?;
            }
            Shape::Map(map) => self.map(&object.type_name(), &map, verb, depth)?,
            Shape::List(list) => self.list(&object.type_name(), &list, verb, depth)?,
            Shape::Number(number, int_type) => return Ok(self.integer(number, int_type, verb)),
        }
        Ok(true)
    }

    /// An element of a list, map or struct. Inside an interface, nil prints the same for every verb.
    fn element(&mut self, value: &Value, verb: char, depth: usize) -> Result<(), FormatError> {
        if matches!(value, Value::Nil) {
            self.out.extend_from_slice(if self.flags.sharp_v {
                b"interface {}(nil)"
            } else {
                b"<nil>"
            });
            return Ok(());
        }
        self.value(value, verb, depth + 1)
    }

    fn list(&mut self, type_name: &str, list: &List, verb: char, depth: usize) -> Result<(), FormatError> {
        if list.is_nil() && self.flags.sharp_v {
            self.out.extend_from_slice(format!("{type_name}(nil)").as_bytes());
            return Ok(());
        }
        let (open, separator, close) = self.brackets(type_name, '[', ']');
        self.out.extend_from_slice(open.as_bytes());
        for (index, item) in list.items().iter().enumerate() {
            if index > 0 {
                self.out.extend_from_slice(separator);
            }
            self.element(item, verb, depth)?;
        }
        self.out.push(close);
        Ok(())
    }

    fn map(&mut self, type_name: &str, map: &Map, verb: char, depth: usize) -> Result<(), FormatError> {
        if self.flags.sharp_v && map.is_nil() {
            self.out.extend_from_slice(format!("{type_name}(nil)").as_bytes());
            return Ok(());
        }
        let (open, separator, close) = self.brackets(type_name, '[', ']');
        if !self.flags.sharp_v {
            self.out.extend_from_slice(b"map");
        }
        self.out.extend_from_slice(open.as_bytes());
        for (index, (key, value)) in map.entries().iter().enumerate() {
            if index > 0 {
                self.out.extend_from_slice(separator);
            }
            self.value(&Value::Str(key.clone()), verb, depth + 1)?;
            self.out.push(b':');
            if map.element() == Element::Any {
                self.element(value, verb, depth)?;
            } else {
                self.value(value, verb, depth + 1)?;
            }
        }
        self.out.push(close);
        Ok(())
    }

    fn structure(
        &mut self,
        type_name: &str,
        fields: &[(&'static str, Value)],
        verb: char,
        depth: usize,
    ) -> Result<(), FormatError> {
        let (open, separator, close) = self.brackets(type_name, '{', '}');
        self.out.extend_from_slice(open.as_bytes());
        for (index, (name, value)) in fields.iter().enumerate() {
            if index > 0 {
                self.out.extend_from_slice(separator);
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.extend_from_slice(name.as_bytes());
                self.out.push(b':');
            }
            self.element(value, verb, depth)?;
        }
        self.out.push(close);
        Ok(())
    }

    /// What encloses a compound value: Go syntax writes its type and braces.
    fn brackets(&self, type_name: &str, open: char, close: char) -> (String, &'static [u8], u8) {
        if self.flags.sharp_v {
            (format!("{type_name}{{"), b", ", b'}')
        } else {
            (open.to_string(), b" ", close as u8)
        }
    }

    /// `%!d(string=a)`: the verb does not fit the operand.
    fn wrong_verb(&mut self, value: &Value, verb: char) -> Result<(), FormatError> {
        self.out.extend_from_slice(b"%!");
        crate::text::push_char(&mut self.out, verb);
        self.out.push(b'(');
        if matches!(value, Value::Nil) {
            self.out.extend_from_slice(b"<nil>");
        } else {
            self.is_reporting = true;
            self.out.extend_from_slice(value.type_name().as_bytes());
            self.out.push(b'=');
            self.argument(value, 'v')?;
            self.is_reporting = false;
        }
        self.out.push(b')');
        Ok(())
    }
}
