//! `createOpts`, as users of cluster stacks write them: what of them is good, and what an image is sent, compared and amended by. Pure.

use std::collections::{BTreeMap, BTreeSet};

use provider_plugin::{Attempt, CloudError, Drift, ErrorClass, ImageId, ImageSpec};
use serde_json::{Map, Value};

use crate::{glance::Change, identity};

/// Longest name and longest key or value of a property, in characters.
const LONGEST: usize = 255;
/// Most tags of an image, and most properties; some of both are ours.
const MOST: usize = 128;
/// What the service keeps for itself, and what we do.
const RESERVED: [&str; 2] = ["os_glance_", "cs_"];
/// The visibilities there are.
const VISIBILITIES: [&str; 4] = ["private", "shared", "community", "public"];

/// What a user wants of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its name.
    pub name: String,
    /// What the bytes are.
    pub disk_format: String,
    /// What they are wrapped in.
    pub container_format: String,
    /// Who sees it; none: as the cloud likes.
    pub visibility: Option<String>,
    /// Whether lists leave it out.
    pub hidden: bool,
    /// Whether it cannot be deleted; none: nobody minds.
    pub protected: Option<bool>,
    /// GB of disk that a machine needs.
    pub min_disk: Option<u64>,
    /// MB of memory that a machine needs.
    pub min_ram: Option<u64>,
    /// Tags, with ours.
    pub tags: BTreeSet<String>,
    /// Whatever else.
    pub properties: BTreeMap<String, String>,
}

fn invalid(words: impl AsRef<str>) -> CloudError {
    CloudError::new(ErrorClass::Invalid, "read the options of the image", words)
}

impl Options {
    /// What is wanted, if it can become an image.
    pub fn read(image: &ImageSpec) -> Result<Self, CloudError> {
        let fields = Fields(&image.options);
        fields.known()?;
        let promised = image.format.as_ref().map(|format| format.as_str().to_owned());
        let disk_format = fields.text("disk_format")?.or(promised);
        let options = Self {
            name: image.subject.name.clone(),
            disk_format: disk_format
                .ok_or_else(|| invalid("createOpts.disk_format is missing; it may be qcow2 or raw"))?,
            container_format: fields.text("container_format")?.unwrap_or_else(|| "bare".to_owned()),
            visibility: fields.text("visibility")?,
            hidden: fields.flag("os_hidden")?.unwrap_or(false),
            protected: fields.flag("protected")?,
            min_disk: fields.number("min_disk")?,
            min_ram: fields.number("min_ram")?,
            tags: tags(&fields)?,
            properties: properties(&fields)?,
        };
        if options.name.is_empty() || options.name.chars().count() > LONGEST {
            return Err(invalid("createOpts.name has to have 1 to 255 characters"));
        }
        if options
            .visibility
            .as_deref()
            .is_some_and(|visibility| !VISIBILITIES.contains(&visibility))
        {
            return Err(invalid(format!(
                "createOpts.visibility has to be one of {}",
                VISIBILITIES.join(", ")
            )));
        }
        Ok(options)
    }

    /// What makes this image: hidden and without protection until it is verified.
    pub fn body(&self, image: &ImageSpec, attempt: Attempt, id: &ImageId, is_hidden: bool) -> Value {
        let mut body: Map<String, Value> = Map::new();
        let mut put = |key: &str, value: Value| {
            body.insert(key.to_owned(), value);
        };
        for (key, value) in &self.properties {
            put(key, value.clone().into());
        }
        for (key, value) in identity::marks(image, attempt) {
            put(key, value.into());
        }
        put("id", id.0.clone().into());
        put("name", self.name.clone().into());
        put("disk_format", self.disk_format.clone().into());
        put("container_format", self.container_format.clone().into());
        put("tags", self.tags.iter().cloned().collect());
        if is_hidden {
            put("os_hidden", true.into());
        }
        // Refused now where we may not, and not after gigabytes.
        if let Some(visibility) = &self.visibility {
            put("visibility", visibility.clone().into());
        }
        for (key, value) in [("min_disk", self.min_disk), ("min_ram", self.min_ram)] {
            if let Some(value) = value {
                put(key, value.into());
            }
        }
        Value::Object(body)
    }

    /// What of an image is not as wanted and can be amended, with the change that does it. What comes with showing an image is left out
    /// until it is shown.
    pub fn differences(&self, image: &Value) -> Vec<(Drift, Change)> {
        let mut differences = Vec::new();
        let mut compare = |field: &str, wanted: Value| {
            let found = &image[field];
            if *found != wanted {
                let drift = Drift {
                    field: field.to_owned(),
                    found: told(found),
                    wanted: told(&wanted),
                };
                differences.push((drift, Change::set(field, wanted)));
            }
        };
        compare("name", self.name.clone().into());
        for (field, wanted) in [("min_disk", self.min_disk), ("min_ram", self.min_ram)] {
            if let Some(wanted) = wanted {
                compare(field, wanted.into());
            }
        }
        if let Some(visibility) = &self.visibility {
            compare("visibility", visibility.clone().into());
        }
        for (key, value) in &self.properties {
            compare(key, value.clone().into());
        }
        if image[identity::VERIFIED].is_string() {
            if !image["os_hidden"].is_null() {
                compare("os_hidden", self.hidden.into());
            }
            if let Some(protected) = self.protected {
                compare("protected", protected.into());
            }
        }
        let found = image["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let found: BTreeSet<String> = found.map(str::to_owned).collect();
        if found != self.tags {
            let told = |tags: &BTreeSet<String>| tags.iter().cloned().collect::<Vec<_>>().join(", ");
            let drift = Drift {
                field: "tags".to_owned(),
                found: told(&found),
                wanted: told(&self.tags),
            };
            let wanted: Vec<String> = self.tags.iter().cloned().collect();
            differences.push((drift, Change::set("tags", wanted)));
        }
        differences.sort_by(|(one, _), (other, _)| one.cmp(other));
        differences
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The fields of `createOpts`.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    /// Refuses what nobody would look at.
    fn known(&self) -> Result<(), CloudError> {
        const KNOWN: [&str; 11] = [
            "name",
            "id",
            "visibility",
            "os_hidden",
            "tags",
            "container_format",
            "disk_format",
            "min_disk",
            "min_ram",
            "protected",
            "properties",
        ];
        match self.0.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            Some(key) => Err(invalid(format!(
                "createOpts.{key} is not known; write it under createOpts.properties"
            ))),
            None => Ok(()),
        }
    }

    fn of<T>(&self, field: &str, what: &str, read: impl FnOnce(&Value) -> Option<T>) -> Result<Option<T>, CloudError> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(value) {
                Some(read) => Ok(Some(read)),
                None => Err(invalid(format!("createOpts.{field} has to be {what}"))),
            },
        }
    }

    fn text(&self, field: &str) -> Result<Option<String>, CloudError> {
        let text = self.of(field, "a text", |value| Some(value.as_str()?.to_owned()))?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn flag(&self, field: &str) -> Result<Option<bool>, CloudError> {
        self.of(field, "true or false", Value::as_bool)
    }

    fn number(&self, field: &str) -> Result<Option<u64>, CloudError> {
        self.of(field, "a number that is not negative", Value::as_u64)
    }
}

fn tags(fields: &Fields<'_>) -> Result<BTreeSet<String>, CloudError> {
    let read = |value: &Value| {
        let tags = value.as_array()?.iter();
        tags.map(|tag| Some(tag.as_str()?.to_owned()))
            .collect::<Option<Vec<_>>>()
    };
    let wanted = fields.of("tags", "a list of texts", read)?.unwrap_or_default();
    let mut tags: BTreeSet<String> = wanted.into_iter().collect();
    tags.insert(identity::TAG.to_owned());
    if tags.len() > MOST {
        return Err(invalid(format!("createOpts.tags may have {} tags", MOST - 1)));
    }
    let is_bad = |tag: &&String| tag.is_empty() || tag.contains('/') || tag.chars().count() > LONGEST;
    match tags.iter().find(is_bad) {
        Some(_) => Err(invalid(
            "createOpts.tags has a tag that is empty, has more than 255 characters or has a slash",
        )),
        None => Ok(tags),
    }
}

fn properties(fields: &Fields<'_>) -> Result<BTreeMap<String, String>, CloudError> {
    let read = |value: &Value| value.as_object().cloned();
    let wanted = fields.of("properties", "a map of texts", read)?.unwrap_or_default();
    let mut properties = BTreeMap::new();
    for (key, value) in wanted {
        // Whatever it is, the service takes texts alone.
        let value = match value {
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            _ => return Err(invalid(format!("createOpts.properties.{key} has to be a text"))),
        };
        let is_field = FIELDS.contains(&key.as_str());
        if is_field || RESERVED.iter().any(|reserved| key.starts_with(reserved)) {
            return Err(invalid(format!(
                "createOpts.properties.{key} is no property of users; leave it out"
            )));
        }
        if key.is_empty() || key.chars().count() > LONGEST {
            return Err(invalid(
                "createOpts.properties has a key that is empty or has more than 255 characters",
            ));
        }
        properties.insert(key, value);
    }
    if properties.len() + identity::MARKS.len() > MOST {
        return Err(invalid(format!(
            "createOpts.properties may have {} properties",
            MOST - identity::MARKS.len()
        )));
    }
    Ok(properties)
}

/// What is said of an image elsewhere, or by the service alone.
const FIELDS: [&str; 25] = [
    "id",
    "name",
    "status",
    "owner",
    "visibility",
    "protected",
    "os_hidden",
    "min_disk",
    "min_ram",
    "tags",
    "disk_format",
    "container_format",
    "size",
    "virtual_size",
    "checksum",
    "os_hash_algo",
    "os_hash_value",
    "created_at",
    "updated_at",
    "self",
    "file",
    "schema",
    "direct_url",
    "locations",
    "stores",
];

#[cfg(test)]
mod tests;
