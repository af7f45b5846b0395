//! The list of releases, page by page, and as few bytes of it as can be when nothing changed.
//!
//! An entity tag speaks for one page. Releases are sorted by the date of their commit, so what is new changes the first page; what is
//! deleted, tagged on an old commit, or given other files, may change a later one alone. So an unchanged list costs one answer 304 for the first page, and if
//! there are more, one for another of them, each in its turn: what the first page does not show is seen some polls later.
//!
//! Pages are addressed by number, never by the URLs of a `Link` header. While they are read, a list may move under the reader: a release
//! that is deleted moves another from the next page to one that was read already. A list of several pages is believed when two readings
//! say the same.

use crds::names::ReleaseTag;
use jiff::Timestamp;

use super::{
    SHOWN_ASSETS,
    api::{self, Answer, Api, Fresh, PER_PAGE, ReleaseLine},
    resolved,
};
use crate::source::{ListedRelease, Listing, SourceError, bounded::Text};

/// GitHub shows the first 10,000 releases.
const MAX_PAGES: usize = 100;
/// Readings before a list counts as one that never rests.
const MAX_READINGS: usize = 4;
/// Longest foreign name that is passed on.
pub(super) const LONGEST_NAME: usize = 256;

/// One page as it was read.
#[derive(Clone, Debug)]
struct Page {
    etag: Option<String>,
    lines: Vec<Line>,
    has_next: bool,
}

impl Page {
    fn places(&self) -> impl Iterator<Item = (String, Option<Timestamp>)> {
        self.lines.iter().map(Line::place)
    }
}

/// One release of a page.
#[derive(Clone, Debug)]
enum Line {
    Release(ListedRelease),
    Foreign(String),
}

impl Line {
    fn of(line: ReleaseLine) -> Self {
        let ReleaseLine {
            tag_name: Text(tag_name),
            published_at,
            assets,
            ..
        } = line;
        let Ok(tag) = tag_name.parse::<ReleaseTag>() else {
            return Self::Foreign(tag_name.chars().take(LONGEST_NAME).collect());
        };
        // With so many it may have more than it shows.
        let is_whole = assets.entries.len() < SHOWN_ASSETS;
        let resolved = is_whole.then(|| resolved(&tag, assets.entries).ok()).flatten();
        Self::Release(ListedRelease::of(tag, published_at).with_files(resolved.as_ref()))
    }

    /// What tells where in the list it stands. Its files do not: they may be arriving just now.
    fn place(&self) -> (String, Option<Timestamp>) {
        match self {
            Self::Release(listed) => (listed.tag.to_string(), listed.published_at),
            Self::Foreign(name) => (name.clone(), None),
        }
    }
}

/// The list as it was when it was read last.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pages: Vec<Page>,
    /// The page after the first that is looked at next.
    turn: usize,
}

impl Pages {
    /// What the list is now. After an error it is remembered as it was before.
    pub(super) async fn refresh(&mut self, api: &Api, repository: &str) -> Result<Listing, SourceError> {
        let mut looked_at = Vec::new();
        for index in self.probes() {
            let etag = self.pages[index].etag.as_deref();
            looked_at.push((index, read(api, repository, index, etag).await?));
        }
        self.turn += 1;
        let is_unchanged = looked_at.iter().all(|(_, page)| page.is_none());
        if self.pages.is_empty() || !is_unchanged {
            self.pages = self.read_all(api, repository, looked_at).await?;
        }
        Ok(self.listing())
    }

    /// The pages that tell whether anything changed: the first, and one of the others.
    fn probes(&self) -> Vec<usize> {
        match self.pages.len() {
            0 => vec![],
            1 => vec![0],
            count => vec![0, 1 + self.turn % (count - 1)],
        }
    }

    async fn read_all(
        &self,
        api: &Api,
        repository: &str,
        mut looked_at: Vec<(usize, Option<Page>)>,
    ) -> Result<Vec<Page>, SourceError> {
        let mut before = self.pages.clone();
        for _ in 0..MAX_READINGS {
            let pages = read_once(api, repository, &before, &mut looked_at).await?;
            let is_same = pages.len() == before.len()
                && pages
                    .iter()
                    .zip(&before)
                    .all(|(page, before)| page.places().eq(before.places()));
            if pages.len() == 1 || is_same {
                return Ok(pages);
            }
            before = pages;
            looked_at.clear();
        }
        Err(SourceError::Moving { place: api.place() })
    }

    fn listing(&self) -> Listing {
        let mut listing = Listing::default();
        for line in self.pages.iter().flat_map(|page| &page.lines) {
            match line {
                Line::Release(listed) => listing.releases.push(listed.clone()),
                Line::Foreign(name) => listing.foreign.push(name.clone()),
            }
        }
        listing.releases.sort_by(|left, right| left.tag.cmp(&right.tag));
        listing.releases.dedup_by(|left, right| left.tag == right.tag);
        listing.foreign.sort();
        listing.foreign.dedup();
        listing
    }
}

/// All pages, each only if it is another than before.
async fn read_once(
    api: &Api,
    repository: &str,
    before: &[Page],
    looked_at: &mut Vec<(usize, Option<Page>)>,
) -> Result<Vec<Page>, SourceError> {
    let mut pages: Vec<Page> = Vec::new();
    while pages.last().is_none_or(|page| page.has_next) {
        let index = pages.len();
        if index == MAX_PAGES {
            return Err(SourceError::TooManyReleases {
                place: api.place(),
                limit: MAX_PAGES * PER_PAGE,
            });
        }
        let known = before.get(index);
        let page = match looked_at.iter().position(|(looked_at, _)| *looked_at == index) {
            Some(position) => looked_at.swap_remove(position).1,
            None => read(api, repository, index, known.and_then(|page| page.etag.as_deref())).await?,
        };
        // Unchanged is said only of what was known.
        let Some(page) = page.or_else(|| known.cloned()) else {
            break;
        };
        pages.push(page);
    }
    Ok(pages)
}

/// One page, if it is another than the one of this entity tag.
async fn read(api: &Api, repository: &str, index: usize, etag: Option<&str>) -> Result<Option<Page>, SourceError> {
    let route = format!("{repository}/releases?per_page={PER_PAGE}&page={}", index + 1);
    let answer = api.read::<api::Page<ReleaseLine>>(&route, etag).await?;
    let Answer::New(Fresh {
        content,
        etag,
        has_next,
    }) = answer
    else {
        return Ok(None);
    };
    Ok(Some(Page {
        etag,
        lines: lines(api.entries(content)?),
        has_next,
    }))
}

/// Those who may write see drafts, which nobody has published yet.
fn lines(content: Vec<ReleaseLine>) -> Vec<Line> {
    let published = content.into_iter().filter(|release| !release.draft);
    published.map(Line::of).collect()
}

/// What a list of one page says.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn listing_of(content: Vec<ReleaseLine>) -> Listing {
    let page = Page {
        etag: None,
        lines: lines(content),
        has_next: false,
    };
    let pages = vec![page];
    Pages { pages, turn: 0 }.listing()
}
