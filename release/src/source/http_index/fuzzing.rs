//! What must hold of every index.

#![expect(
    clippy::missing_panics_doc,
    reason = "to panic is how they say that something does not hold"
)]

use serde_json::json;

use super::{
    Url,
    index::{API_VERSION, Index, LONGEST_NAME, MAX_RELEASES, is_below},
};
use crate::{
    files::is_file_name,
    fuzzing::{Outcome, refused},
    source::Resolved,
};

/// An index, as a web server gives it.
pub fn index(input: &[u8]) -> Outcome {
    let index = match Index::parse(input, "https://example.org/index.json") {
        Ok(index) => index,
        Err(error) => return refused(&error, error.class(), error.reason()),
    };
    let listing = index.listing();
    assert!(listing.releases.is_sorted_by(|left, right| left.tag < right.tag));
    assert!(listing.foreign.is_sorted_by(|left, right| left < right));
    assert!(listing.foreign.iter().all(|name| name.chars().count() <= LONGEST_NAME));
    assert!(listing.releases.len() + listing.foreign.len() <= MAX_RELEASES);
    let mut usable = Vec::new();
    for listed in &listing.releases {
        match index.resolve(&listed.tag) {
            Ok(resolved) => {
                assert_eq!(listed.identity, Some(resolved.identity()));
                assert!(listed.digest.is_some() && listed.digest == resolved.digest());
                is_confined(&resolved);
                usable.push((listed, resolved));
            }
            Err(error) => {
                assert_eq!((listed.identity, listed.digest), (None, None));
                refused(&error, error.class(), error.reason());
            }
        }
    }
    let releases = usable.iter().map(|(listed, resolved)| {
        let files = resolved.files().iter().chain(resolved.beside());
        let files = files.map(|file| {
            let sha256 = file.sha256.map(|digest| digest.to_string());
            json!({ "name": file.name, "size": file.size, "sha256": sha256, "url": file.location })
        });
        let files: Vec<_> = files.collect();
        json!({ "tag": listed.tag.to_string(), "publishedAt": listed.published_at, "files": files })
    });
    let written = json!({ "apiVersion": API_VERSION, "releases": releases.collect::<Vec<_>>() }).to_string();
    let again = Index::parse(written.as_bytes(), "").ok();
    assert!(again.is_some(), "what is written of an index cannot be read: {written}");
    for (listed, resolved) in usable {
        let again = again.as_ref().and_then(|again| again.resolve(&listed.tag).ok());
        assert_eq!(again.as_ref(), Some(&resolved));
    }
    Outcome::Accepted
}

/// No name and no location leads out of where it belongs.
fn is_confined(resolved: &Resolved) {
    for file in resolved.files().iter().chain(resolved.beside()) {
        assert!(is_file_name(&file.name) && is_below(&file.location));
        assert!(file.size.is_some() && file.sha256.is_some());
        let Ok(mut url) = Url::parse("https://example.org/stacks/") else {
            continue;
        };
        let path = format!("{}{}", url.path(), file.location);
        url.set_path(&path);
        assert_eq!(url.as_str(), format!("https://example.org{path}"));
    }
}
