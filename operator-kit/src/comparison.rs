//! Tells whether two forms of an object mean the same, and where they differ. Pure; the client is elsewhere.
//!
//! [`compare`] is exact: both sides come from the API server (the live object, and what a dry-run apply answered).
//! [`drift`] is a cheap first look: what was rendered against what is live, without the server's defaulting.

use serde_json::{Map, Value};

/// Most pointers that a [`Difference`] lists; the rest is only counted.
pub const LISTED_POINTERS: usize = 20;

/// Where two objects differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// JSON pointers (RFC 6901), sorted, at most [`LISTED_POINTERS`].
    pub pointers: Vec<String>,
    /// How many fields differ in all.
    pub count: usize,
}

impl Difference {
    /// Nothing differs.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, path: &Path<'_>) {
        self.count += 1;
        if self.pointers.len() < LISTED_POINTERS {
            self.pointers.push(path.pointer());
        }
    }

    fn sorted(mut self) -> Self {
        self.pointers.sort_unstable();
        self
    }
}

/// Fields of `metadata` that the API server keeps for itself.
const SERVER_METADATA: [&str; 7] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "deletionTimestamp",
];

/// The annotation in which the webhooks of Cluster API keep what the other version of an object cannot say, its status with it (`DataAnnotation` of
/// `util/conversion`). They write it anew into every answer, so that it is another one whenever the status is.
const OF_CONVERSION: &str = "cluster.x-k8s.io/conversion-data";

/// What applying would change: `live` against the answer of a dry-run apply.
///
/// `status`, the metadata that the API server keeps for itself and what conversion between versions notes do not count.
pub fn compare(dry_run: &Value, live: &Value) -> Difference {
    let mut difference = Difference::default();
    walk(&Path::Root, dry_run, live, Mode::Exact, &mut difference);
    difference.sorted()
}

/// What of `intent` is not so in `live`: fields that are missing or have another value. More fields in `live` are fine.
///
/// May report a difference where the API server would find none (`1000m` and `1`, an item moved within a list);
/// never misses a field of `intent` that differs. Only a dry-run apply is sure.
pub fn drift(intent: &Value, live: &Value) -> Difference {
    let mut difference = Difference::default();
    walk(&Path::Root, intent, live, Mode::Subset, &mut difference);
    difference.sorted()
}

/// Equal up to what the API server does not keep: null is absent, and `1.0` is `1`.
pub fn same_meaning(left: &Value, right: &Value) -> bool {
    let mut difference = Difference::default();
    // Below a key, so that the rules for an object's root do not apply.
    walk(
        &Path::Key(&Path::Root, "value"),
        left,
        right,
        Mode::Exact,
        &mut difference,
    );
    difference.is_empty()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Exact,
    Subset,
}

/// A path that costs nothing until somebody asks for its text.
enum Path<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl Path<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => {
                format!("{}/{}", parent.pointer(), key.replace('~', "~0").replace('/', "~1"))
            }
            Self::Index(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }

    /// Fields whose value is the server's, a conversion's or a controller's business, never the author's.
    fn is_ignored(&self) -> bool {
        match self {
            Self::Key(Path::Root, key) => *key == "status",
            Self::Key(Path::Key(Path::Root, "metadata"), key) => SERVER_METADATA.contains(key),
            Self::Key(Path::Key(Path::Key(Path::Root, "metadata"), "annotations"), key) => *key == OF_CONVERSION,
            _ => false,
        }
    }
}

fn walk(path: &Path<'_>, wanted: &Value, found: &Value, mode: Mode, difference: &mut Difference) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => walk_object(path, wanted, found, mode, difference),
        (Value::Array(wanted), Value::Array(found)) => walk_array(path, wanted, found, mode, difference),
        (Value::Null, _) if mode == Mode::Subset => {}
        (wanted, found) if same_scalar(wanted, found) => {}
        _ => difference.add(path),
    }
}

fn walk_object(
    path: &Path<'_>,
    wanted: &Map<String, Value>,
    found: &Map<String, Value>,
    mode: Mode,
    difference: &mut Difference,
) {
    for (key, value) in wanted {
        let path = Path::Key(path, key);
        if !path.is_ignored() {
            walk(&path, value, found.get(key).unwrap_or(&Value::Null), mode, difference);
        }
    }
    if mode == Mode::Subset {
        return;
    }
    for (key, value) in found {
        let path = Path::Key(path, key);
        if !wanted.contains_key(key) && !value.is_null() && !path.is_ignored() {
            difference.add(&path);
        }
    }
}

fn walk_array(path: &Path<'_>, wanted: &[Value], found: &[Value], mode: Mode, difference: &mut Difference) {
    if wanted.len() == found.len() {
        for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
            walk(&Path::Index(path, index), wanted, found, mode, difference);
        }
    } else if mode == Mode::Subset && wanted.len() < found.len() && wanted.iter().all(|item| name_of(item).is_some()) {
        // Others may add items to a list that is keyed by name (containers, conditions, ports).
        for (index, item) in wanted.iter().enumerate() {
            let twin = found
                .iter()
                .find(|candidate| name_of(candidate) == name_of(item))
                .unwrap_or(&Value::Null);
            walk(&Path::Index(path, index), item, twin, mode, difference);
        }
    } else {
        difference.add(path);
    }
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

fn same_scalar(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.as_f64() == right.as_f64() && (left.is_f64() || right.is_f64()))
        }
        (left, right) => left == right,
    }
}

#[cfg(test)]
mod tests;
