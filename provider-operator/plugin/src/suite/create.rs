//! Records are made once, whoever makes them.

use futures::future;

use super::{
    Broken, Harness, Held,
    lab::{Lab, ensure},
};
use crate::{Created, ImageStore, OwnerId, RecordState};

/// Of several calls for one attempt one makes the record, and the others find it: hidden, unverified, empty.
pub async fn create_is_once<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "create-is-once").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let others = [harness.store().await, harness.store().await];
    let (first, second, third) = future::join3(
        lab.store.create(&lab.image, 1),
        others[0].create(&lab.image, 1),
        others[1].create(&lab.image, 1),
    )
    .await;
    let created = [first?, second?, third?];
    let is_new = |created: &&Created| matches!(created, Created::New(_));
    let new = created.iter().filter(is_new).count();
    ensure!(new == 1, "{new} of {created:?} are new");
    let mut ids = created.iter().map(|created| match created {
        Created::New(id) | Created::Ours(id) => Some(id),
        Created::Taken => None,
    });
    let first = ids.next().flatten();
    ensure!(
        first.is_some() && ids.all(|id| id == first),
        "not all have the same id: {created:?}"
    );
    let records = lab.observe().await?.records;
    ensure!(records.len() == 1, "one record was made, and there are {records:?}");
    let record = &records[0];
    ensure!(Some(&record.id) == first, "the record has another id than {created:?}");
    ensure!(
        record.state == RecordState::Empty && !record.shown && record.verified.is_none(),
        "a new record is hidden, unverified and empty, and it is {record:?}"
    );
    ensure!(
        record.attempt == 1 && record.key == lab.image.subject.key,
        "a record has the marks that it was made with, and it is {record:?}"
    );
    lab.leaves(&[&record.id]).await
}

/// What others have is never answered as ours, not even where everything else is the same, and stays as it is.
pub async fn create_of_a_taken_id_is_taken<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "create-taken").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let before = lab.record(&id).await?;
    let stranger = OwnerId::parse("a-stranger").ok_or_else(|| Broken::new("a word is an owner"))?;
    let mut theirs = lab.image.clone();
    theirs.subject.owner = stranger.clone();
    for chosen in [None, Some(id.clone())] {
        theirs.chosen_id = chosen;
        match lab.store.create(&theirs, 1).await? {
            Created::Taken => {}
            Created::New(other) | Created::Ours(other) => {
                ensure!(other != id, "the record of another owner was given away");
                lab.store.discard(&other, &theirs.subject.marked(1)).await?;
            }
        }
    }
    let after = lab.record(&id).await?;
    ensure!(before == after, "the record was {before:?} and is {after:?}");
    lab.leaves(&[&id]).await
}
