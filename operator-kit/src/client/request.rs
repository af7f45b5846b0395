//! Reads from a request's method and address what it asks of the API server. Pure.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Uri};

/// What a request does, in the words of role rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `apply`, `delete`, `deletecollection`, `discover`; a write
    /// that only pretends is `dry-run`.
    pub(super) verb: &'static str,
    /// `clusterclasses.cluster.x-k8s.io`, `clusterstacks.clusterstack.x-k8s.io/status`; empty for discovery.
    pub(super) resource: String,
}

impl Asked {
    /// What `method` on `uri` asks; everything outside `/api` and `/apis` is discovery.
    pub(super) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let Some(target) = Target::of(uri.path()) else {
            return Self {
                verb: "discover",
                resource: String::new(),
            };
        };
        Self {
            verb: verb_of(method, uri, headers, &target),
            resource: target.label(),
        }
    }

    /// A stream without an end, which neither a deadline nor a total size fits.
    pub(super) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Something changes for others. Not Leases, by which it is found out who may write, nor questions that are put as objects.
    pub(super) fn is_write(&self) -> bool {
        const WRITES: [&str; 6] = ["create", "update", "patch", "apply", "delete", "deletecollection"];
        const NOT_MEANT: [&str; 3] = [
            ".coordination.k8s.io",
            ".authorization.k8s.io",
            ".authentication.k8s.io",
        ];
        WRITES.contains(&self.verb) && !NOT_MEANT.iter().any(|group| self.resource.ends_with(group))
    }

    /// Leadership must not be lost because other requests stand in line.
    pub(super) fn is_urgent(&self) -> bool {
        self.is_watch() || self.resource == "leases.coordination.k8s.io"
    }
}

struct Target<'a> {
    group: &'a str,
    resource: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let _version = parts.next()?;
        let mut rest: Vec<&str> = parts.collect();
        // `namespaces/NAME/RESOURCE` is a place; `namespaces/NAME` and its subresources are the namespace itself.
        let is_place = rest.first() == Some(&"namespaces")
            && rest.len() > 2
            && !matches!(rest.get(2), Some(&("status" | "finalize")));
        if is_place {
            rest.drain(..2);
        }
        let mut rest = rest.into_iter();
        Some(Self {
            group,
            resource: rest.next()?,
            name: rest.next(),
            subresource: rest.next(),
        })
    }

    fn label(&self) -> String {
        let mut label = self.resource.to_owned();
        if !self.group.is_empty() {
            label.push('.');
            label.push_str(self.group);
        }
        if let Some(subresource) = self.subresource {
            label.push('/');
            label.push_str(subresource);
        }
        label
    }
}

fn verb_of(method: &Method, uri: &Uri, headers: &HeaderMap, target: &Target<'_>) -> &'static str {
    let query = uri.query().unwrap_or_default();
    let has = |pair: &str| query.split('&').any(|found| found == pair);
    if *method != Method::GET && has("dryRun=All") {
        return "dry-run";
    }
    match *method {
        Method::GET if has("watch=true") || has("watch=1") => "watch",
        Method::GET if target.name.is_some() => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH if is_apply(headers) => "apply",
        Method::PATCH => "patch",
        Method::DELETE if target.name.is_some() => "delete",
        Method::DELETE => "deletecollection",
        _ => "other",
    }
}

fn is_apply(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/apply-patch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_as_role_rules_name_them() {
        let cases = [
            ("GET", "/apis", "", "discover", ""),
            ("GET", "/version", "", "discover", ""),
            ("GET", "/api/v1/namespaces/fleet/secrets/token", "", "get", "secrets"),
            ("GET", "/api/v1/namespaces/fleet", "", "get", "namespaces"),
            (
                "PUT",
                "/api/v1/namespaces/fleet/finalize",
                "",
                "update",
                "namespaces/finalize",
            ),
            ("GET", "/api/v1/namespaces?limit=500", "", "list", "namespaces"),
            (
                "GET",
                "/apis/cluster.x-k8s.io/v1beta1/clusters?&watch=true&timeoutSeconds=290",
                "",
                "watch",
                "clusters.cluster.x-k8s.io",
            ),
            (
                "PUT",
                "/apis/a.io/v1/namespaces/n/stacks/s/status?",
                "",
                "update",
                "stacks.a.io/status",
            ),
            (
                "PATCH",
                "/apis/a.io/v1/namespaces/n/stacks/s?force=true",
                "application/apply-patch+yaml",
                "apply",
                "stacks.a.io",
            ),
            (
                "PATCH",
                "/apis/a.io/v1/namespaces/n/stacks/s?dryRun=All",
                "application/apply-patch+yaml",
                "dry-run",
                "stacks.a.io",
            ),
            (
                "PATCH",
                "/apis/a.io/v1/stacks/s",
                "application/json-patch+json",
                "patch",
                "stacks.a.io",
            ),
            (
                "POST",
                "/apis/events.k8s.io/v1/namespaces/n/events",
                "",
                "create",
                "events.events.k8s.io",
            ),
            ("DELETE", "/apis/a.io/v1/stacks/s", "", "delete", "stacks.a.io"),
            ("DELETE", "/apis/a.io/v1/stacks", "", "deletecollection", "stacks.a.io"),
        ];
        for (method, uri, content_type, verb, resource) in cases {
            let mut headers = HeaderMap::new();
            if !content_type.is_empty() {
                headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
            }
            let asked = Asked::of(&method.parse().unwrap(), &uri.parse().unwrap(), &headers);
            assert_eq!(
                (asked.verb, asked.resource.as_str()),
                (verb, resource),
                "{method} {uri}"
            );
        }
    }

    #[test]
    fn writes_are_what_changes_something_for_others() {
        let asked = |method: Method, uri: &str| Asked::of(&method, &uri.parse().unwrap(), &HeaderMap::new()).is_write();
        for (method, uri) in [
            (Method::PUT, "/apis/a.io/v1/namespaces/n/stacks/s/status"),
            (Method::PATCH, "/apis/a.io/v1/namespaces/n/stacks/s"),
            (Method::POST, "/api/v1/namespaces/n/events"),
            (Method::DELETE, "/api/v1/namespaces/n/pods/p"),
        ] {
            assert!(asked(method, uri), "{uri}");
        }
        for (method, uri) in [
            (Method::GET, "/api/v1/namespaces/n/pods/p"),
            (Method::PATCH, "/apis/a.io/v1/namespaces/n/stacks/s?dryRun=All"),
            (Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ] {
            assert!(!asked(method, uri), "{uri}");
        }
    }

    #[test]
    fn leases_and_watches_do_not_wait_in_line() {
        let asked = |uri: &str| Asked::of(&Method::GET, &uri.parse().unwrap(), &HeaderMap::new());
        assert!(asked("/apis/coordination.k8s.io/v1/namespaces/n/leases/l").is_urgent());
        assert!(asked("/api/v1/pods?watch=1").is_urgent());
        assert!(!asked("/api/v1/pods").is_urgent());
    }
}
