//! Where an answer sends on to, and whether we go there. Pure.
//!
//! Redirects are how servers make clients reach what they could not reach themselves, and how credentials leak: most of the rules here are
//! somebody's security advisory.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, StatusCode, header};
use url::Url;

use super::{HttpError, Place};

/// Most redirects of one request. Downloads of GitHub and of registries need one, a repository that moved one more.
pub(super) const MAX_REDIRECTS: usize = 5;

/// Longest `Location`: signed URLs of object stores have some 2 KiB.
const LONGEST_LOCATION: usize = 8 * 1024;

/// Headers that go along when a request leaves its server; everything else may be a secret. A part of a file is asked for together with the entity tag
/// of the whole, which the server gave out itself: without it, a file that is another one by now would be continued as if it were the same.
const HARMLESS: &[HeaderName] = &[header::ACCEPT, header::ACCEPT_ENCODING, header::RANGE, header::IF_RANGE];

/// Where a request may be sent on to. The host of the request itself always may.
#[derive(Clone, Debug, Default)]
pub enum Redirects {
    /// Nowhere else.
    #[default]
    SameHost,
    /// To these hosts; one that begins with a dot stands for all below it.
    To(Arc<[String]>),
    /// To any host that the network allows. Only for bytes that are held against a digest which the server itself vouched for: then it
    /// does not matter who sends them.
    Anywhere,
}

impl Redirects {
    fn allow(&self, host: &str) -> bool {
        match self {
            Self::SameHost => false,
            Self::To(hosts) => hosts.iter().any(|allowed| {
                host == allowed
                    || allowed.starts_with('.') && host.len() > allowed.len() && host.ends_with(allowed.as_str())
            }),
            Self::Anywhere => true,
        }
    }
}

/// Where an answer sends on to, if it does.
pub(super) fn target(
    status: StatusCode,
    headers: &HeaderMap,
    from: &Url,
    first: &Url,
    allowed: &Redirects,
) -> Result<Option<Url>, HttpError> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = headers
        .get(header::LOCATION)
        .filter(|value| value.len() <= LONGEST_LOCATION);
    let parsed = location.and_then(|value| from.join(value.to_str().ok()?).ok());
    let mut to = parsed.ok_or_else(|| HttpError::LostRedirect { from: Place::of(from) })?;
    to.set_fragment(None);
    let refused = |problem| HttpError::RefusedRedirect {
        from: Place::of(from),
        to: Place::origin(&to),
        problem,
    };
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(refused("without TLS; that is not followed"));
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err(refused("with credentials in the URL; that is not followed"));
    }
    let host = to.host_str().unwrap_or_default();
    if to.host() != first.host() && !allowed.allow(host) {
        return Err(refused("where this source may not go"));
    }
    Ok(Some(to))
}

/// Whether two URLs have the same scheme, host and port.
pub(super) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// What goes along when a request leaves its server.
pub(super) fn harmless(headers: &HeaderMap) -> HeaderMap {
    let kept = HARMLESS
        .iter()
        .filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
    kept.collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn follow(from: &str, location: &str, allowed: &Redirects) -> Result<String, String> {
        let from = Url::parse(from).unwrap();
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::try_from(location).unwrap())]);
        let to = target(StatusCode::FOUND, &headers, &from, &from, allowed);
        to.map(|to| to.unwrap().to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn redirect_is_followed_to_the_same_host_and_to_allowed_ones_only() {
        let hosts: Arc<[String]> = Arc::new(["storage.example".to_owned(), ".cdn.example".to_owned()]);
        let named = Redirects::To(hosts);
        let from = "https://api.example/files/1";
        for (location, allowed, to) in [
            ("/files/2", &Redirects::SameHost, "https://api.example/files/2"),
            (
                "https://api.example:8443/f#part",
                &Redirects::SameHost,
                "https://api.example:8443/f",
            ),
            ("//storage.example/f?sig=x", &named, "https://storage.example/f?sig=x"),
            ("https://a.cdn.example/f", &named, "https://a.cdn.example/f"),
            (
                "https://anyone.example/f",
                &Redirects::Anywhere,
                "https://anyone.example/f",
            ),
        ] {
            assert_eq!(follow(from, location, allowed), Ok(to.to_owned()));
        }
        for (location, allowed, words) in [
            (
                "https://other.example/",
                &Redirects::SameHost,
                "where this source may not go",
            ),
            ("https://xstorage.example/", &named, "where this source may not go"),
            ("https://storage.example.evil/", &named, "where this source may not go"),
            ("https://cdn.example/", &named, "where this source may not go"),
            ("https://xcdn.example/", &named, "where this source may not go"),
            ("http://api.example/", &Redirects::Anywhere, "without TLS"),
            ("file:///etc/passwd", &Redirects::Anywhere, "without TLS"),
            ("https://me:pw@api.example/", &Redirects::Anywhere, "with credentials"),
            ("https://", &Redirects::Anywhere, "no usable Location"),
            (&"/x".repeat(5000), &Redirects::Anywhere, "no usable Location"),
        ] {
            let error = follow(from, location, allowed).expect_err(location);
            assert!(error.contains(words), "{location}: {error}");
            assert!(!error.contains("pw") && !error.contains("sig="), "{error}");
        }
    }

    #[test]
    fn only_answers_that_send_on_are_followed() {
        let from = Url::parse("https://api.example/").unwrap();
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static("/elsewhere"))]);
        for status in [200, 201, 300, 304, 305, 404] {
            let status = StatusCode::from_u16(status).unwrap();
            let to = target(status, &headers, &from, &from, &Redirects::Anywhere).unwrap();
            assert_eq!(to, None, "{status}");
        }
    }

    #[test]
    fn origin_is_scheme_host_and_port() {
        let same = |one, other| is_same_origin(&Url::parse(one).unwrap(), &Url::parse(other).unwrap());
        assert!(same("https://a.example/x", "https://A.example:443/y?z"));
        assert!(!same("https://a.example/", "https://a.example:444/"));
        assert!(!same("https://a.example/", "http://a.example:443/"));
        assert!(!same("https://a.example/", "https://b.a.example/"));
    }
}
