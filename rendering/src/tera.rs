//! Files that end with `.tera`: Tera 2 templates with the root of Helm's templates as their context.
//!
//! A template names another one by its path below `templates/`. Nothing is escaped: the output is YAML.

use std::error::Error as _;
use std::io::{self, Write};

use helm::OtherLanguage;
use helm::yaml::Node;
use tera::{Context, Error, Tera};

use crate::objects::to_plain_json;

/// What one template may write, in bytes.
const MAX_OUTPUT: usize = 64 << 20;

const FOLDER: &str = "/templates/";

/// The engine; it keeps nothing.
#[derive(Debug)]
pub(crate) struct TeraLanguage;

impl OtherLanguage for TeraLanguage {
    fn suffix(&self) -> &'static str {
        ".tera"
    }

    fn render(&self, files: &[(&str, &[u8])], path: &str, root: &Node) -> Result<Vec<u8>, String> {
        let (chart, name) = path.split_once(FOLDER).ok_or("it is not below templates/")?;
        let mut templates = Vec::new();
        for (path, text) in files {
            if let Some((owner, name)) = path.split_once(FOLDER)
                && owner == chart
            {
                templates.push((name, str::from_utf8(text).map_err(|_| format!("{path} is not UTF-8"))?));
            }
        }
        let mut tera = Tera::new();
        tera.autoescape_on(Vec::<String>::new());
        tera.add_raw_templates(templates).map_err(|error| chain(&error))?;
        let context = Context::from_serialize(&to_plain_json(root)).map_err(|error| chain(&error))?;
        let mut output = Bounded(Vec::new());
        tera.render_to(name, &context, &mut output)
            .map_err(|error| chain(&error))?;
        Ok(output.0)
    }
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Refuses to grow beyond the limit.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other(format!(
                "the template writes more than {MAX_OUTPUT} bytes"
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
