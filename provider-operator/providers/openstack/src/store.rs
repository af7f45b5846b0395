//! The images of one cloud, as the plugin asks for them. It decides what is ours by marks, and what a call of Glance means for a record; the
//! rest is what the cloud says.

mod looking;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use provider_plugin::{
    Attempt, ByteStream, Capabilities, CloudError, Content, Created, Discarded, ErrorClass, ImageId, ImageSpec,
    ImageStore, Marked, Observed, Owned, OwnerId, Preflight, Quota, Report, Sent, Subject,
};
use serde_json::Value;

use self::looking::is_attempt;
use crate::{
    glance::{Change, Creation, GLANCE_DIRECT, Glance, Query, Usage, WEB_DOWNLOAD},
    identity::{self, Marks, image_id, is_owned},
    options::Options,
    record,
    session::Session,
};

const MIB: u64 = 1 << 20;

/// The images of one cloud.
#[derive(Debug)]
pub struct OpenStackStore {
    glance: Glance,
    /// Found out when the first image was made: the cloud knows no hidden images.
    knows_no_hidden: AtomicBool,
    /// Found out when the first image was to be staged: the cloud makes no images of what is staged.
    has_no_stage: AtomicBool,
    /// Whether somebody was told that the images cannot be listed that others give to everybody.
    told_of_given: AtomicBool,
}

impl OpenStackStore {
    /// Asks nobody yet.
    pub fn new(session: Arc<Session>) -> Self {
        Self {
            glance: Glance::new(session),
            knows_no_hidden: AtomicBool::new(false),
            has_no_stage: AtomicBool::new(false),
            told_of_given: AtomicBool::new(false),
        }
    }

    /// The client of its image service.
    pub fn glance(&self) -> &Glance {
        &self.glance
    }

    /// One of ours, or the reason why not.
    async fn ours(&self, operation: &'static str, id: &ImageId, owner: &OwnerId) -> Result<Option<Value>, CloudError> {
        let project = self.glance.session().project().await?;
        let image = self.glance.get(id).await?;
        let refused = |words: String| Err(CloudError::new(ErrorClass::NotOurs, operation, words));
        match image {
            Some(image) if !is_owned(&image, owner) => {
                refused(format!("the image {id} does not carry our mark; it is left alone"))
            }
            Some(image) if !record::is_in(&image, &project) => {
                refused(format!("the image {id} lies in another project; it is left alone"))
            }
            image => Ok(image),
        }
    }

    async fn our_record(&self, operation: &'static str, id: &ImageId, owner: &OwnerId) -> Result<Value, CloudError> {
        let image = self.ours(operation, id, owner).await?;
        image.ok_or_else(|| {
            let words = format!("the image {id} is not there");
            CloudError::new(ErrorClass::Gone, operation, words)
        })
    }

    async fn make(&self, image: &ImageSpec, attempt: Attempt, id: &ImageId) -> Result<Creation, CloudError> {
        let options = Options::read(image)?;
        let is_hidden = !self.knows_no_hidden.load(Ordering::Relaxed);
        let made = self.glance.create(&options.body(image, attempt, id, is_hidden)).await;
        match made {
            Err(error) if is_hidden && error.class == ErrorClass::Invalid && error.message.contains("os_hidden") => {
                self.knows_no_hidden.store(true, Ordering::Relaxed);
                self.glance.create(&options.body(image, attempt, id, false)).await
            }
            made => made,
        }
    }

    async fn check_stores(&self, image: &ImageSpec) -> Result<(), CloudError> {
        if image.stores.is_empty() {
            return Ok(());
        }
        let known = self.glance.stores().await?;
        match image.stores.iter().find(|store| !known.contains(store)) {
            None => Ok(()),
            Some(store) => {
                let words = match known.as_slice() {
                    [] => format!("the cloud has but one store, and none to choose by the name {store:?}"),
                    known => format!("the cloud has no store {store:?}; it has {}", known.join(", ")),
                };
                Err(CloudError::new(ErrorClass::Invalid, "prepare the image", words))
            }
        }
    }
}

/// The id that a record of this attempt is given, where the cloud lets us choose.
fn id_of(image: &ImageSpec, project: &str, attempt: Attempt) -> ImageId {
    let subject = &image.subject;
    let chosen = image.chosen_id.clone().filter(|_| attempt == 1);
    chosen.unwrap_or_else(|| image_id(project, &subject.owner, &subject.key, attempt))
}

/// Refuses what another one holds than this, where one is told.
fn check_holder(
    operation: &'static str,
    id: &ImageId,
    marks: Option<&Marks>,
    holder: Option<&OwnerId>,
) -> Result<(), CloudError> {
    match marks.zip(holder) {
        Some((marks, holder)) if marks.holder != *holder => {
            let words = format!("another installation works on the image {id} now; it is left alone");
            Err(CloudError::new(ErrorClass::NotOurs, operation, words))
        }
        _ => Ok(()),
    }
}

/// The image was there a moment ago: what is not there is the import.
fn of_import(error: CloudError) -> CloudError {
    match error.class {
        ErrorClass::Gone => CloudError {
            class: ErrorClass::Unsupported,
            ..error
        },
        _ => error,
    }
}

#[async_trait]
impl ImageStore for OpenStackStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            server_side: true,
            staged: !self.has_no_stage.load(Ordering::Relaxed),
            transfers: true,
        }
    }

    async fn observe(&self, subject: &Subject, image: &ImageSpec) -> Result<Observed, CloudError> {
        // What cannot become an image is still deleted, and nothing of it is brought in line.
        let options = Options::read(image).ok();
        let project = self.glance.session().project().await?;
        Ok(Observed {
            records: self.records(subject, image, options.as_ref(), &project).await?,
            others: self.others(subject, &project).await?,
        })
    }

    async fn preflight(&self, image: &ImageSpec, bytes: Option<u64>) -> Result<Preflight, CloudError> {
        Options::read(image)?;
        self.check_stores(image).await?;
        let usage = self.glance.usage("image_size_total").await?;
        let free = usage.and_then(Usage::free);
        let requested = bytes.map(|bytes| bytes / MIB);
        if let (Some(usage), Some(free), Some(requested)) = (usage, free, requested)
            && requested > free
        {
            let words = format!("it has {requested} MiB, and the project has room for {free} MiB of images");
            let error = CloudError::new(ErrorClass::Quota, "prepare the image", words);
            return Err(CloudError {
                quota: Some(Box::new(Quota {
                    resource: "image_size_total".to_owned(),
                    limit: usage.limit,
                    used: Some(usage.used),
                    requested: Some(requested),
                })),
                ..error
            });
        }
        let no_hidden =
            "this cloud knows no hidden images: the image can be seen, under its name, before it is verified";
        let no_hidden = self
            .knows_no_hidden
            .load(Ordering::Relaxed)
            .then(|| no_hidden.to_owned());
        Ok(Preflight {
            warnings: no_hidden.into_iter().collect(),
        })
    }

    async fn create(&self, image: &ImageSpec, attempt: Attempt) -> Result<Created, CloudError> {
        let subject = &image.subject;
        let project = self.glance.session().project().await?;
        let id = id_of(image, &project, attempt);
        match self.make(image, attempt, &id).await? {
            // Clouds that only look like OpenStack may not let us choose.
            Creation::Made(made) => Ok(Created::New(record::id(&made).unwrap_or(id))),
            Creation::Taken => {
                let there = self.glance.get(&id).await?;
                let is_ours = there.is_some_and(|there| is_attempt(&there, subject, &project, attempt));
                Ok(if is_ours { Created::Ours(id) } else { Created::Taken })
            }
        }
    }

    async fn transfer(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        _report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        let opened = content.open().await;
        let body = opened.map_err(|error| CloudError::of_content("read the image at its source", error))?;
        let store = image.stores.first().map(String::as_str);
        self.glance.upload(id, store, body).await
    }

    async fn stage(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        _report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        let operation = "stage the image";
        let methods = self.glance.methods().await?;
        if !methods.iter().any(|method| method == GLANCE_DIRECT) {
            self.has_no_stage.store(true, Ordering::Relaxed);
            let words = "the cloud has no stage for images: glance-direct is not among its import methods";
            return Err(CloudError::new(ErrorClass::Unsupported, operation, words));
        }
        self.our_record(operation, id, &image.subject.owner).await?;
        let opened = content.open().await;
        let body = opened.map_err(|error| CloudError::of_content("read the image at its source", error))?;
        let sent = self.glance.stage(id, body).await?;
        self.glance.patch(id, &[Change::set(identity::IMPORT, "begun")]).await?;
        let begun = self.glance.glance_direct(id, &image.stores).await;
        begun.map(|()| sent).map_err(of_import)
    }

    async fn import(&self, id: &ImageId, image: &ImageSpec, uri: &str) -> Result<(), CloudError> {
        let methods = self.glance.methods().await?;
        if !methods.iter().any(|method| method == WEB_DOWNLOAD) {
            let words = "the cloud does not fetch images itself: web-download is not among its import methods";
            return Err(CloudError::new(ErrorClass::Unsupported, "import the image", words));
        }
        self.our_record("import the image", id, &image.subject.owner).await?;
        self.glance.patch(id, &[Change::set(identity::IMPORT, "begun")]).await?;
        let begun = self.glance.web_download(id, uri, &image.stores).await;
        let Err(refused) = begun.map_err(of_import) else {
            return Ok(());
        };
        if matches!(refused.class, ErrorClass::Unsupported | ErrorClass::Invalid) {
            // Nothing was begun, and nobody should wait for it. Where the mark stays, it is waited for as long as for an import of an old cloud.
            let unmarked = self
                .glance
                .patch(id, &[Change::Remove(identity::IMPORT.to_owned())])
                .await;
            drop(unmarked);
        }
        Err(refused)
    }

    async fn read_back(&self, id: &ImageId) -> Result<ByteStream, CloudError> {
        self.glance.read(id).await
    }

    async fn publish(&self, id: &ImageId, image: &ImageSpec, verified: &str) -> Result<(), CloudError> {
        let operation = "publish the image";
        let options = Options::read(image)?;
        let found = self.our_record(operation, id, &image.subject.owner).await?;
        if found["status"] != "active" {
            let words = format!("the image {id} is {}, and not active", found["status"]);
            return Err(CloudError::new(ErrorClass::State, operation, words));
        }
        let mut changes = vec![(identity::VERIFIED, Value::from(verified))];
        if !found["os_hidden"].is_null() {
            changes.push(("os_hidden", options.hidden.into()));
        }
        changes.extend(options.protected.map(|protected| ("protected", protected.into())));
        changes.retain(|(field, wanted)| found[*field] != *wanted);
        if changes.is_empty() {
            return Ok(());
        }
        let changes: Vec<Change> = changes
            .into_iter()
            .map(|(field, wanted)| Change::set(field, wanted))
            .collect();
        self.glance.patch(id, &changes).await.map(drop)
    }

    async fn amend(&self, id: &ImageId, image: &ImageSpec) -> Result<(), CloudError> {
        let options = Options::read(image)?;
        let found = self.our_record("amend the image", id, &image.subject.owner).await?;
        let changes: Vec<Change> = options
            .differences(&found)
            .into_iter()
            .map(|(_, change)| change)
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.glance.patch(id, &changes).await.map(drop)
    }

    async fn hold(&self, id: &ImageId, owner: &OwnerId, holder: &OwnerId) -> Result<(), CloudError> {
        let found = self.our_record("take the image over", id, owner).await?;
        if Marks::of(&found).is_some_and(|marks| marks.holder == *holder) {
            return Ok(());
        }
        let mark = Change::set(identity::HOLDER, holder.as_str());
        self.glance.patch(id, &[mark]).await.map(drop)
    }

    async fn discard(&self, id: &ImageId, marked: &Marked) -> Result<Discarded, CloudError> {
        let operation = "delete the image";
        let Some(image) = self.ours(operation, id, &marked.owner).await? else {
            return Ok(Discarded::WasGone);
        };
        let is_meant = |marks: &Marks| marks.object == marked.object && marks.attempt == marked.attempt;
        let marks = Marks::of(&image).filter(is_meant);
        check_holder(operation, id, marks.as_ref(), marked.holder.as_ref())?;
        if marks.is_none() {
            let Marked { object, attempt, .. } = marked;
            let words = format!("the image {id} is not that of {object} with attempt {attempt}; it is left alone");
            return Err(CloudError::new(ErrorClass::NotOurs, operation, words));
        }
        if image["status"] == "pending_delete" {
            return Ok(Discarded::Going);
        }
        if image["protected"] == true {
            self.glance.patch(id, &[Change::set("protected", false)]).await?;
        }
        let was_there = self.glance.delete(id).await?;
        Ok(if was_there { Discarded::Gone } else { Discarded::WasGone })
    }

    async fn relinquish(&self, id: &ImageId, owner: &OwnerId, holder: Option<&OwnerId>) -> Result<(), CloudError> {
        let operation = "let go of the image";
        let image = self.our_record(operation, id, owner).await?;
        check_holder(operation, id, Marks::of(&image).as_ref(), holder)?;
        let marks = identity::MARKS.iter().filter(|mark| image[**mark].is_string());
        let mut changes: Vec<Change> = marks.map(|mark| Change::Remove((*mark).to_owned())).collect();
        let tags = image["tags"].as_array().into_iter().flatten();
        let tags: Vec<Value> = tags.filter(|tag| *tag != identity::TAG).cloned().collect();
        changes.push(Change::set("tags", tags));
        self.glance.patch(id, &changes).await.map(drop)
    }

    async fn owned(&self, owner: &OwnerId) -> Result<Vec<Owned>, CloudError> {
        let project = self.glance.session().project().await?;
        let mut images = Vec::new();
        for mark in [identity::OWNER, identity::HOLDER] {
            let query = Query::default().with("owner", &project).with(mark, owner.as_str());
            images.extend(self.list_both(&query).await?);
        }
        images.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
        images.dedup_by(|one, other| one["id"] == other["id"]);
        let mut all: Vec<Owned> = images.iter().filter_map(|image| record::owned(image, owner)).collect();
        all.sort_by(|one, other| (&one.object, &one.key, one.attempt).cmp(&(&other.object, &other.key, other.attempt)));
        Ok(all)
    }
}
