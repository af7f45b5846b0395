//! Objects as deep as anybody here looks into them. The API server takes 10,000 levels of lists and maps and clients read 127, so that one object could
//! keep all others of a page from being read: whoever may write one would end the watch of its kind.
//!
//! Who wants nothing but metadata gets what decisions are made of, without who wrote which field; all else is stepped over, and takes no memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Levels of lists and maps that are read of an object. With those of a list or an event around it they are fewer than what a client reads.
const LEVELS: usize = 120;

/// An object of which nothing was read that lies deeper than that.
#[derive(Clone, Debug)]
pub struct Shallow<K> {
    object: K,
    /// Something lies deeper; where it was, there is null.
    pub is_cut: bool,
}

impl<K> Deref for Shallow<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Shallow<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_cut = Cell::new(false);
        let levels = Levels {
            left: LEVELS,
            wanted: if K::metadata_api() {
                Wanted::Metadata
            } else {
                Wanted::All
            },
            is_cut: &is_cut,
        };
        let value = levels.deserialize(deserializer)?;
        Ok(Self {
            object: serde_json::from_value(value).map_err(Error::custom)?,
            is_cut: is_cut.get(),
        })
    }
}

impl<K: Resource> Resource for Shallow<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}

/// What of a map is read.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    /// Of an object what it is, and its metadata.
    Metadata,
    /// Of metadata what is known of it, apart from its managedFields.
    Facts,
}

impl Wanted {
    /// What is read of this field; `None` when it is stepped over.
    fn of(self, field: &str) -> Option<Self> {
        match (self, field) {
            (Self::All, _) | (Self::Metadata, "apiVersion" | "kind") => Some(Self::All),
            (Self::Metadata, "metadata") => Some(Self::Facts),
            (Self::Metadata, _) => None,
            (Self::Facts, _) => FACTS.contains(&field).then_some(Self::All),
        }
    }
}

/// All that [`ObjectMeta`] has besides `managedFields`, and `selfLink`, which no API server fills any more.
const FACTS: [&str; 13] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// Reads a value with at most so many levels of lists and maps. What is stepped over has no bound.
#[derive(Clone, Copy)]
struct Levels<'cut> {
    left: usize,
    wanted: Wanted,
    is_cut: &'cut Cell<bool>,
}

impl Levels<'_> {
    /// Goes down a level, of which all is wanted; `None` where there is none left.
    fn down(self) -> Option<Self> {
        let left = self.left.checked_sub(1);
        if left.is_none() {
            self.is_cut.set(true);
        }
        let wanted = Wanted::All;
        left.map(|left| Self { left, wanted, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Levels<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels<'_> {
    type Value = Value;

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let Some(below) = self.down() else {
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        };
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(below)? {
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let Some(below) = self.down() else {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        };
        let mut fields = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            match self.wanted.of(&key) {
                Some(wanted) => drop(fields.insert(key, entries.next_value_seed(Self { wanted, ..below })?)),
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
    use kube::api::{DynamicObject, ObjectList};
    use kube::core::{PartialObjectMeta, WatchEvent};
    use serde_json::json;

    use super::*;

    /// JSON with so many lists in each other.
    fn lists(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    fn object(levels: usize) -> String {
        let managed = format!("[{{\"manager\":\"kubectl\",\"fieldsV1\":{}}}]", lists(levels));
        let object = json!({
            "apiVersion": "example.org/v1", "kind": "Lathe", "metadata": { "name": "a", "managedFields": "MANAGED" },
            "spec": { "number": -1.5, "truth": true, "nothing": null, "deep": "DEEP" },
        });
        let text = object.to_string().replace("\"MANAGED\"", &managed);
        text.replace("\"DEEP\"", &lists(levels))
    }

    #[test]
    fn what_is_as_deep_as_anybody_reads_is_read_as_it_is() {
        let text = object(LEVELS - 5);
        let read: Shallow<DynamicObject> = serde_json::from_str(&text).expect("an object");
        let whole: DynamicObject = serde_json::from_str(&text).expect("an object");
        assert_eq!(*read, whole);
        assert!(!read.is_cut);
    }

    #[test]
    fn who_wants_metadata_gets_all_of_it_but_who_wrote_which_field() {
        let mut metadata = serde_json::to_value(ObjectMeta {
            deletion_grace_period_seconds: Some(1),
            deletion_timestamp: Some(Time("2026-01-01T00:00:00Z".parse().expect("a time"))),
            creation_timestamp: Some(Time("2026-01-01T00:00:00Z".parse().expect("a time"))),
            annotations: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])),
            labels: Some(BTreeMap::from([("c".to_owned(), "d".to_owned())])),
            finalizers: Some(vec!["e.io/f".to_owned()]),
            owner_references: Some(vec![OwnerReference::default()]),
            generate_name: Some("g".to_owned()),
            generation: Some(2),
            name: Some("h".to_owned()),
            namespace: Some("i".to_owned()),
            resource_version: Some("3".to_owned()),
            uid: Some("k".to_owned()),
            managed_fields: None,
            self_link: None,
        })
        .expect("JSON");
        let expected: ObjectMeta = serde_json::from_value(metadata.clone()).expect("metadata");
        // Nothing of these could be read into what they are to be.
        for other in ["managedFields", "selfLink", "bomb"] {
            metadata[other] = json!([[7]]);
        }
        let object = json!({ "apiVersion": "example.org/v1", "kind": "Lathe", "metadata": metadata, "spec": [[8]] });
        let text = object.to_string();
        let read: Shallow<PartialObjectMeta<DynamicObject>> = serde_json::from_str(&text).expect("an object");
        assert_eq!(read.metadata, expected);
        assert_eq!(read.types.as_ref().map(|types| &*types.kind), Some("Lathe"));
        assert!(serde_json::from_str::<Shallow<DynamicObject>>(&text).is_err());
    }

    #[test]
    fn of_what_is_deeper_the_rest_is_read_also_in_lists_and_events() {
        let text = object(9_000);
        let list = format!(
            "{{\"metadata\":{{\"resourceVersion\":\"5\"}},\"items\":[{text},{}]}}",
            object(1)
        );
        let list: ObjectList<Shallow<DynamicObject>> = serde_json::from_str(&list).expect("a list");
        let event = format!("{{\"type\":\"ADDED\",\"object\":{text}}}");
        let Ok(WatchEvent::<Shallow<DynamicObject>>::Added(told)) = serde_json::from_str(&event) else {
            panic!("an event cannot be read");
        };
        assert!(!list.items[1].is_cut);
        for read in [&list.items[0], &told] {
            assert!(read.is_cut);
            assert_eq!(read.metadata.name.as_deref(), Some("a"));
            let manager = read
                .metadata
                .managed_fields
                .as_ref()
                .map(|entries| entries[0].manager.clone());
            assert_eq!(manager, Some(Some("kubectl".to_owned())));
            assert_eq!(read.data["spec"]["number"], -1.5);
            assert!(read.data["spec"]["deep"][0][0][0].is_array());
        }
    }
}
