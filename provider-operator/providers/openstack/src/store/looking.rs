//! What a look finds in a cloud: records of ours, and images of others. It only asks.

use std::{sync::atomic::Ordering, time::Duration};

use jiff::Timestamp;
use provider_plugin::{Attempt, CloudError, ErrorClass, Foreign, ImageId, ImageSpec, Reach, Record, Subject};
use serde_json::Value;
use tokio::time;

use super::{OpenStackStore, id_of};
use crate::{glance::Query, identity, options::Options, record};

/// How long the images may take to be listed that others give to everybody: a look has a minute for all that it asks.
const GIVEN: Duration = Duration::from_secs(15);
const VISIBILITY: &str = "visibility";
const COMMUNITY: &str = "community";

impl OpenStackStore {
    /// Images that are hidden and images that are not: a list has either.
    pub(super) async fn list_both(&self, query: &Query) -> Result<Vec<Value>, CloudError> {
        let mut images = Vec::new();
        for hidden in ["true", "false"] {
            images.extend(self.glance.list(&query.clone().with("os_hidden", hidden)).await?);
        }
        // A cloud that does not know hidden images may list all of them twice.
        images.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
        images.dedup_by(|one, other| one["id"] == other["id"]);
        Ok(images)
    }

    /// The image that was noted down, if that is enough to see and it is still this object's.
    async fn recorded(&self, subject: &Subject, project: &str) -> Result<Option<Value>, CloudError> {
        let Some(recorded) = subject.recorded.as_ref().filter(|_| subject.only_recorded) else {
            return Ok(None);
        };
        let image = self.glance.get(recorded).await?;
        Ok(image.filter(|image| record::marks(image, subject, project).is_some()))
    }

    async fn of_object(&self, subject: &Subject, spec: &ImageSpec, project: &str) -> Result<Vec<Value>, CloudError> {
        if let Some(image) = self.recorded(subject, project).await? {
            return Ok(vec![image]);
        }
        let query = Query::default()
            .with("owner", project)
            .with(identity::OWNER, subject.owner.as_str())
            .with(identity::OBJECT, &subject.object);
        let mut images = self.list_both(&query).await?;
        // Clouds that only look like OpenStack may not list by marks, and a list may be late.
        for id in subject.recorded.iter().chain(&subject.made) {
            if !has(&images, id) {
                images.extend(self.glance.get(id).await?);
            }
        }
        if let Some(attempt) = subject.attempt {
            let expected = self.expected(subject, spec, project, attempt, &images).await?;
            images.extend(expected);
        }
        // Of what is not ours nothing more is asked.
        images.retain(|image| record::marks(image, subject, project).is_some());
        Ok(images)
    }

    /// What has the id that a record of this attempt is given, if it is that one and was not seen yet.
    async fn expected(
        &self,
        subject: &Subject,
        spec: &ImageSpec,
        project: &str,
        attempt: Attempt,
        seen: &[Value],
    ) -> Result<Option<Value>, CloudError> {
        let id = id_of(spec, project, attempt);
        if has(seen, &id) {
            return Ok(None);
        }
        let image = self.glance.get(&id).await?;
        Ok(image.filter(|image| is_attempt(image, subject, project, attempt)))
    }

    pub(super) async fn records(
        &self,
        subject: &Subject,
        spec: &ImageSpec,
        options: Option<&Options>,
        project: &str,
    ) -> Result<Vec<Record>, CloudError> {
        let mut records = Vec::new();
        for image in self.of_object(subject, spec, project).await? {
            let mut tasks = None;
            if record::has_imports(&image)
                && let Some(id) = record::id(&image)
            {
                tasks = self.glance.tasks(&id).await?;
            }
            records.extend(record::record(
                &image,
                subject,
                project,
                options,
                tasks.as_deref(),
                Timestamp::now(),
            ));
        }
        records.sort_by(|one, other| (&one.key, one.attempt).cmp(&(&other.key, other.attempt)));
        Ok(records)
    }

    /// Images of this name: those of our project, and where they may be used all others too.
    async fn named(&self, subject: &Subject, project: &str) -> Result<Vec<Value>, CloudError> {
        let query = Query::default().with("name", &subject.name);
        if subject.reach == Reach::BesideOurs {
            return self.glance.list(&query.with("owner", project)).await;
        }
        let mut images = self.glance.list(&query).await?;
        if subject.reach == Reach::Everybody {
            images.extend(self.given(subject, &query).await?);
        }
        images.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
        images.dedup_by(|one, other| one["id"] == other["id"]);
        Ok(images)
    }

    /// Images that their owners give to everybody: only who asks for them is told of them. Anybody can keep the list from being read by what he puts into it,
    /// and nobody else's image waits for that: then there is none but the one that was noted down.
    async fn given(&self, subject: &Subject, query: &Query) -> Result<Vec<Value>, CloudError> {
        let query = query.clone().with(VISIBILITY, COMMUNITY);
        let Ok(listed) = time::timeout(GIVEN, self.glance.list(&query)).await else {
            let words = "the list of what other projects give to everybody takes too long";
            return self.used(subject, words).await;
        };
        match listed {
            Ok(images) => Ok(images),
            // The cloud is older than they are.
            Err(error) if error.class == ErrorClass::Invalid => Ok(Vec::new()),
            Err(error) => self.used(subject, &error.to_string()).await,
        }
    }

    /// What is used already of the images that are given to everybody, where they cannot be listed.
    async fn used(&self, subject: &Subject, error: &str) -> Result<Vec<Value>, CloudError> {
        if !self.told_of_given.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                name = subject.name,
                error,
                "unable to list the images that other projects give to everybody; as long as that is so, none of them is found by its bytes"
            );
        }
        let Some(recorded) = &subject.recorded else {
            return Ok(Vec::new());
        };
        let image = self.glance.get(recorded).await?;
        Ok(image
            .into_iter()
            .filter(|image| image[VISIBILITY] == COMMUNITY)
            .collect())
    }

    pub(super) async fn others(&self, subject: &Subject, project: &str) -> Result<Vec<Foreign>, CloudError> {
        let mut images = Vec::new();
        if subject.look_for_others {
            // A name can look like a list of names.
            let named = self.named(subject, project).await?.into_iter();
            images.extend(named.filter(|image| image["name"] == subject.name.as_str()));
        }
        if let Some(adopt) = &subject.adopt
            && !has(&images, adopt)
        {
            images.extend(self.glance.get(adopt).await?);
        }
        let others = images
            .iter()
            .filter_map(|image| record::foreign(image, subject, project));
        let mut others: Vec<Foreign> = others.collect();
        others.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(others)
    }
}

/// Whether an image is the record of this attempt, in our project.
pub(super) fn is_attempt(image: &Value, subject: &Subject, project: &str, attempt: Attempt) -> bool {
    let marks = record::marks(image, subject, project);
    marks.is_some_and(|marks| marks.key == subject.key && marks.attempt == attempt)
}

fn has(images: &[Value], id: &ImageId) -> bool {
    images.iter().any(|image| image["id"] == id.0.as_str())
}
