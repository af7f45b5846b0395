//! Names of releases: which are allowed, and how `--name-template` makes one.

use std::sync::Arc;

use crate::options::RenderOptions;
use crate::template::{Executor, Templates, on_deep_stack};
use crate::value::Value;

/// What Helm calls the template of a name in errors.
const TEMPLATE: &str = "name-template";

/// The names that are allowed, which may have no more than [`MAX_LENGTH`] characters.
const PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const MAX_LENGTH: usize = 53;

/// Why a template makes no name. Displays as Helm's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

impl RenderOptions {
    /// The name that a template makes. It sees no values, and asks the answers of these options for what is random. The name may not be
    /// allowed: that is for the render to say.
    pub fn name_from(&self, template: &str) -> Result<String, NameError> {
        let made = on_deep_stack(|| {
            let mut templates = Templates::new(self.profile.name_functions());
            templates
                .parse(TEMPLATE, template.as_bytes())
                .map_err(|error| NameError(error.to_string()))?;
            let mut executor = Executor::new(&templates, self.limits, Arc::clone(&self.answers))
                .cancelled_by(Arc::clone(&self.cancelled));
            let made = executor.execute_as_go(TEMPLATE, Value::Nil);
            executor.dismantle();
            made.map_err(|error| NameError(error.to_string()))
        });
        let name = made.map_err(|error| NameError(error.to_string()))??;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }
}

/// Why a name is not allowed, in Helm's words.
pub(crate) fn refusal(name: &str) -> String {
    if name.is_empty() {
        return format!("release name {name:?}: no name provided");
    }
    format!(
        "release name {name:?}: invalid release name, must match regex {PATTERN} and the length must not be longer than {MAX_LENGTH}"
    )
}

pub(crate) fn is_allowed(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(is_inside)
    };
    name.len() <= MAX_LENGTH && name.split('.').all(is_label)
}
