//! Whether the release whose mark an object carries is there, as the API server says. The watch of releases may be behind that of objects, and may be
//! restricted: what it does not show, somebody else may look after.

use std::collections::HashSet;

use crds::{ClusterStackRelease, labels};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use operator_kit::failure::words_of;
use operator_kit::object::ObjectKey;
use operator_kit::objects::Seen;

use super::claims::{mark, mark_handle};
use crate::context::Context;
use crate::shared_answer::SharedAnswer;

/// Said of an object that carries another release's mark.
pub(super) const FOREIGN: &str = "the object belongs to another release";

/// Metadata of releases per page.
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

async fn marks(client: &Client) -> Result<HashSet<String>, kube::Error> {
    let api = Api::<ClusterStackRelease>::all(client.clone());
    let mut marks = HashSet::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let list = api.list_metadata(&page).await?;
        let of = |namespace: &str, name: &str| labels::part_of("ClusterStackRelease", namespace, name);
        let found = list.items.iter();
        marks.extend(found.map(|release| of(&release.namespace().unwrap_or_default(), &release.name_any())));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(marks),
        }
    }
}
