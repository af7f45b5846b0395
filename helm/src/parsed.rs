//! Parsed templates, kept with a chart: each file is parsed once for a table of functions, whatever values enable which subcharts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::bounds::spend;
use crate::functions::{FunctionSet, FunctionTable};
use crate::layout::{Layout, Template};
use crate::profile::Profile;
use crate::template::{ParseError, ParsedFile, Templates};

/// How many sets of templates are kept. Every set of enabled subcharts has its own, for each table of functions.
const MAX_SETS: usize = 16;

/// How much of a file is parsed in about the time of a step.
const BYTES_PER_STEP: usize = 16;

/// What renders of one chart share.
#[derive(Debug, Default)]
pub(crate) struct ParsedTemplates(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The one used last comes last.
    sets: Vec<Set>,
    files: HashMap<(FunctionSet, String), ParsedFile>,
}

/// The templates that some files together make.
#[derive(Debug)]
struct Set {
    functions: FunctionSet,
    paths: Vec<String>,
    templates: Arc<Templates>,
}

/// Pays for parsing a file. Every render does, so that none has more steps left than another.
fn pay(template: &Template) -> Result<(), ParseError> {
    spend((template.text.len() / BYTES_PER_STEP) as u64).map_err(|bound| ParseError {
        file: template.path.clone(),
        line: 1,
        message: bound.to_string(),
    })
}

impl ParsedTemplates {
    /// The templates of a layout, parsed as far as no render before did.
    pub(crate) fn get(&self, layout: &Layout, profile: &Profile) -> Result<Arc<Templates>, ParseError> {
        let functions = profile.functions;
        let kept = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = kept.take(layout, functions) {
            let templates = Arc::clone(&set.templates);
            kept.sets.push(set);
            layout.in_helms_language().try_for_each(pay)?;
            return Ok(templates);
        }
        let templates = Arc::new(kept.assemble(layout, functions)?);
        if kept.sets.len() == MAX_SETS {
            kept.sets.remove(0);
        }
        kept.sets.push(Set {
            functions,
            paths: layout
                .in_helms_language()
                .map(|template| template.path.clone())
                .collect(),
            templates: Arc::clone(&templates),
        });
        Ok(templates)
    }
}

impl Kept {
    fn take(&mut self, layout: &Layout, functions: FunctionSet) -> Option<Set> {
        let is_same = |set: &Set| {
            let paths = layout.in_helms_language().map(|template| &template.path);
            set.functions == functions && set.paths.iter().eq(paths)
        };
        let found = self.sets.iter().position(is_same)?;
        Some(self.sets.remove(found))
    }

    fn assemble(&mut self, layout: &Layout, functions: FunctionSet) -> Result<Templates, ParseError> {
        let mut templates = Templates::new(FunctionTable::of(functions));
        for template in layout.in_helms_language() {
            pay(template)?;
            let key = (functions, template.path.clone());
            let file = if let Some(file) = self.files.get(&key) {
                file.clone()
            } else {
                let file = templates.parse_file(&template.path, &template.text)?;
                self.files.insert(key, file.clone());
                file
            };
            templates.add_file(&template.path, &file)?;
        }
        Ok(templates)
    }
}
