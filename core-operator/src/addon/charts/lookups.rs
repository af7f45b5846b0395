//! What charts look up in the workload cluster. What was found goes into what is rendered, and into its digest, and is told nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::core::GroupVersionKind;
use operator_kit::discovery::DiscoveryError;
use operator_kit::failure::words_of;
use operator_kit::object::{ObjectKey, json_of};
use planning::digest::digest_of_everything;
use rendering::answers::Lookup;
use serde_json::{Map, Value};

use super::super::allowance::{Allowance, Limits, Spent};
use super::hidden::Hidden;
use super::values::Changes;
use crate::objects::Place;

/// How long what was found is believed. Whoever looks at the add-ons after that looks for it again.
const BELIEVED: SignedDuration = SignedDuration::from_secs(60);

/// What one chart may find. Of it is kept for each cluster what takes 19 MiB at the worst; a megabyte of the densest honest objects has 70,000 parts.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    parts: 100_000,
    time: Duration::from_mins(1),
};

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
    /// The same, in memory or time.
    #[error("the chart looks up {spent}: look up less")]
    TooMuch {
        /// Of what.
        spent: Spent,
    },
}

impl LookupError {
    /// Whether trying again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Discover { .. } | Self::Read { .. } => true,
            // Another time the cluster may have more of it.
            Self::TooMuch { spent } => matches!(spent, Spent::Time { .. }),
            Self::LongList { .. } => false,
        }
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
        let mut found = BTreeMap::new();
        look_up_all(place, self.found.keys(), &mut found).await?;
        self.set(found, now);
        Ok(())
    }

    /// Looks for what a chart needs besides.
    pub(crate) async fn add(&mut self, place: &Place, needed: &[Lookup], now: Timestamp) -> Result<(), LookupError> {
        let mut found = self.found.clone();
        look_up_all(place, needed, &mut found).await?;
        let at = self.at.unwrap_or(now);
        self.set(found, at);
        Ok(())
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

    fn set(&mut self, found: BTreeMap<Lookup, Value>, at: Timestamp) {
        self.found = found;
        self.changed();
        self.at = Some(at);
    }

    fn changed(&mut self) {
        let secrets = self.found.iter().filter(|(lookup, _)| lookup.kind == "Secret");
        self.hidden = Hidden::of_secrets(secrets.map(|(_, object)| object));
        self.digest = None;
    }
}

/// Looks for these besides what was found. Nothing is asked for any more once all of it is too much.
async fn look_up_all<'l>(
    place: &Place,
    lookups: impl IntoIterator<Item = &'l Lookup>,
    found: &mut BTreeMap<Lookup, Value>,
) -> Result<(), LookupError> {
    let spent = |spent| LookupError::TooMuch { spent };
    let mut allowance = Allowance::new(LIMITS);
    for object in found.values() {
        allowance.take(object).map_err(spent)?;
    }
    for lookup in lookups {
        let object = allowance.wait(look_up(place, lookup)).await.map_err(spent)??;
        allowance.take(&object).map_err(spent)?;
        found.insert(lookup.clone(), object);
    }
    Ok(())
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
        let mut list = Map::new();
        list.insert("apiVersion".to_owned(), lookup.api_version.as_str().into());
        list.insert("kind".to_owned(), format!("{}List", lookup.kind).into());
        list.insert("items".to_owned(), items.into());
        return Ok(list.into());
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
    json_of(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn lookups() -> Lookups {
        let lookup = Lookup {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: "kube-system".to_owned(),
            name: "login".to_owned(),
        };
        let mut lookups = Lookups::default();
        lookups.set(BTreeMap::from([(lookup, Value::Null)]), at(0));
        lookups
    }

    #[test]
    fn what_makes_other_objects_of_its_chart_all_the_time_is_not_looked_for_again_for_an_hour() {
        let mut lookups = lookups();
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
        let mut lookups = lookups();
        let before = lookups.digest();
        lookups.keep(&[]);
        assert_ne!(lookups.digest(), before);
        assert!(!lookups.is_due(at(60)), "nothing is left to look for");
    }
}
