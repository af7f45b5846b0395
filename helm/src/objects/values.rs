//! Methods of Helm's own map type, which the root and `.Values` have. A key of such a name cannot be read with a dot.

use crate::format::quote;
use crate::text::lossy;
use crate::value::{GoObject, Map, Shape, Signature, Type, Value};
use crate::yaml;

/// A map of Helm's `Values` type, for calling its methods.
pub(crate) struct ValuesMethods(pub(crate) Map);

impl GoObject for ValuesMethods {
    fn type_name(&self) -> String {
        self.0.type_name()
    }

    fn shape(&self) -> Shape {
        Shape::Map(self.0.clone())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let parameters: &'static [Type] = match name {
            "AsMap" | "YAML" => &[],
            "PathValue" | "Table" => &[Type::Str],
            // No value of a template is one.
            "Encode" => &[Type::Named("io.Writer")],
            _ => return None,
        };
        Some(Signature {
            parameters,
            variadic: false,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        let argument = arguments.first().and_then(Value::as_str).unwrap_or_default();
        match name {
            "AsMap" if self.0.is_empty() => Ok(Value::Map(Map::new())),
            "AsMap" => Ok(Value::Map(self.0.unnamed())),
            "YAML" => match yaml::to_yaml(&Value::Map(self.0.unnamed())) {
                Ok(text) => Ok(Value::from(format!("{text}\n"))),
                Err(error) => Err(error.to_string()),
            },
            "Table" => self.table(argument).map(Value::Map),
            _ => self.value_at(argument),
        }
    }
}

impl ValuesMethods {
    fn table(&self, path: &[u8]) -> Result<Map, String> {
        let mut keys = path.split(|byte| *byte == b'.');
        let table = keys.try_fold(self.0.clone(), |table, key| match table.get(key) {
            Some(Value::Map(inner)) => Ok(inner),
            _ => Err(format!("{} is not a table", lossy(&quote(key)))),
        })?;
        Ok(match self.0.name() {
            Some(name) => table.named(name),
            None => table,
        })
    }

    fn value_at(&self, path: &[u8]) -> Result<Value, String> {
        if path.is_empty() {
            return Err("YAML path string cannot be zero length".to_owned());
        }
        let (table, key) = match path.iter().rposition(|byte| *byte == b'.') {
            Some(dot) => (self.table(&path[..dot]).ok(), &path[dot + 1..]),
            None => (Some(self.0.clone()), path),
        };
        match table.and_then(|table| table.get(key)) {
            Some(value) if !matches!(value, Value::Map(_)) => Ok(value),
            _ => Err(format!("{} is not a value", lossy(&quote(key)))),
        }
    }
}
