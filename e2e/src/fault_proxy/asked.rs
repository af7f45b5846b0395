//! What a request asks for, as far as faults differ by it. Pure.

use std::fmt;

use http::{HeaderMap, Method, Request, header::CONTENT_TYPE};

/// What a request does, in the words of role rules; an apply is told from other patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Whatever is no object: versions, groups, kinds.
    Discover,
    /// One object.
    Get,
    /// Some of a kind.
    List,
    /// What happens to them.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH, but no server-side apply.
    Patch,
    /// Server-side apply, also one that only pretends.
    Apply,
    /// DELETE, of one or of all.
    Delete,
}

/// A kind of request: of two requests of the same kind the same thing is asked, of whichever object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asked {
    /// What is done.
    pub verb: Verb,
    /// To what: the plural, with the subresource behind a slash; empty for discovery.
    pub resource: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = format!("{:?}", self.verb).to_lowercase();
        write!(f, "{verb} {}", self.resource)
    }
}

impl Asked {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let place = Place::of(request.uri().path());
        let Some(place) = place else {
            return Self {
                verb: Verb::Discover,
                resource: String::new(),
            };
        };
        let verb = match *request.method() {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH if is_apply(request.headers()) => Verb::Apply,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ if is_watch(request.uri().query().unwrap_or_default()) => Verb::Watch,
            _ if place.name.is_some() => Verb::Get,
            _ => Verb::List,
        };
        let subresource = place.subresource.map(|name| format!("/{name}")).unwrap_or_default();
        Self {
            verb,
            resource: format!("{}{subresource}", place.resource),
        }
    }

    /// Leases keep who holds them alive by the clock; questions about rights and tokens are nobody's state.
    pub(super) fn is_spared(&self) -> bool {
        matches!(self.resource.as_str(), "leases" | "tokenreviews" | "events")
            || self.resource.ends_with("accessreviews")
    }
}

/// Where an object or a collection is, by its path.
pub(super) struct Place<'a> {
    /// The path of the collection that holds the object, or is meant itself.
    pub(super) collection: String,
    resource: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// `None` for paths that are no objects.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut begin = match *parts.first()? {
            "api" => 2,
            "apis" => 3,
            _ => return None,
        };
        // `namespaces/NAME/RESOURCE` is a place; `namespaces/NAME` is the namespace itself.
        let inner = parts.get(begin) == Some(&"namespaces")
            && parts
                .get(begin + 2)
                .is_some_and(|part| !matches!(*part, "status" | "finalize"));
        if inner {
            begin += 2;
        }
        let resource = parts.get(begin)?;
        Some(Self {
            collection: format!("/{}", parts[..=begin].join("/")),
            resource,
            name: parts.get(begin + 1).copied(),
            subresource: parts.get(begin + 2).copied(),
        })
    }
}

pub(super) fn is_watch(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"))
}

fn is_apply(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/apply-patch"))
}

/// A query with these pairs in place of those with the same keys; `None` takes a key away.
pub(super) fn with_pairs(query: &str, pairs: &[(&str, Option<&str>)]) -> String {
    let key_of = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    let kept = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pairs.iter().any(|(key, _)| *key == key_of(pair)))
        .map(str::to_owned);
    let new = pairs
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", (*value)?)));
    kept.chain(new).collect::<Vec<_>>().join("&")
}

/// The value of a key as it stands in a query.
pub(super) fn value_of<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(found, _)| *found == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, uri: &str, content_type: &str) -> String {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(CONTENT_TYPE, content_type);
        Asked::of(&request.body(()).expect("a request")).to_string()
    }

    #[test]
    fn requests_are_told_apart_by_what_they_do_and_to_what() {
        for (method, uri, content_type, words) in [
            ("GET", "/apis", "", "discover "),
            ("GET", "/apis/apps/v1", "", "discover "),
            ("GET", "/api/v1/namespaces/a", "", "get namespaces"),
            ("GET", "/api/v1/namespaces/a/status", "", "get namespaces/status"),
            ("GET", "/api/v1/namespaces/a/secrets/b", "", "get secrets"),
            ("GET", "/apis/a.io/v1/stacks?limit=5", "", "list stacks"),
            ("GET", "/apis/a.io/v1/stacks?watch=true", "", "watch stacks"),
            ("POST", "/apis/a.io/v1/namespaces/n/stacks", "", "create stacks"),
            (
                "PUT",
                "/apis/a.io/v1/namespaces/n/stacks/s/status",
                "",
                "update stacks/status",
            ),
            (
                "PATCH",
                "/apis/a.io/v1/stacks/s",
                "application/merge-patch+json",
                "patch stacks",
            ),
            (
                "PATCH",
                "/apis/a.io/v1/stacks/s",
                "application/apply-patch+yaml",
                "apply stacks",
            ),
            ("DELETE", "/apis/a.io/v1/stacks/s", "", "delete stacks"),
        ] {
            assert_eq!(asked(method, uri, content_type), words, "{method} {uri}");
        }
    }

    #[test]
    fn a_query_is_changed_in_named_places_only() {
        let changed = with_pairs(
            "a=1&resourceVersion=5&b",
            &[("resourceVersion", Some("3")), ("a", None)],
        );
        assert_eq!(changed, "b&resourceVersion=3");
        assert_eq!(value_of("a=1&b=2", "b"), Some("2"));
        assert_eq!(value_of("a=1&b", "b"), None);
    }
}
