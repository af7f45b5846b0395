//! How an object of any kind is named: by group, kind, namespace and name. Decides nothing; where a kind is served is not known here.
//!
//! The version is no part of an object's identity: the same object is read and written under every version its group serves. So inventories,
//! observations and plans are keyed by [`ObjectKey`], and [`ObjectRef`] adds the version that a manifest asked for.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crds::object_name::is_addressable;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A kind without its version. The core group is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind in its own spelling (`ConfigMap`).
    pub kind: String,
}

impl GroupKind {
    /// Takes anything that turns into strings; checks nothing.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(out, &self.kind, " ./")?;
        if self.group.is_empty() {
            return Ok(());
        }
        // The group keeps its dots: the kind before it has none left.
        out.write_char('.')?;
        write_escaped(out, &self.group, " /")
    }
}

/// The identity of an object in one cluster.
///
/// Printed as `Kind.group namespace/name`, or `Kind.group name` for a cluster-scoped object, and serialised as that string, so that it
/// can be the key of a JSON map. Characters that no valid name contains and that would make the text ambiguous are percent-encoded, so
/// printing and parsing are inverse for every value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind in its own spelling.
    pub kind: String,
    /// Namespace, empty for a cluster-scoped object.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
}

impl ObjectKey {
    /// In the order in which keys sort. Checks nothing.
    pub fn new(
        group: impl Into<String>,
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Whether an object with this key can exist: no name or namespace that could not be part of an address does.
    pub fn is_addressable(&self) -> bool {
        is_addressable(&self.name) && (self.namespace.is_empty() || is_addressable(&self.namespace))
    }

    /// The kind without the object.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.as_str(), self.kind.as_str())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ", self.group_kind())?;
        if !self.namespace.is_empty() {
            write_escaped(out, &self.namespace, " /")?;
            out.write_char('/')?;
        }
        write_escaped(out, &self.name, " /")
    }
}

/// A text that is not the printed form of an [`ObjectKey`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseObjectKeyError {
    /// There is no blank between the kind and the name.
    #[error("unable to read object key {text:?}: expected `Kind.group namespace/name`")]
    SplitKindFromName {
        /// What was to be read.
        text: String,
    },
    /// A percent sign is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    #[error("unable to read object key {text:?}: bad percent-encoding in {part:?}")]
    DecodePart {
        /// What was to be read.
        text: String,
        /// The part that does not decode.
        part: String,
    },
}

impl FromStr for ObjectKey {
    type Err = ParseObjectKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (group_kind, path) = text
            .split_once(' ')
            .ok_or_else(|| ParseObjectKeyError::SplitKindFromName { text: text.to_owned() })?;
        let (kind, group) = group_kind.split_once('.').unwrap_or((group_kind, ""));
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let decode = |part: &str| {
            unescape(part).ok_or_else(|| ParseObjectKeyError::DecodePart {
                text: text.to_owned(),
                part: part.to_owned(),
            })
        };
        Ok(Self {
            group: decode(group)?,
            kind: decode(kind)?,
            namespace: decode(namespace)?,
            name: decode(name)?,
        })
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// An object and the version under which a manifest names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Version within the group (`v1beta1`).
    pub version: String,
    /// Which object.
    pub key: ObjectKey,
}

impl ObjectRef {
    /// As in a manifest: `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.key.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.key.group, self.version)
        }
    }
}

/// Writes one part of a key with `%` and the characters that separate parts percent-encoded.
fn write_escaped(out: &mut fmt::Formatter<'_>, part: &str, separators: &str) -> fmt::Result {
    for character in part.chars() {
        // The separators are ASCII, one byte each.
        if character == '%' || separators.contains(character) {
            write!(out, "%{:02X}", u32::from(character))?;
        } else {
            out.write_char(character)?;
        }
    }
    Ok(())
}

fn unescape(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut decoded = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2)?;
        decoded.extend(hex::decode(digits).ok()?);
        decoded.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_print_the_way_people_write_them() {
        let table = [
            (
                ObjectKey::new("", "ConfigMap", "stacks", "values"),
                "ConfigMap stacks/values",
            ),
            (
                ObjectKey::new("cluster.x-k8s.io", "ClusterClass", "stacks", "docker-harbor-1-34-v1"),
                "ClusterClass.cluster.x-k8s.io stacks/docker-harbor-1-34-v1",
            ),
            (ObjectKey::new("", "Namespace", "", "stacks"), "Namespace stacks"),
            (
                ObjectKey::new("rbac.authorization.k8s.io", "ClusterRole", "", "system:node"),
                "ClusterRole.rbac.authorization.k8s.io system:node",
            ),
            (
                ObjectKey::new("", "ConfigMap", "", "kube-root-ca.crt"),
                "ConfigMap kube-root-ca.crt",
            ),
            (
                ObjectKey::new("a/b", "Odd.Kind", "", "c/d e%"),
                "Odd%2EKind.a%2Fb c%2Fd%20e%25",
            ),
        ];
        for (key, text) in table {
            assert_eq!(key.to_string(), text);
            assert_eq!(text.parse(), Ok(key));
        }
    }

    #[test]
    fn texts_that_are_no_keys_are_refused() {
        for text in ["", "ConfigMap", "ConfigMap a%zz", "ConfigMap a%2", "ConfigMap a%ff"] {
            assert!(text.parse::<ObjectKey>().is_err(), "{text:?} was read");
        }
    }

    #[test]
    fn the_core_group_has_no_slash_in_its_api_version() {
        let core = ObjectRef {
            version: "v1".to_owned(),
            key: ObjectKey::new("", "Secret", "stacks", "token"),
        };
        let apps = ObjectRef {
            version: "v1".to_owned(),
            key: ObjectKey::new("apps", "Deployment", "stacks", "web"),
        };
        assert_eq!(
            (core.api_version().as_str(), apps.api_version().as_str()),
            ("v1", "apps/v1")
        );
    }

    proptest! {
        #[test]
        fn every_key_survives_printing_and_parsing(parts in proptest::array::uniform4(any::<String>())) {
            let [group, kind, namespace, name] = parts;
            let key = ObjectKey { group, kind, namespace, name };
            prop_assert_eq!(key.to_string().parse(), Ok(key.clone()));
            let json = serde_json::to_string(&std::collections::BTreeMap::from([(key.clone(), 1)])).expect("a key is a string");
            let back: std::collections::BTreeMap<ObjectKey, i32> = serde_json::from_str(&json).expect("the same map");
            prop_assert!(back.contains_key(&key));
        }

        #[test]
        fn parsing_any_text_ends_in_a_key_or_an_error(text in any::<String>()) {
            if let Ok(key) = text.parse::<ObjectKey>() {
                prop_assert_eq!(key.to_string().parse(), Ok(key));
            }
        }
    }
}
