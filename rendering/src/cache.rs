//! Past renderings, as many as fit into a number of bytes; the ones unused for longest go first.
//!
//! They are kept as text. As values, the small maps that objects are made of take five times as much, and whoever needs a rendering again is about
//! to send it: reading it costs less than that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{RenderRequest, Rendered, RenderedObject, digest};
use crds::policy::HelmProfile;

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

impl Key {
    /// About how many bytes it takes in memory.
    fn bytes(&self) -> usize {
        let Self {
            chart_digest,
            values_digest,
            release_name,
            namespace,
            kubernetes_version,
            api_versions,
            profile: _,
        } = self;
        let texts = [chart_digest, values_digest, release_name, namespace];
        let texts = texts.into_iter().chain(kubernetes_version).chain(api_versions);
        texts.map(|text| OVERHEAD + text.len()).sum()
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
    kept: Arc<Kept>,
    /// About how many it takes in memory, with its key.
    bytes: usize,
    last_use: u64,
}

/// A rendering as text.
struct Kept {
    objects: Vec<KeptObject>,
    warnings: Vec<Box<str>>,
    digest: Box<str>,
}

struct KeptObject {
    json: Box<str>,
    digest: Box<str>,
    source: Box<str>,
}

impl Kept {
    fn of(rendered: &Rendered) -> Self {
        let Rendered {
            objects,
            warnings,
            digest,
        } = rendered;
        let keep = |object: &RenderedObject| KeptObject {
            json: object.value.to_string().into(),
            digest: object.digest.as_str().into(),
            source: object.source.as_str().into(),
        };
        Self {
            objects: objects.iter().map(keep).collect(),
            warnings: warnings.iter().map(|warning| warning.as_str().into()).collect(),
            digest: digest.as_str().into(),
        }
    }

    /// What was kept. Objects that are nested deeper than JSON is read are [refused](crate::ObjectError::TooDeep), so there is always something.
    fn read(&self) -> Option<Rendered> {
        let read = |object: &KeptObject| {
            Some(RenderedObject {
                value: serde_json::from_str(&object.json).ok()?,
                digest: object.digest.to_string(),
                source: object.source.to_string(),
            })
        };
        Some(Rendered {
            objects: self.objects.iter().map(read).collect::<Option<_>>()?,
            warnings: self.warnings.iter().map(ToString::to_string).collect(),
            digest: self.digest.to_string(),
        })
    }

    /// About how many bytes it takes in memory.
    fn bytes(&self) -> usize {
        let of_object = |object: &KeptObject| object.json.len() + object.digest.len() + object.source.len();
        let objects: usize = self.objects.iter().map(|object| OVERHEAD + of_object(object)).sum();
        let warnings: usize = self.warnings.iter().map(|warning| OVERHEAD + warning.len()).sum();
        objects + warnings + OVERHEAD + self.digest.len()
    }
}

/// What texts take beside their bytes.
const OVERHEAD: usize = 64;

impl Cache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Rendered> {
        self.kept(key)?.read()
    }

    fn kept(&self, key: &Key) -> Option<Arc<Kept>> {
        let state = &mut *self.lock();
        let entry = state.entries.get_mut(key)?;
        state.uses += 1;
        entry.last_use = state.uses;
        Some(Arc::clone(&entry.kept))
    }

    /// Keeps a rendering, unless it alone is more than the limit.
    pub(crate) fn insert(&self, key: Key, rendered: &Rendered) {
        if self.limit == 0 {
            return;
        }
        let kept = Arc::new(Kept::of(rendered));
        let bytes = key.bytes() + kept.bytes();
        if bytes > self.limit {
            return;
        }
        let state = &mut *self.lock();
        state.uses += 1;
        let entry = Entry {
            kept,
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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

    /// A rendering that takes so many bytes in the cache, with its key.
    fn rendered(bytes: usize) -> Rendered {
        let least = Kept::of(&nothing()).bytes() + key("a").bytes();
        Rendered {
            warnings: vec!["x".repeat(bytes - least - OVERHEAD)],
            ..nothing()
        }
    }

    /// What a chart without objects is rendered to.
    fn nothing() -> Rendered {
        Rendered {
            objects: Vec::new(),
            warnings: Vec::new(),
            digest: "sha256:nothing".to_owned(),
        }
    }

    #[test]
    fn what_is_found_again_is_what_was_kept_to_the_last_digit() {
        let cache = Cache::new(4096);
        let object = json!({ "text": "a\u{0}\u{1f980}\"", "numbers": [0.1, 1.0e-7, 122.416_294_033_786_58, -1, u64::MAX, 0.0], "none": null });
        let kept = Rendered {
            objects: vec![RenderedObject {
                digest: digest::of_json(&object),
                value: object,
                source: "ferry/templates/quay.yaml".to_owned(),
            }],
            warnings: vec!["a warning".to_owned()],
            digest: "sha256:all".to_owned(),
        };
        cache.insert(key("a"), &kept);
        let found = cache.get(&key("a")).expect("it was kept");
        assert_eq!(found, kept);
        assert_eq!(digest::of_json(&found.objects[0].value), found.objects[0].digest);
    }

    #[test]
    fn deepest_object_that_is_rendered_is_found_again() {
        let levels = (1..crate::objects::MAX_DEPTH).fold(json!("leaf"), |inner, _| json!([inner]));
        let object = json!({ "levels": levels });
        let kept = Rendered {
            objects: vec![RenderedObject {
                digest: digest::of_json(&object),
                value: object,
                source: String::new(),
            }],
            ..nothing()
        };
        let cache = Cache::new(4096);
        cache.insert(key("a"), &kept);
        assert_eq!(cache.get(&key("a")), Some(kept));
    }

    #[test]
    fn what_was_unused_for_longest_goes_first() {
        let cache = Cache::new(3000);
        cache.insert(key("a"), &rendered(1000));
        cache.insert(key("b"), &rendered(1000));
        cache.insert(key("c"), &rendered(1000));
        assert!(cache.get(&key("a")).is_some());
        cache.insert(key("d"), &rendered(1500));
        let kept = ["a", "b", "c", "d"].map(|chart| cache.get(&key(chart)).is_some());
        assert_eq!(kept, [true, false, false, true]);
        assert_eq!(cache.lock().bytes, 2500);
    }

    #[test]
    fn a_rendering_larger_than_the_cache_drops_nothing() {
        let cache = Cache::new(3000);
        cache.insert(key("a"), &rendered(1000));
        cache.insert(key("b"), &rendered(3001));
        assert!(cache.get(&key("a")).is_some());
        assert!(cache.get(&key("b")).is_none());
    }

    #[test]
    fn charts_without_objects_fill_the_cache_too() {
        let cache = Cache::new(3000);
        let names: Vec<String> = (0..1000).map(|number| format!("chart {number}")).collect();
        for name in &names {
            cache.insert(key(name), &nothing());
        }
        let kept = names.iter().filter(|name| cache.get(&key(name)).is_some()).count();
        assert!((1..20).contains(&kept), "{kept} kept");
        let longest = "n".repeat(3000);
        cache.insert(key(&longest), &nothing());
        assert!(cache.get(&key(&longest)).is_none(), "a key counts too");
    }
}
