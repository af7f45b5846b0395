//! What must hold of everything that GitHub says.

#![expect(
    clippy::missing_panics_doc,
    reason = "to panic is how they say that something does not hold"
)]

use std::time::Duration;

use http::{HeaderMap, header};

use super::{
    api::{Asset, LONGEST_MESSAGE, PER_PAGE, Page, ReleaseLine, WholeRelease, has_next, used_up, words},
    pages::{self, listing_of},
    resolved,
};
use crate::{
    files::is_file_name,
    fuzzing::{Outcome, refused},
    source::SourceError,
};

const TAG: &str = "docker-harbor-1-34-v1";

/// A page of releases, one release, a page of assets; or an error. One input is taken for each of them.
pub fn github(input: &[u8]) -> Outcome {
    let message = words(&String::from_utf8_lossy(input));
    assert!(message.chars().count() <= LONGEST_MESSAGE && !message.contains(char::is_control));
    let lines = match serde_json::from_slice::<Page<ReleaseLine>>(input) {
        Ok(lines) => {
            let count = lines.entries.len();
            assert!(count <= PER_PAGE);
            let listing = listing_of(lines.entries);
            assert!(listing.releases.is_sorted_by(|left, right| left.tag < right.tag));
            assert!(listing.foreign.is_sorted_by(|left, right| left < right));
            assert!(
                listing
                    .foreign
                    .iter()
                    .all(|name| name.chars().count() <= pages::LONGEST_NAME)
            );
            assert!(listing.releases.len() + listing.foreign.len() <= count);
            // A digest takes all files, and what all files are is what an identity is of.
            assert!(
                listing
                    .releases
                    .iter()
                    .all(|listed| listed.digest.is_none() || listed.identity.is_some())
            );
            Outcome::Accepted
        }
        Err(source) => {
            let place = "https://api.github.com".to_owned();
            let error = SourceError::Unintelligible { place, source };
            refused(&error, error.class(), error.reason())
        }
    };
    let release = serde_json::from_slice::<WholeRelease>(input).map(|release| files(release.assets.entries));
    let page = serde_json::from_slice::<Page<Asset>>(input).map(|page| files(page.entries));
    [Some(lines), release.ok(), page.ok()]
        .into_iter()
        .flatten()
        .find(|outcome| *outcome == Outcome::Accepted)
        .unwrap_or(Outcome::Refused)
}

/// What assets are as files of a release.
fn files(assets: Vec<Asset>) -> Outcome {
    let Ok(tag) = TAG.parse() else {
        return Outcome::Refused;
    };
    match resolved(&tag, assets) {
        Ok(resolved) => {
            for file in resolved.files().iter().chain(resolved.beside()) {
                assert!(is_file_name(&file.name) && file.size.is_some());
                let id = file
                    .location
                    .strip_prefix("assets/")
                    .and_then(|id| id.parse::<u64>().ok());
                assert!(id.is_some(), "{}", file.location);
            }
            Outcome::Accepted
        }
        Err(error) => refused(&error, error.class(), error.reason()),
    }
}

/// What GitHub says in headers: whether there is another page, and until when nobody should ask.
pub(crate) fn headers(headers: &HeaderMap) -> Outcome {
    let wait = used_up(headers);
    assert!(wait.is_none_or(|wait| wait <= Duration::from_hours(1)));
    let link = headers.get(header::LINK).and_then(|value| value.to_str().ok());
    if wait.is_some() || link.is_some_and(has_next) {
        return Outcome::Accepted;
    }
    Outcome::Refused
}
