//! Whether the release whose mark an object carries is there, as the API server says. The watch of releases may be behind that of objects, and may be
//! restricted: what it does not show, somebody else may look after.

use std::collections::HashSet;

use crds::{ClusterStackRelease, labels};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use operator_kit::failure::words_of;
use operator_kit::object::ObjectKey;
use operator_kit::objects::Seen;
use operator_kit::pages::{Oversized, Pages};

use super::claims::{mark, mark_handle};
use crate::context::Context;
use crate::shared_answer::SharedAnswer;

/// Said of an object that carries another release's mark.
pub(super) const FOREIGN: &str = "the object belongs to another release";

/// Metadata of releases per page, where they fit.
const PAGE_SIZE: u32 = 250;

/// The marks of all releases that there are, when somebody asked last.
pub(crate) type LiveMarks = SharedAnswer<HashSet<String>, kube::Error>;

/// Refuses where the release is there whose mark an object carries, or where nobody can tell. What becomes of the objects of releases that are watched
/// has been decided before.
pub(super) async fn left_behind(context: &Context, key: &ObjectKey) -> Result<(), String> {
    let Some(seen) = context.objects.get(key) else {
        return Ok(());
    };
    let handles = [mark_handle(&seen.part_of)];
    let is_marked_so = |release: &ClusterStackRelease| mark(release) == *seen.part_of;
    if !context.releases.find_everywhere(&handles, is_marked_so).is_empty() {
        return Ok(());
    }
    let is_there = |marks: &HashSet<String>| marks.contains(&*seen.part_of);
    match context.live_marks.ask(marks(&context.client), is_there).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(FOREIGN.to_owned()),
        Err(error) => Err(format!(
            "{FOREIGN}, and whether that is still there nobody can tell ({}); if it is gone, remove the label {} from the object",
            words_of(&error),
            labels::PART_OF
        )),
    }
}

/// Takes note of an object that another release has made before the watch showed it: what becomes of it is decided anew.
pub(super) fn note_foreign(context: &Context, key: &ObjectKey, live: &DynamicObject) {
    if let Some(seen) = Seen::of(&live.metadata, labels::PART_OF) {
        context.objects.note(key, seen);
    }
}

/// One whose metadata is too large is there as the others are.
async fn marks(client: &Client) -> Result<HashSet<String>, kube::Error> {
    let api = Api::<PartialObjectMeta<ClusterStackRelease>>::all(client.clone());
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
                let Some(Oversized { namespace, name, .. }) = Oversized::of(&error) else {
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
        let marks = marks(&client()).await.expect("the releases are listed");
        let expected = NAMES.map(|name| labels::part_of("ClusterStackRelease", "fleet", name));
        assert_eq!(marks, HashSet::from(expected));
    }
}
