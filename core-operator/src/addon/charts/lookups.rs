//! What charts look up in the workload cluster. What was found goes into what is rendered, and into its digest, and is told nowhere else.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::core::GroupVersionKind;
use operator_kit::discovery::DiscoveryError;
use operator_kit::failure::words_of;
use operator_kit::object::ObjectKey;
use planning::digest::digest_of_everything;
use rendering::answers::Lookup;
use serde_json::{Value, json};

use super::hidden::Hidden;
use super::values::Changes;
use crate::objects::Place;

/// How long what was found is believed. Whoever looks at the add-ons after that looks for it again.
const BELIEVED: SignedDuration = SignedDuration::from_secs(60);

/// What one chart may find, in bytes of JSON.
const MAX_BYTES: usize = 1 << 20;

/// How many objects a list may have.
const MOST: u32 = 500;

/// Why something that a chart looks up is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    /// The kind could not be looked up.
    #[error("failed to look up the kind {kind} for a chart")]
    Discover {
        /// Which.
        kind: String,
        /// Why.
        #[source]
        source: DiscoveryError,
    },
    /// The API server of the cluster refused or did not answer.
    #[error("failed to look up {kind} for a chart: {words}")]
    Read {
        /// Which kind.
        kind: String,
        /// The API server's words.
        words: String,
    },
    /// The chart looks up too much.
    #[error("the chart looks up a list of {kind} with more than {MOST} objects: look up one by its name")]
    LongList {
        /// Which kind.
        kind: String,
    },
    /// The same, in bytes.
    #[error("the chart looks up more than {MAX_BYTES} bytes of objects: look up less")]
    TooLarge,
}

impl LookupError {
    /// Whether trying again may help.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Discover { .. } | Self::Read { .. })
    }
}

/// What one chart has looked up, and how it was found last.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    found: BTreeMap<Lookup, Value>,
    /// What the Secrets among it hold.
    hidden: Hidden,
    digest: Option<String>,
    /// When the oldest of it was found.
    at: Option<Timestamp>,
    /// How often what was found has made other objects of the chart.
    pub(crate) changes: Changes,
}

impl Lookups {
    pub(crate) fn found(&self) -> &BTreeMap<Lookup, Value> {
        &self.found
    }

    /// What nobody may read, whoever repeats it.
    pub(crate) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// Changes with what was found.
    pub(crate) fn digest(&mut self) -> String {
        let found = &self.found;
        let digest = || digest_of_everything(&found.iter().collect::<Vec<_>>());
        self.digest.get_or_insert_with(digest).clone()
    }

    /// Whether it is to be looked for again. Objects that change because of what was found, and what is found because of them, would never come to rest:
    /// from the third time on they stay for an hour.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let is_old = |at: Timestamp| {
            let age = now.duration_since(at);
            age.is_negative() || age >= BELIEVED
        };
        !self.found.is_empty() && self.at.is_none_or(is_old) && self.changes.restless_until(now).is_none()
    }

    /// Looks for all of it again. Where that fails, what was found is believed for as long again.
    pub(crate) async fn refresh(&mut self, place: &Place, now: Timestamp) -> Result<(), LookupError> {
        self.at = Some(now);
        let wanted: Vec<Lookup> = self.found.keys().cloned().collect();
        let mut found = BTreeMap::new();
        for lookup in wanted {
            let object = look_up(place, &lookup).await?;
            found.insert(lookup, object);
        }
        self.set(found, now)
    }

    /// Looks for what a chart needs besides.
    pub(crate) async fn add(&mut self, place: &Place, needed: &[Lookup], now: Timestamp) -> Result<(), LookupError> {
        let mut found = self.found.clone();
        for lookup in needed {
            let object = look_up(place, lookup).await?;
            found.insert(lookup.clone(), object);
        }
        let at = self.at.unwrap_or(now);
        self.set(found, at)
    }

    /// Forgets what was not asked for in the last rendering. What it is made of stays the same.
    pub(crate) fn keep(&mut self, asked: &[Lookup]) {
        let before = self.found.len();
        self.found.retain(|lookup, _| asked.contains(lookup));
        if self.found.len() < before {
            self.changed();
        }
        if self.found.is_empty() {
            self.at = None;
        }
    }

    fn set(&mut self, found: BTreeMap<Lookup, Value>, at: Timestamp) -> Result<(), LookupError> {
        let bytes: usize = found.values().map(|object| object.to_string().len()).sum();
        if bytes > MAX_BYTES {
            return Err(LookupError::TooLarge);
        }
        self.found = found;
        self.changed();
        self.at = Some(at);
        Ok(())
    }

    fn changed(&mut self) {
        let secrets = self.found.iter().filter(|(lookup, _)| lookup.kind == "Secret");
        self.hidden = Hidden::of_secrets(secrets.map(|(_, object)| object));
        self.digest = None;
    }
}

/// One object, or a list where it has no name; null where there is none, as where nobody serves the kind.
async fn look_up(place: &Place, lookup: &Lookup) -> Result<Value, LookupError> {
    let kind = || format!("{} {}", lookup.api_version, lookup.kind);
    let (group, version) = lookup.api_version.split_once('/').unwrap_or(("", &lookup.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &lookup.kind);
    let resolved = place.discovery.resolve(&gvk).await;
    let resolved = resolved.map_err(|source| LookupError::Discover { kind: kind(), source })?;
    let Some(resolved) = resolved.filter(|_| is_addressable(lookup, group)) else {
        return Ok(Value::Null);
    };
    let unread = |error: &kube::Error| LookupError::Read {
        kind: kind(),
        words: words_of(error),
    };
    let api = resolved.api_within::<kube::api::DynamicObject>(&place.client, &lookup.namespace);
    if lookup.name.is_empty() {
        let list = api.list(&ListParams::default().limit(MOST)).await;
        let list = list.map_err(|error| unread(&error))?;
        if list.metadata.continue_.is_some_and(|more| !more.is_empty()) {
            return Err(LookupError::LongList { kind: kind() });
        }
        let items: Vec<Value> = list.items.into_iter().map(without_managers).collect();
        return Ok(json!({ "apiVersion": lookup.api_version, "kind": format!("{}List", lookup.kind), "items": items }));
    }
    let found = api.get_opt(&lookup.name).await.map_err(|error| unread(&error))?;
    Ok(found.map_or(Value::Null, without_managers))
}

/// Whether there may be an object of such a name: what a template makes of values is no part of an address by itself.
fn is_addressable(lookup: &Lookup, group: &str) -> bool {
    let name = if lookup.name.is_empty() { "any" } else { &lookup.name };
    ObjectKey::new(group, lookup.kind.as_str(), lookup.namespace.as_str(), name).is_addressable()
}

/// Who wrote which field when is nothing that an object is made of, and changes all the time.
fn without_managers(mut object: kube::api::DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn lookups(object: Value) -> Result<Lookups, LookupError> {
        let lookup = Lookup {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: "kube-system".to_owned(),
            name: "login".to_owned(),
        };
        let mut lookups = Lookups::default();
        lookups.set(BTreeMap::from([(lookup, object)]), at(0))?;
        Ok(lookups)
    }

    #[test]
    fn what_makes_other_objects_of_its_chart_all_the_time_is_not_looked_for_again_for_an_hour() {
        let mut lookups = lookups(Value::Null).expect("it is small");
        assert_eq!([59, 60].map(|seconds| lookups.is_due(at(seconds))), [false, true]);
        for seconds in [60, 120, 180] {
            assert!(lookups.is_due(at(seconds)));
            lookups.changes.note(at(seconds));
        }
        assert_eq!([240, 3600].map(|seconds| lookups.is_due(at(seconds))), [false, false]);
        assert!(lookups.is_due(at(3660)));
    }

    #[test]
    fn what_was_not_asked_for_again_is_forgotten() {
        let mut lookups = lookups(Value::Null).expect("it is small");
        let before = lookups.digest();
        lookups.keep(&[]);
        assert_ne!(lookups.digest(), before);
        assert!(!lookups.is_due(at(60)), "nothing is left to look for");
    }

    #[test]
    fn more_than_a_chart_may_find_is_refused_for_good() {
        let refused = lookups(json!({ "data": "x".repeat(MAX_BYTES) })).expect_err("it is large");
        assert!(!refused.is_transient(), "{refused}");
        // What an object holds is told nobody.
        assert!(!refused.to_string().contains("xxx"), "{refused}");
    }
}
