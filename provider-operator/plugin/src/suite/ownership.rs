//! What is ours is listed exactly, and looking changes nothing.

use super::{
    Broken, Harness, Held, key_of,
    lab::{Lab, class, ensure},
};
use crate::{Discarded, ErrorClass, ImageId, ImageStore, OwnerId};

/// An image that was given away stays, is nobody's, and is not touched any more.
pub async fn relinquish_then_not_owned<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let mut lab = Lab::new(harness, "relinquish").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    lab.send(&id).await?;
    lab.is_published(&id).await?;
    lab.store.relinquish(&id, lab.owner(), Some(lab.owner())).await?;
    let owned = lab.store.owned(lab.owner()).await?;
    ensure!(owned.is_empty(), "what was given away is owned: {owned:?}");
    // Where the marks were all that made a record of it, there is none any more.
    match lab.store.discard(&id, &lab.image.subject.marked(1)).await {
        Ok(Discarded::WasGone) => {}
        answer => {
            let refused = class(answer, "a deletion of what was given away")?;
            ensure!(
                refused == ErrorClass::NotOurs,
                "a deletion of what was given away is {refused}"
            );
        }
    }
    lab.image.subject.look_for_others = true;
    let observed = lab.observe().await?;
    ensure!(observed.records.is_empty(), "what was given away is {observed:?}");
    let is_there = observed.others.iter().any(|other| other.is_usable);
    ensure!(is_there, "what was given away is not there any more: {observed:?}");
    Ok(Held::Holds)
}

/// Everything of an owner is listed, of all objects, keys and attempts, and nothing of another one.
pub async fn owned_is_exact<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "owned-a").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let mut second = Lab::new(harness, "owned-b").await;
    let mut strange = Lab::new(harness, "owned-c").await;
    second.image.subject.owner = lab.owner().clone();
    strange.image.subject.owner = OwnerId::parse("a-stranger").ok_or_else(|| Broken::new("a word is an owner"))?;
    let mut wanted = Vec::new();
    for (lab, attempt) in [(&lab, 1), (&lab, 2), (&second, 1)] {
        let id = lab.create(attempt).await?;
        wanted.push((
            lab.image.subject.object.clone(),
            lab.image.subject.key.clone(),
            attempt,
            id,
            false,
        ));
    }
    let theirs = strange.create(1).await?;
    let last = wanted.len() - 1;
    second.send(&wanted[last].3).await?;
    second.is_published(&wanted[last].3).await?;
    wanted[last].4 = true;
    wanted.sort();
    let listed = |owned: Vec<crate::Owned>| {
        let rows = owned.into_iter();
        rows.map(|owned| (owned.object, owned.key, owned.attempt, owned.id, owned.verified))
            .collect::<Vec<_>>()
    };
    let owned = listed(lab.store.owned(lab.owner()).await?);
    ensure!(owned == wanted, "{wanted:?} are owned, and listed {owned:?}");
    let owned = listed(strange.store.owned(strange.owner()).await?);
    let is_theirs = owned.len() == 1 && owned[0].3 == theirs;
    ensure!(is_theirs, "the stranger owns {theirs}, and listed is {owned:?}");
    strange.leaves(&[&theirs]).await?;
    let ours: Vec<&ImageId> = wanted.iter().map(|(_, _, _, id, _)| id).collect();
    lab.leaves(&ours).await
}

/// What another installation holds is its owner's as before, is told with its holder to both of them, and goes only for whoever says who holds it.
pub async fn held_by_another<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "held").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let word = |word: &str| OwnerId::parse(word).ok_or_else(|| Broken::new("a word is an owner"));
    let (owner, holder, third) = (lab.owner().clone(), word("another-holder")?, word("a-stranger")?);
    let id = lab.create(1).await?;
    let made = lab.record(&id).await?;
    ensure!(
        made.holder == owner,
        "what was just made is held by its owner: {made:?}"
    );
    let refused = class(lab.store.hold(&id, &third, &third).await, "holding a stranger's image")?;
    ensure!(
        refused == ErrorClass::NotOurs,
        "holding a stranger's image is {refused}"
    );
    // Before its bytes come, and once more.
    for _ in 0..2 {
        lab.store.hold(&id, &owner, &holder).await?;
        let held = lab.record(&id).await?;
        ensure!(
            held.holder == holder && held.state == made.state && held.drift == made.drift,
            "what is held is {held:?}, and was {made:?}"
        );
    }
    lab.send(&id).await?;
    lab.is_published(&id).await?;
    let published = lab.record(&id).await?;
    ensure!(published.holder == holder, "who holds it was forgotten: {published:?}");
    for asking in [&owner, &holder] {
        let listed = lab.store.owned(asking).await?;
        let is_told = matches!(listed.as_slice(), [one] if one.id == id && one.owner == owner && one.holder == holder);
        ensure!(is_told, "{asking} is told {listed:?}");
    }
    let strange = lab.store.owned(&third).await?;
    ensure!(strange.is_empty(), "a stranger is told {strange:?}");
    let mut ours = lab.image.subject.marked(1);
    ours.holder = Some(owner.clone());
    let answers = [
        (lab.store.discard(&id, &ours).await.map(drop), "deleted"),
        (lab.store.relinquish(&id, &owner, Some(&owner)).await, "given away"),
    ];
    for (answer, done) in answers {
        let refused = class(answer, "clearing away what another one holds")?;
        ensure!(
            refused == ErrorClass::NotOurs,
            "what another one holds is {done}: {refused}"
        );
    }
    lab.record(&id).await?;
    // It comes back to its owner.
    lab.store.hold(&id, &owner, &owner).await?;
    let back = lab.store.owned(&holder).await?;
    ensure!(back.is_empty(), "what was given back is told as held: {back:?}");
    lab.store.discard(&id, &ours).await?;
    lab.leaves(&[]).await
}

/// Two looks see the same, and nothing comes of looking.
pub async fn observe_writes_nothing<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let mut lab = Lab::new(harness, "observe").await;
    let skipped = lab.without_transfers();
    for look_for_others in [false, true] {
        lab.image.subject.look_for_others = look_for_others;
        let before = lab.observe().await?;
        let after = lab.observe().await?;
        ensure!(before == after, "looked at twice it was {before:?} and then {after:?}");
        ensure!(
            before.records.is_empty(),
            "before anything was made there is {before:?}"
        );
    }
    if let Some(skipped) = skipped {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let empty = [lab.observe().await?, lab.observe().await?];
    ensure!(empty[0] == empty[1], "looked at twice it was {empty:?}");
    lab.send(&id).await?;
    lab.is_published(&id).await?;
    let mut whole = [lab.observe().await?, lab.observe().await?];
    ensure!(whole[0] == whole[1], "looked at twice it was {whole:?}");
    ensure!(
        empty[0].records[0].marker != whole[0].records[0].marker,
        "nothing shows that it moved: {whole:?}"
    );
    // The hint which record it is may be wrong, and says nothing else.
    for recorded in [id.clone(), ImageId("00000000-0000-0000-0000-000000000000".to_owned())] {
        lab.image.subject.recorded = Some(recorded);
        whole[1] = lab.observe().await?;
        ensure!(
            whole[0].records == whole[1].records,
            "a hint made another thing of it: {whole:?}"
        );
    }
    lab.leaves(&[&id]).await
}

/// What the object had before it wanted something else is seen.
pub async fn observe_other_keys<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let mut lab = Lab::new(harness, "other-keys").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let mut ids = vec![lab.create(1).await?];
    lab.image.subject.key = key_of("something else");
    ids.push(lab.create(2).await?);
    ids.push(lab.create(3).await?);
    let records = lab.observe().await?.records;
    let is_sorted = records.is_sorted_by_key(|record| (record.key.clone(), record.attempt));
    let mut found: Vec<ImageId> = records.iter().map(|record| record.id.clone()).collect();
    ids.sort();
    found.sort();
    ensure!(found == ids && is_sorted, "{ids:?} were made, and seen {records:?}");
    // Another object has none of them.
    let (mut image, _) = harness.image("other-keys");
    "suite/another-object".clone_into(&mut image.subject.object);
    let others = lab.store.observe(&image.subject, &image).await?;
    ensure!(others.records.is_empty(), "another object has {others:?}");
    lab.leaves(&ids.iter().collect::<Vec<_>>()).await
}

/// What is not as the options say is seen, and as they say when it was amended.
pub async fn drift_is_seen_and_amended<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let mut lab = Lab::new(harness, "drift").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let Some(amended) = harness.amended(&lab.image) else {
        return Ok(Held::Skipped(
            "images of this provider have nothing that can be amended",
        ));
    };
    let id = lab.create(1).await?;
    lab.send(&id).await?;
    lab.is_published(&id).await?;
    let drift = lab.record(&id).await?.drift;
    ensure!(drift.is_empty(), "what was just made drifts: {drift:?}");
    lab.image = amended;
    let drift = lab.record(&id).await?.drift;
    ensure!(
        !drift.is_empty() && drift.is_sorted(),
        "what was amended shows {drift:?}"
    );
    lab.store.amend(&id, &lab.image).await?;
    let record = lab.record(&id).await?;
    ensure!(
        record.drift.is_empty() && record.shown,
        "after it was amended it is {record:?}"
    );
    lab.leaves(&[&id]).await
}
