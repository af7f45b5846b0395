//! Whether the release whose mark an object carries is there, as the API server says. The watch of releases may be behind that of objects, and may be
//! restricted: what it does not show, somebody else may look after.

use std::collections::HashSet;
use std::sync::Arc;

use crds::{ClusterStackRelease, labels};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use operator_kit::failure::words_of;
use operator_kit::object::ObjectKey;
use operator_kit::pages::{Pages, Unreadable};
use planning::objects::OwnerKind;

use super::claims::{mark, mark_handle};
use crate::context::Context;
use crate::shared_answer::SharedAnswer;

/// Metadata of releases per page, where they fit.
const PAGE_SIZE: u32 = 250;

/// The marks of all releases that there are, when somebody asked last.
#[derive(Default)]
pub(crate) struct LiveMarks {
    /// The only one that is looked after; empty for all.
    namespace: String,
    here: SharedAnswer<HashSet<String>, kube::Error>,
    everywhere: SharedAnswer<HashSet<String>, kube::Error>,
}

impl LiveMarks {
    /// Those that an operator of this namespace asks for; of all, where it is empty.
    pub(crate) fn of(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }

    /// Whether the release is there that marks objects so, where it could have this one: beside it, or anywhere if it has no namespace.
    async fn has(&self, client: &Client, key: &ObjectKey, part_of: &str) -> Result<bool, Arc<kube::Error>> {
        let (namespace, answer) = if key.namespace.is_empty() {
            ("", &self.everywhere)
        } else {
            (self.namespace.as_str(), &self.here)
        };
        let has = |marks: &HashSet<String>| marks.contains(part_of);
        answer.ask(marks(client, namespace), has).await
    }
}

/// Whether a release has this mark that is not watched, so that somebody else looks after it; an error where nobody can tell.
pub(super) async fn is_elsewhere(context: &Context, key: &ObjectKey, part_of: &str) -> Result<bool, String> {
    let is_marked_so = |release: &ClusterStackRelease| mark(release) == part_of;
    let watched = context.releases.find_everywhere(&[mark_handle(part_of)], is_marked_so);
    if !watched.is_empty() || !labels::is_part_of(part_of) {
        return Ok(false);
    }
    let found = context.live_marks.has(&context.management.client, key, part_of).await;
    found.map_err(|error| {
        format!(
            "{}, and whether that is still there nobody can tell ({}); if it is gone, remove the label {} from the object",
            OwnerKind::Release.foreign(),
            words_of(&error),
            labels::PART_OF
        )
    })
}

/// In this namespace, or in all where it is empty. One whose metadata is too large is there as the others are.
async fn marks(client: &Client, namespace: &str) -> Result<HashSet<String>, kube::Error> {
    let api: Api<PartialObjectMeta<ClusterStackRelease>> = if namespace.is_empty() {
        Api::all(client.clone())
    } else {
        Api::namespaced(client.clone(), namespace)
    };
    let mark = |namespace: &str, name: &str| labels::part_of("ClusterStackRelease", namespace, name);
    let mut pages = Pages::new(api, "", PAGE_SIZE);
    let mut marks = HashSet::new();
    while let Some(page) = pages.next_page().await {
        match page {
            Ok(releases) => {
                let found = releases.iter();
                marks.extend(found.map(|release| mark(&release.namespace().unwrap_or_default(), &release.name_any())));
            }
            Err(error) => {
                let Some(Unreadable { namespace, name, .. }) = Unreadable::of(&error) else {
                    return Err(error);
                };
                marks.insert(mark(namespace, name));
            }
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;
    use url::form_urlencoded::parse;

    use super::*;

    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    /// An API server with these releases, of which two fit into an answer, and the fourth alone did not at first.
    fn client() -> Client {
        let alone = AtomicUsize::new(0);
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().as_bytes();
            let number = |name: &str| parse(query).find(|(found, _)| found == name)?.1.parse::<usize>().ok();
            let (from, limit) = (number("continue").unwrap_or(0), number("limit").expect("a page"));
            let end = NAMES.len().min(from + limit);
            let is_too_large =
                limit > 2 || (from..end).contains(&3) && (limit > 1 || alone.fetch_add(1, Ordering::SeqCst) == 0);
            let (code, answer) = if is_too_large {
                let reason = "RequestEntityTooLarge";
                (
                    413,
                    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 413, "reason": reason }),
                )
            } else {
                let release = |name: &&str| json!({ "metadata": { "name": name, "namespace": "fleet" } });
                let items: Vec<_> = NAMES[from..end].iter().map(release).collect();
                let next = if end < NAMES.len() {
                    end.to_string()
                } else {
                    String::new()
                };
                let metadata = json!({ "resourceVersion": "5", "continue": next });
                (
                    200,
                    json!({ "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items }),
                )
            };
            let answer = Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(answer.expect("an answer")) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn releases_with_much_metadata_keep_nobody_from_knowing_which_are_there() {
        let marks = marks(&client(), "").await.expect("the releases are listed");
        let expected = NAMES.map(|name| labels::part_of("ClusterStackRelease", "fleet", name));
        assert_eq!(marks, HashSet::from(expected));
    }
}
