//! `.Files`: the files of a chart that are neither templates nor the chart's own description.

use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::bounds::{BYTES_PER_STEP, check_bytes, check_items, note_work, read};
use crate::chart::File;
use crate::glob;
use crate::json;
use crate::profile::EmptyFile;
use crate::value::{Bytes, Element, GoObject, List, Map, Shape, Signature, Type, Value};
use crate::yaml;

/// How many bytes are read in about the time that it takes to match one name.
const NAME_OVERHEAD: usize = 64;

/// How many names are compared in about the time of a step.
const NAMES_PER_STEP: usize = 64;

/// `engine.files`
pub(crate) struct Files {
    files: Vec<File>,
    empty: EmptyFile,
}

impl Files {
    pub(crate) fn new(files: &Arc<[File]>, empty: EmptyFile) -> Self {
        Self {
            files: files.to_vec(),
            empty,
        }
    }

    /// The last file of a name; archives may hold a name twice.
    fn find(&self, name: &[u8]) -> Option<&File> {
        self.files.iter().rev().find(|file| file.name.as_bytes() == name)
    }

    fn glob(&self, pattern: &[u8]) -> Result<Self, String> {
        let pattern = glob::compile(&String::from_utf8_lossy(pattern))?;
        read(self.files.iter().map(|file| NAME_OVERHEAD + file.name.len()).sum())?;
        let is_match = |file: &File| {
            pattern
                .as_ref()
                .map_or(Ok(true), |pattern| pattern.is_match(&file.name))
        };
        let matching = self.files.iter().filter_map(|file| match is_match(file) {
            Ok(is_match) => is_match.then(|| Ok(file.clone())),
            Err(error) => Some(Err(error)),
        });
        Ok(Self {
            files: matching.collect::<Result<_, _>>()?,
            empty: self.empty,
        })
    }

    /// The files under their base names, as the data of a `ConfigMap` or `Secret`.
    fn as_data(&self, text: impl Fn(&[u8]) -> Value) -> Result<Value, String> {
        let mut files: Vec<&File> = self.files.iter().collect();
        check_bytes(files.iter().map(|file| file.data.len()).sum())?;
        files.sort_by(|left, right| left.name.cmp(&right.name));
        let data = Map::of(Element::Str);
        for file in files {
            let base = file.name.rsplit('/').next().unwrap_or_default();
            data.insert(base, text(&file.data));
        }
        match yaml::to_yaml(&Value::Map(data)) {
            Ok(text) => Ok(Value::from(text)),
            Err(json::Error::Refused(_)) => Ok(Value::from("")),
            Err(json::Error::Bound(bound)) => Err(bound.to_string()),
        }
    }

    fn lines(&self, name: &[u8]) -> Result<Value, String> {
        let none = Value::List(List::of(Element::Str, Vec::new()));
        let Some(file) = self.find(name) else {
            return Ok(none);
        };
        let data: &[u8] = match (file.data.split_last(), self.empty) {
            (None, EmptyFile::HasNoLines) => return Ok(none),
            (None, EmptyFile::Fails) => return Err("runtime error: index out of range [-1]".to_owned()),
            (Some((b'\n', before)), _) => before,
            (Some(_), _) => &file.data,
        };
        check_items(memchr::memchr_iter(b'\n', data).count())?;
        Ok(Value::List(List::strings(
            data.split(|byte| *byte == b'\n').map(Bytes::from),
        )))
    }
}

impl GoObject for Files {
    fn type_name(&self) -> String {
        "engine.files".to_owned()
    }

    fn shape(&self) -> Shape {
        let map = Map::of(Element::Bytes);
        note_work(
            (self
                .files
                .iter()
                .map(|file| NAME_OVERHEAD + file.data.len())
                .sum::<usize>()
                / BYTES_PER_STEP) as u64,
        );
        for file in &self.files {
            map.insert(file.name.as_str(), Value::Bytes(Bytes::from(&*file.data)));
        }
        Shape::Map(map)
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let parameters: &'static [Type] = match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => &[Type::Str],
            "AsConfig" | "AsSecrets" => &[],
            _ => return None,
        };
        Some(Signature {
            parameters,
            variadic: false,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        let argument = arguments.first().and_then(Value::as_str).unwrap_or_default();
        note_work((self.files.len() / NAMES_PER_STEP) as u64);
        let data = || self.find(argument).map_or(&[][..], |file| &file.data);
        match name {
            "Get" => Ok(Value::from(data())),
            "GetBytes" => Ok(Value::Bytes(Bytes::from(data()))),
            "Glob" => Ok(Value::Obj(Rc::new(self.glob(argument)?))),
            "Lines" => self.lines(argument),
            "AsConfig" => self.as_data(|bytes| Value::from(bytes)),
            _ => self.as_data(|bytes| Value::from(STANDARD.encode(bytes))),
        }
    }
}
