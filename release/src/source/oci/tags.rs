//! The pages of a list of tags: what is on one, and how the next is asked for. Asks nobody.

use serde::Deserialize;

use crate::http::{HeaderMap, header::LINK};

/// Tags asked for at once; registries may give fewer.
pub(super) const PAGE: usize = 1000;
/// Most bytes of a page. Some registries give all tags whatever is asked for, and a tag has at most 128 bytes.
pub(super) const MAX_PAGE_BYTES: usize = 2 << 20;
/// Most tags of a repository.
pub(super) const MAX_TAGS: usize = 10_000;
/// Most pages of a list; the smallest pages that a known registry gives have 50 tags.
pub(super) const MAX_PAGES: usize = 256;

/// Longest text that says where the next page is.
const MAX_QUERY: usize = 2048;
/// Most bytes of a tag.
pub(super) const MAX_TAG: usize = 128;

#[derive(Deserialize)]
struct Page {
    // Registries without tags say null or nothing.
    tags: Option<Vec<String>>,
}

/// The tags on a page. What cannot be a tag cannot be asked for, so that nobody needs to know of it.
pub(super) fn read(bytes: &[u8]) -> Result<impl Iterator<Item = String>, serde_json::Error> {
    let page: Page = serde_json::from_slice(bytes)?;
    Ok(page.tags.unwrap_or_default().into_iter().filter(|tag| is_tag(tag)))
}

/// The grammar of the OCI distribution specification.
fn is_tag(text: &str) -> bool {
    let of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = text.bytes().next().is_some_and(of_word);
    first && text.len() <= MAX_TAG && text.bytes().all(|byte| of_word(byte) || matches!(byte, b'.' | b'-'))
}

/// Whether clients made this tag to find what belongs to a manifest: signatures, attestations, referrers.
pub(super) fn is_bookkeeping(tag: &str) -> bool {
    let digits = tag.strip_prefix("sha256-").and_then(|rest| rest.split('.').next());
    digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Where a page says that the next one is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This was the last page.
    End,
    /// The query of the next page. The rest of its address is ours: a list leads nowhere else.
    Query(String),
    /// There is one, but nobody can ask for it.
    Lost,
}

/// Reads `Link: <…?n=…&last=…>; rel="next"` (RFC 8288).
pub(super) fn next(headers: &HeaderMap) -> Next {
    let texts = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let mut links = texts
        .flat_map(|text| text.split('<').skip(1))
        .filter_map(|link| link.split_once('>'));
    let Some((target, _)) = links.find(|(_, parameters)| is_next(parameters)) else {
        return Next::End;
    };
    let target = target.split('#').next().unwrap_or_default();
    match target.split_once('?') {
        Some((_, query)) if !query.is_empty() && query.len() <= MAX_QUERY => Next::Query(query.to_owned()),
        _ => Next::Lost,
    }
}

fn is_next(parameters: &str) -> bool {
    let mut parameters = parameters
        .split([';', ','])
        .filter_map(|parameter| parameter.split_once('='));
    parameters.any(|(name, value)| {
        let mut relations = value.trim().trim_matches('"').split_whitespace();
        name.trim().eq_ignore_ascii_case("rel") && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_of(link: &str) -> Next {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, link.parse().unwrap());
        next(&headers)
    }

    #[test]
    fn next_page_is_found_as_registries_write_it() {
        let query = |text: &str| Next::Query(text.to_owned());
        assert_eq!(next(&HeaderMap::new()), Next::End);
        assert_eq!(
            next_of("</v2/a/tags/list?last=v1&n=2>; rel=\"next\""),
            query("last=v1&n=2")
        );
        assert_eq!(
            next_of("<https://elsewhere.example.com/v2/a/tags/list?n=2&last=v1#x>; rel=next"),
            query("n=2&last=v1")
        );
        assert_eq!(
            next_of("</first?n=1>; rel=\"first\", </next?n=2>; title=\"a\"; REL=\"prev next\""),
            query("n=2")
        );
        assert_eq!(next_of("</v2/a/tags/list?n=2>; rel=\"prev\""), Next::End);
    }

    #[test]
    fn next_page_without_a_usable_query_is_lost_and_not_the_end() {
        assert_eq!(next_of("</v2/a/tags/list>; rel=\"next\""), Next::Lost);
        assert_eq!(next_of("</v2/a/tags/list?>; rel=\"next\""), Next::Lost);
        let long = format!("</v2/a/tags/list?last={}>; rel=\"next\"", "a".repeat(MAX_QUERY));
        assert_eq!(next_of(&long), Next::Lost);
    }

    #[test]
    fn repositories_without_tags_have_an_empty_page_in_every_spelling() {
        for page in [
            r#"{"name":"a","tags":[]}"#,
            r#"{"name":"a","tags":null}"#,
            r#"{"name":"a"}"#,
            "{}",
        ] {
            assert_eq!(read(page.as_bytes()).unwrap().count(), 0, "{page}");
        }
    }

    #[test]
    fn texts_that_are_no_tags_are_passed_over() {
        let long = "a".repeat(MAX_TAG + 1);
        let page = serde_json::json!({"tags": ["v1", "_a.b-c", "", ".a", "-a", "a/b", "a\u{1b}[2J", "ä", long]});
        let tags: Vec<_> = read(page.to_string().as_bytes()).unwrap().collect();
        assert_eq!(tags, ["v1", "_a.b-c"]);
    }

    #[test]
    fn tags_of_signatures_and_referrers_are_bookkeeping() {
        let digest = "0".repeat(64);
        assert!(is_bookkeeping(&format!("sha256-{digest}.sig")));
        assert!(is_bookkeeping(&format!("sha256-{digest}")));
        assert!(!is_bookkeeping("sha256-0123"));
        assert!(!is_bookkeeping("docker-harbor-1-34-v1"));
    }
}
