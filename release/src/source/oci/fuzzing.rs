//! What must hold of everything that registries say.

#![expect(
    clippy::missing_panics_doc,
    reason = "to panic is how they say that something does not hold"
)]

use crds::names::ReleaseTag;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use super::{
    OciError, RemoteFile, Resolved,
    authorization::{LONGEST_LIFE, is_own, realm_of, token_in},
    challenge::{self, Challenge},
    digest_of_release,
    evidence::{Referrer, layers_in, referrers_in},
    manifest::{self, ARTIFACT_TYPES, CHART_CONFIG, CHART_CONTENT},
    registry::{MAX_CODE, code},
    tags::{self, MAX_TAG, Next},
};
use crate::{
    FileRef,
    files::is_file_name,
    fuzzing::{Outcome, refused},
    http::{ExposeSecret, Url},
    trust::{MAX_SIGNATURE, bundle::MAX_BUNDLE_BYTES},
};

const TAG: &str = "docker-harbor-1-34-v1";
const REPOSITORY: &str = "registry.example.com/kaas/stacks";

/// The manifest of a release.
pub fn manifest(input: &[u8]) -> Outcome {
    let (Ok(tag), Ok(repository)) = (TAG.parse(), REPOSITORY.parse()) else {
        return Outcome::Refused;
    };
    let artifact = match manifest::read(input, None) {
        Ok(artifact) => artifact,
        Err(source) => {
            assert_eq!(digest_of_release(&tag, input), None);
            let error = OciError::Artifact {
                repository,
                tag: TAG.to_owned(),
                source: Box::new(source),
            };
            return refused(&error, error.class(), error.reason());
        }
    };
    assert!(!artifact.files.is_empty());
    for file in &artifact.files {
        let digest = file.sha256.map(|digest| digest.to_string());
        assert_eq!(digest.as_ref(), Some(&file.location));
        assert!(file.size.is_some());
    }
    let layers = artifact.files.iter().map(|file| {
        let annotations = json!({ "org.opencontainers.image.title": file.name });
        json!({ "mediaType": "any", "digest": file.location, "size": file.size, "annotations": annotations })
    });
    let written = json!({ "artifactType": ARTIFACT_TYPES[0], "layers": layers.collect::<Vec<_>>() }).to_string();
    let again = manifest::read(written.as_bytes(), Some("application/json"));
    assert_eq!(again.ok().map(|again| again.files), Some(artifact.files.clone()));
    match Resolved::new(tag.clone(), artifact.files) {
        Ok(resolved) => {
            assert!(resolved.files().iter().all(|file| is_file_name(&file.name)));
            assert!(resolved.digest().is_some());
            assert_eq!(digest_of_release(&tag, input), resolved.digest());
            Outcome::Accepted
        }
        Err(error) => {
            assert_eq!(digest_of_release(&tag, input), None);
            refused(&error, error.class(), error.reason())
        }
    }
}

/// The files of a release by its manifest.
pub(crate) fn files_of_manifest(tag: &ReleaseTag, manifest: &[u8]) -> Option<Vec<FileRef>> {
    let artifact = manifest::read(manifest, None).ok()?;
    let resolved = Resolved::new(tag.clone(), artifact.files).ok()?;
    let pinned = |file: &RemoteFile| {
        Some(FileRef {
            name: file.name.clone(),
            size: file.size?,
            sha256: file.sha256?,
        })
    };
    resolved.files().iter().map(pinned).collect()
}

/// Everything else that a registry and its server for tokens answer with: a page of tags, a token, an error, a list of referrers, a manifest of
/// signatures, one of a chart. One input is taken for each of them.
pub fn registry(input: &[u8]) -> Outcome {
    let mut outcome = Outcome::Refused;
    if let Ok(page) = tags::read(input) {
        let found: Vec<String> = page.collect();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        assert!(
            found
                .iter()
                .all(|tag| tag.len() <= MAX_TAG && tag.bytes().all(plain) && !tag.is_empty())
        );
        let written = json!({ "tags": &found }).to_string();
        let again = tags::read(written.as_bytes()).map(Iterator::collect::<Vec<_>>);
        assert_eq!(again.ok().as_ref(), Some(&found));
        if !found.is_empty() {
            outcome = Outcome::Accepted;
        }
    }
    if let Some((token, life)) = token_in(input) {
        assert!(!token.expose_secret().trim().is_empty() && life <= LONGEST_LIFE);
        assert!(!format!("{token:?}").contains(token.expose_secret()));
        outcome = Outcome::Accepted;
    }
    if let Some(code) = code(input) {
        assert!(code.len() <= MAX_CODE && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
        outcome = Outcome::Accepted;
    }
    if referrers_in(input).is_some_and(|found| found.iter().any(Referrer::is_signature)) {
        outcome = Outcome::Accepted;
    }
    for layer in layers_in(input).unwrap_or_default() {
        if let Some((limit, _)) = layer.signature().filter(|(limit, _)| layer.is_within(*limit)) {
            assert!(limit.max(MAX_SIGNATURE) <= MAX_BUNDLE_BYTES);
            outcome = Outcome::Accepted;
        }
    }
    if let Ok(chart) = manifest::chart(input, None) {
        let layer = json!({ "mediaType": CHART_CONTENT, "digest": chart.digest.to_string(), "size": chart.size });
        let config = json!({ "mediaType": CHART_CONFIG, "digest": "", "size": 0 });
        let written = json!({ "config": config, "layers": [layer] }).to_string();
        assert_eq!(manifest::chart(written.as_bytes(), None).ok(), Some(chart));
        outcome = Outcome::Accepted;
    }
    outcome
}

/// What a registry says in headers: where the next page is, and where tokens are had.
pub(crate) fn headers(headers: &HeaderMap) -> Outcome {
    let mut outcome = Outcome::Refused;
    let Ok(home) = Url::parse("https://registry.example.com/v2/kaas/stacks/") else {
        return outcome;
    };
    if let Next::Query(query) = tags::next(headers) {
        let Ok(page) = home.join(&format!("tags/list?{query}")) else {
            return outcome;
        };
        assert_eq!(page.origin(), home.origin());
        assert_eq!(page.path(), "/v2/kaas/stacks/tags/list");
        assert_eq!(page.fragment(), None);
        assert!(HeaderValue::try_from(page.as_str()).is_ok());
        outcome = Outcome::Accepted;
    }
    if let Some(Challenge::Bearer { realm, service }) = challenge::read(headers) {
        match realm_of(&home, "kaas/stacks", &realm, service.as_deref()) {
            Ok(realm) => {
                assert_eq!((realm.scheme(), realm.fragment()), ("https", None));
                let pairs: Vec<_> = realm.query_pairs().collect();
                assert!(
                    pairs
                        .last()
                        .is_some_and(|pair| *pair == ("scope".into(), "repository:kaas/stacks:pull".into()))
                );
                let host = realm.host_str().unwrap_or_default();
                let is_near = host == "example.com" || host.ends_with(".example.com");
                assert_eq!(is_own(&home, &[], &realm), is_near, "{realm}");
                outcome = Outcome::Accepted;
            }
            Err(problem) => assert!(!problem.is_empty()),
        }
    }
    outcome
}
