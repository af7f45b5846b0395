//! Past renderings, as many as fit into a number of bytes; the ones unused for longest go first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::policy::HelmProfile;
use serde_json::Value;

use crate::{RenderRequest, Rendered, digest};

/// Everything that a rendering depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    chart_digest: String,
    values_digest: String,
    release_name: String,
    namespace: String,
    kubernetes_version: Option<String>,
    api_versions: Vec<String>,
    profile: HelmProfile,
}

impl Key {
    pub(crate) fn of(request: &RenderRequest<'_>) -> Self {
        let RenderRequest {
            chart_digest,
            chart: _,
            release_name,
            namespace,
            kubernetes_version,
            api_versions,
            profile,
            values,
        } = *request;
        Self {
            chart_digest: chart_digest.to_owned(),
            values_digest: digest::of_json(values),
            release_name: release_name.to_owned(),
            namespace: namespace.to_owned(),
            kubernetes_version: kubernetes_version.map(str::to_owned),
            api_versions: api_versions.to_vec(),
            profile,
        }
    }
}

/// The cache, shared by threads.
pub(crate) struct Cache {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    /// Counts uses; tells which entry was used last.
    uses: u64,
}

struct Entry {
    rendered: Arc<Rendered>,
    bytes: usize,
    last_use: u64,
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Rendered>> {
        let state = &mut *self.lock();
        let entry = state.entries.get_mut(key)?;
        state.uses += 1;
        entry.last_use = state.uses;
        Some(Arc::clone(&entry.rendered))
    }

    /// Keeps a rendering, unless it alone is more than the limit.
    pub(crate) fn insert(&self, key: Key, rendered: &Arc<Rendered>) {
        let bytes = size(rendered);
        if bytes > self.limit {
            return;
        }
        let state = &mut *self.lock();
        state.uses += 1;
        let entry = Entry {
            rendered: Arc::clone(rendered),
            bytes,
            last_use: state.uses,
        };
        state.bytes += bytes;
        if let Some(replaced) = state.entries.insert(key, entry) {
            state.bytes -= replaced.bytes;
        }
        while state.bytes > self.limit {
            state.drop_oldest();
        }
    }

    /// A thread that panicked cannot have left the map half changed, so its poison means nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drop_oldest(&mut self) {
        let oldest = self
            .entries
            .iter()
            .min_by_key(|(_, entry)| entry.last_use)
            .map(|(key, _)| key.clone());
        if let Some(entry) = oldest.and_then(|key| self.entries.remove(&key)) {
            self.bytes -= entry.bytes;
        }
    }
}

/// What a value takes beside its text: its own size, and its place in a map's node.
const OVERHEAD: usize = 64;

/// About how many bytes a rendering takes in memory.
fn size(rendered: &Rendered) -> usize {
    let objects = rendered.objects.iter();
    let objects: usize = objects
        .map(|object| OVERHEAD + object.source.len() + object.digest.len() + value_size(&object.value))
        .sum();
    objects
        + rendered
            .warnings
            .iter()
            .map(|warning| OVERHEAD + warning.len())
            .sum::<usize>()
}

fn value_size(value: &Value) -> usize {
    OVERHEAD
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_size).sum(),
            Value::Object(entries) => entries
                .iter()
                .map(|(key, value)| OVERHEAD + key.len() + value_size(value))
                .sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(chart: &str) -> Key {
        Key::of(&RenderRequest {
            chart_digest: chart,
            chart: &|| Ok(Vec::new()),
            release_name: "",
            namespace: "",
            kubernetes_version: None,
            api_versions: &[],
            profile: HelmProfile::V3_19,
            values: &Value::Null,
        })
    }

    fn rendered(bytes: usize) -> Arc<Rendered> {
        Arc::new(Rendered {
            objects: Vec::new(),
            warnings: vec!["x".repeat(bytes - OVERHEAD)],
            digest: String::new(),
        })
    }

    #[test]
    fn what_was_unused_for_longest_goes_first() {
        let cache = Cache::new(300);
        cache.insert(key("a"), &rendered(100));
        cache.insert(key("b"), &rendered(100));
        cache.insert(key("c"), &rendered(100));
        assert!(cache.get(&key("a")).is_some());
        cache.insert(key("d"), &rendered(150));
        let kept = ["a", "b", "c", "d"].map(|chart| cache.get(&key(chart)).is_some());
        assert_eq!(kept, [true, false, false, true]);
        assert_eq!(cache.lock().bytes, 250);
    }

    #[test]
    fn a_rendering_larger_than_the_cache_drops_nothing() {
        let cache = Cache::new(300);
        cache.insert(key("a"), &rendered(100));
        cache.insert(key("b"), &rendered(301));
        assert!(cache.get(&key("a")).is_some());
        assert!(cache.get(&key("b")).is_none());
    }
}
