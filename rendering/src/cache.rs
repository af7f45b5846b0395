//! Past renderings, as many as fit into a number of bytes; the ones unused for longest go first.
//!
//! They are kept as text. As values, the small maps that objects are made of take five times as much, and whoever needs a rendering again is about
//! to send it: reading it costs less than that.

use std::collections::HashMap;
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::answers::{Asked, Lookup, Questions};
use crate::{RenderRequest, Rendered, RenderedObject, digest};
use crds::policy::HelmProfile;

/// Everything that a rendering depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    chart: String,
    values_digest: String,
    release_name: String,
    namespace: String,
    kubernetes_version: Option<String>,
    api_versions: Vec<String>,
    include_crds: bool,
    profile: HelmProfile,
    answers: Answered,
}

/// Who answered the templates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Answered {
    /// Nobody is there who could: what is random is an error, and nothing is found in any cluster.
    Nobody,
    /// Nobody had to.
    Unasked,
    /// Answers with this digest.
    By(String),
}

/// The keys that the rendering of a request may be found by.
pub(crate) struct Keys {
    /// Without answers, where templates ask nothing; or where there are none.
    base: Key,
    /// With those of the request.
    answered: Option<Key>,
}

impl Keys {
    pub(crate) fn of(request: &RenderRequest<'_>) -> Self {
        let base = Key::of(request);
        let answered = request.answers.map(|answers| base.answered(answers.digest()));
        Self { base, answered }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        iter::once(&self.base).chain(&self.answered)
    }

    /// The key of what was rendered: that of all clusters if it asked nothing, else that of the answers as they are once what is new is kept.
    pub(crate) fn of_rendered(self, request: &RenderRequest<'_>, questions: &Questions) -> Key {
        match (request.answers, self.answered) {
            _ if questions.is_none() => self.base,
            (Some(answers), _) if !questions.new.is_empty() => self.base.answered(answers.digest_after(questions)),
            (_, Some(answered)) => answered,
            (_, None) => self.base,
        }
    }
}

impl Key {
    fn answered(&self, digest: String) -> Self {
        Self {
            answers: Answered::By(digest),
            ..self.clone()
        }
    }

    fn of(request: &RenderRequest<'_>) -> Self {
        let RenderRequest {
            identity,
            chart: _,
            release_name,
            namespace,
            kubernetes_version,
            api_versions,
            include_crds,
            profile,
            values,
            answers,
        } = *request;
        Self {
            chart: identity.to_owned(),
            values_digest: digest::of_json(values),
            release_name: release_name.to_owned(),
            namespace: namespace.to_owned(),
            kubernetes_version: kubernetes_version.map(str::to_owned),
            api_versions: api_versions.to_vec(),
            include_crds,
            profile,
            answers: match answers {
                None => Answered::Nobody,
                Some(_) => Answered::Unasked,
            },
        }
    }
}

impl Key {
    /// About how many bytes it takes in memory.
    fn bytes(&self) -> usize {
        let Self {
            chart,
            values_digest,
            release_name,
            namespace,
            kubernetes_version,
            api_versions,
            include_crds: _,
            profile: _,
            answers,
        } = self;
        let answers = match answers {
            Answered::Nobody | Answered::Unasked => None,
            Answered::By(digest) => Some(digest),
        };
        let texts = [chart, values_digest, release_name, namespace];
        let texts = texts
            .into_iter()
            .chain(kubernetes_version)
            .chain(api_versions)
            .chain(answers);
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
    asked: Box<[Asked]>,
    lookups: Box<[Lookup]>,
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
            questions,
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
            asked: questions.memo.as_slice().into(),
            lookups: questions.lookups.as_slice().into(),
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
            questions: Questions {
                memo: self.asked.to_vec(),
                new: Vec::new(),
                lookups: self.lookups.to_vec(),
            },
        })
    }

    /// About how many bytes it takes in memory.
    fn bytes(&self) -> usize {
        let of_object = |object: &KeptObject| object.json.len() + object.digest.len() + object.source.len();
        let objects: usize = self.objects.iter().map(|object| OVERHEAD + of_object(object)).sum();
        let warnings: usize = self.warnings.iter().map(|warning| OVERHEAD + warning.len()).sum();
        let of_asked = |asked: &Asked| asked.template.len() + asked.function.len() + asked.arguments.len();
        let asked: usize = self.asked.iter().map(|asked| 3 * OVERHEAD + of_asked(asked)).sum();
        let of_lookup =
            |lookup: &Lookup| lookup.api_version.len() + lookup.kind.len() + lookup.namespace.len() + lookup.name.len();
        let lookups: usize = self.lookups.iter().map(|lookup| 4 * OVERHEAD + of_lookup(lookup)).sum();
        objects + warnings + asked + lookups + OVERHEAD + self.digest.len()
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
    use crate::ChartBytes;

    fn key(chart: &str) -> Key {
        Key::of(&RenderRequest {
            identity: chart,
            chart: &|| Ok(ChartBytes::Archive(Vec::new())),
            release_name: "",
            namespace: "",
            kubernetes_version: None,
            api_versions: &[],
            include_crds: false,
            profile: HelmProfile::V3_19,
            values: &Value::Null,
            answers: None,
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
            questions: Questions::default(),
        }
    }

    fn asked(function: &str) -> Asked {
        Asked {
            template: "templates/quay.yaml".to_owned(),
            function: function.to_owned(),
            arguments: String::new(),
            occurrence: 0,
        }
    }

    fn lookup(name: &str) -> Lookup {
        Lookup {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: "kube-system".to_owned(),
            name: name.to_owned(),
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
            questions: Questions {
                memo: vec![asked("randAlpha")],
                new: Vec::new(),
                lookups: vec![lookup("ca")],
            },
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
    fn whatever_a_rendering_has_takes_room() {
        let long = "x".repeat(3000);
        let object = |text: &str, digest: &str, source: &str| Rendered {
            objects: vec![RenderedObject {
                value: json!(text),
                digest: digest.to_owned(),
                source: source.to_owned(),
            }],
            ..nothing()
        };
        let asking = |memo: Vec<Asked>, lookups: Vec<Lookup>| Rendered {
            questions: Questions {
                memo,
                new: Vec::new(),
                lookups,
            },
            ..nothing()
        };
        let digest = Rendered {
            digest: long.clone(),
            ..nothing()
        };
        for (what, too_long) in [
            ("an object", object(&long, "", "")),
            ("the digest of an object", object("", &long, "")),
            ("where an object comes from", object("", "", &long)),
            ("a question", asking(vec![asked(&long)], Vec::new())),
            ("a lookup", asking(Vec::new(), vec![lookup(&long)])),
            ("the digest", digest),
        ] {
            let cache = Cache::new(3000);
            cache.insert(key("a"), &too_long);
            assert!(cache.get(&key("a")).is_none(), "{what}");
        }
    }

    #[test]
    fn what_is_kept_twice_takes_the_room_of_one_rendering() {
        let cache = Cache::new(2000);
        for chart in ["a", "a", "b"] {
            cache.insert(key(chart), &rendered(1000));
        }
        let kept = ["a", "b"].map(|chart| cache.get(&key(chart)).is_some());
        assert_eq!(kept, [true, true]);
        assert_eq!(cache.lock().bytes, 2000);
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
