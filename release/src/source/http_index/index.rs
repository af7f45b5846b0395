//! The file that says which releases a web server has: `docs/reference/release-index.md`. Pure.
//!
//! JSON and not YAML: it is as long as the history of a project, and a parser of YAML needs a hundred times the memory of its text.

use std::collections::{BTreeMap, btree_map::Entry};

use crds::names::ReleaseTag;
use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    Digest,
    source::{ListedRelease, Listing, RemoteFile, Resolved, SourceError, bounded::AtMost},
};

/// The one version of the format.
pub(super) const API_VERSION: &str = "index.clusterstack.x-k8s.io/v1alpha1";

/// Most releases of an index, as of every source.
pub(super) const MAX_RELEASES: usize = 10_000;
/// Longest name or word of a stranger that is passed on.
pub(super) const LONGEST_NAME: usize = 256;

/// An index as it was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    releases: BTreeMap<ReleaseTag, Release>,
    /// The same as a list, made once: the digests of thousands of releases take their time.
    listed: Vec<ListedRelease>,
    foreign: Vec<String>,
}

/// One release of it, usable or not: what is wrong with one is nothing to the others.
#[derive(Debug, PartialEq, Eq)]
struct Release {
    published_at: Option<Timestamp>,
    files: Result<Vec<RemoteFile>, &'static str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    api_version: String,
}

#[derive(Deserialize)]
struct Text {
    releases: AtMost<ReleaseText, MAX_RELEASES>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReleaseText {
    tag: String,
    published_at: Option<Timestamp>,
    #[serde(default)]
    files: Vec<FileText>,
}

#[derive(Deserialize)]
struct FileText {
    name: String,
    size: u64,
    sha256: String,
    url: Option<String>,
}

impl Index {
    /// Reads an index; `place` is where it is from, for messages.
    pub(super) fn parse(bytes: &[u8], place: &str) -> Result<Self, SourceError> {
        let unintelligible = |source| SourceError::Unintelligible {
            place: place.to_owned(),
            source,
        };
        let Head { api_version } = serde_json::from_slice(bytes).map_err(unintelligible)?;
        if api_version != API_VERSION {
            return Err(SourceError::UnknownFormat {
                place: place.to_owned(),
                version: api_version.escape_debug().take(LONGEST_NAME).collect(),
                known: API_VERSION,
            });
        }
        let Text { releases } = serde_json::from_slice(bytes).map_err(unintelligible)?;
        if releases.is_cut {
            return Err(SourceError::TooManyReleases {
                place: place.to_owned(),
                limit: MAX_RELEASES,
            });
        }
        let mut index = Self::default();
        for release in releases.entries {
            index.add(release);
        }
        index.foreign.sort();
        index.foreign.dedup();
        let listed = index.releases.iter().map(|(tag, release)| {
            let resolved = index.resolve(tag).ok();
            ListedRelease::of(tag.clone(), release.published_at).with_files(resolved.as_ref())
        });
        index.listed = listed.collect();
        Ok(index)
    }

    fn add(&mut self, text: ReleaseText) {
        let Ok(tag) = text.tag.parse::<ReleaseTag>() else {
            self.foreign.push(text.tag.chars().take(LONGEST_NAME).collect());
            return;
        };
        let files = text.files.into_iter().map(|file| file.located(&tag)).collect();
        match self.releases.entry(tag) {
            Entry::Vacant(place) => {
                place.insert(Release {
                    published_at: text.published_at,
                    files,
                });
            }
            Entry::Occupied(mut first) => first.get_mut().files = Err("is there twice; which of them is meant?"),
        }
    }

    /// What it offers.
    pub(super) fn listing(&self) -> Listing {
        Listing {
            releases: self.listed.clone(),
            foreign: self.foreign.clone(),
        }
    }

    /// What it says of a tag.
    pub(super) fn resolve(&self, tag: &ReleaseTag) -> Result<Resolved, SourceError> {
        let missing = || SourceError::MissingRelease { tag: tag.clone() };
        let release = self.releases.get(tag).ok_or_else(missing)?;
        let files = release.files.clone().map_err(|problem| SourceError::Misindexed {
            tag: Box::new(tag.clone()),
            problem,
        })?;
        if files.is_empty() {
            return Err(SourceError::NoFiles { tag: tag.clone() });
        }
        Resolved::new(tag.clone(), files).map_err(|source| SourceError::UnusableRelease {
            tag: tag.clone(),
            source: Box::new(source),
        })
    }
}

impl FileText {
    fn located(self, tag: &ReleaseTag) -> Result<RemoteFile, &'static str> {
        let Self {
            name,
            size,
            sha256,
            url,
        } = self;
        let digest = sha256.strip_prefix("sha256:").unwrap_or(&sha256);
        let digest: Digest = format!("sha256:{digest}")
            .parse()
            .map_err(|_| "has a file whose sha256 is not 64 lower-case hex digits")?;
        let location = url.unwrap_or_else(|| format!("{tag}/{name}"));
        if !is_below(&location) {
            return Err(
                "has a file whose URL does not lie below the index, or has other characters than letters, digits and -._~+=@,",
            );
        }
        Ok(RemoteFile {
            name,
            size: Some(size),
            sha256: Some(digest),
            location,
        })
    }
}

/// Whether this is a relative path that stays below where it begins, in every reading of it: nothing is escaped, nothing goes up.
pub(super) fn is_below(path: &str) -> bool {
    let is_character = |c: char| c.is_ascii_alphanumeric() || "-._~+=@,".contains(c);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.chars().all(is_character);
    path.len() <= 1024 && path.split('/').all(is_segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(releases: &str) -> Result<Index, SourceError> {
        let text = format!(r#"{{ "apiVersion": "{API_VERSION}", "releases": {releases} }}"#);
        Index::parse(text.as_bytes(), "https://example.org/index.json")
    }

    #[test]
    fn urls_that_could_leave_the_index_are_none() {
        for path in [
            "a",
            "a/b.tgz",
            "v1+x/a~b",
            "files/docker-harbor-1-34-v0-sha-abc/metadata.yaml",
        ] {
            assert!(is_below(path), "{path}");
        }
        for path in [
            "",
            "/a",
            "//host/a",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "./a",
            "a/..",
            "%2e%2e/a",
            "..%2fa",
            "a\\b",
            "https://host/a",
            "https:a",
            "javascript:a",
            "a?b",
            "a#b",
            "a b",
            "a\nb",
            "ä",
            &"a/".repeat(1000),
        ] {
            assert!(!is_below(path), "{path}");
        }
    }

    #[test]
    fn release_that_is_wrong_is_listed_and_says_why_and_the_others_are_usable() {
        let digest = Digest::of(b"a").hex();
        let file = |url: &str, sha256: &str| {
            format!(r#"[{{ "name": "metadata.yaml", "size": 1, "sha256": "{sha256}", "url": "{url}" }}]"#)
        };
        let release =
            |version: u32, files: &str| format!(r#"{{ "tag": "docker-harbor-1-34-v{version}", "files": {files} }}"#);
        let releases = [
            release(1, &file("x/metadata.yaml", &digest)),
            release(2, &file("../metadata.yaml", &digest)),
            release(3, &file("x", "sha1:00")),
            release(4, "[]"),
            release(5, &file("x", &digest)),
            release(5, &file("y", &digest)),
            r#"{ "tag": "nightly" }"#.to_owned(),
        ];
        let index = index(&format!("[{}]", releases.join(","))).unwrap();
        assert_eq!(index.listing().releases.len(), 5);
        assert_eq!(index.listing().foreign, ["nightly"]);
        for (version, words) in [
            (1, None),
            (2, Some("does not lie below")),
            (3, Some("64 lower-case hex digits")),
            (4, Some("has no files")),
            (5, Some("is there twice")),
            (6, Some("is not in the source")),
        ] {
            let resolved = index.resolve(&format!("docker-harbor-1-34-v{version}").parse().unwrap());
            let told = resolved.err().map(|error| error.to_string());
            assert_eq!(told.is_some(), words.is_some(), "{told:?}");
            assert!(
                told.unwrap_or_default().contains(words.unwrap_or_default()),
                "{version}"
            );
        }
    }

    #[test]
    fn example_of_the_documentation_is_an_index() {
        let page = include_str!("../../../../docs/reference/release-index.md");
        let (_, rest) = page.split_once("```json").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let index = Index::parse(example.as_bytes(), "").unwrap();
        let resolved = index.resolve(&"docker-harbor-1-34-v1".parse().unwrap()).unwrap();
        let locations: Vec<_> = resolved.files().iter().map(|file| file.location.as_str()).collect();
        assert_eq!(
            locations,
            [
                "charts/docker-harbor-1-34-cluster-class-v1.tgz",
                "docker-harbor-1-34-v1/metadata.yaml"
            ]
        );
    }

    #[test]
    fn text_that_is_no_index_is_refused_whatever_its_depth() {
        let deep = format!(
            r#"{{ "apiVersion": "{API_VERSION}", "more": {} "#,
            "[".repeat(1_000_000)
        );
        let other = r#"{ "apiVersion": "index.clusterstack.x-k8s.io/v2", "releases": 1 }"#;
        for (text, words) in [
            ("", "does not answer as"),
            ("<html>", "does not answer as"),
            ("[]", "does not answer as"),
            (deep.as_str(), "does not answer as"),
            (other, "which this version of the operator does not know"),
        ] {
            let error = Index::parse(text.as_bytes(), "https://example.org")
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{error}");
        }
        let many = vec![r#"{ "tag": "x" }"#; MAX_RELEASES + 1].join(",");
        assert!(matches!(
            index(&format!("[{many}]")),
            Err(SourceError::TooManyReleases { .. })
        ));
    }
}
