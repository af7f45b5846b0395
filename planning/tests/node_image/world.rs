//! Releases and images on one API server, and a driver that performs what is decided. Writes name the version that was seen.

use std::collections::{BTreeMap, BTreeSet};

use crds::conditions::lint;
use jiff::{SignedDuration, Timestamp};
use planning::node_image::{Files, ImageEntry, ImageView, ReleaseAction, ReleaseObserved, plan};

use crate::table::{assets, now, observed, owner};

/// One image object.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) view: ImageView,
    version: u64,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) releases: BTreeMap<String, ReleaseObserved>,
    pub(crate) images: BTreeMap<String, Image>,
    passed: i64,
    made: u64,
    /// Status writes since somebody looked.
    pub(crate) writes: u32,
}

impl World {
    pub(crate) fn publish(&mut self, name: &str, images: Vec<ImageEntry>) {
        let release = ReleaseObserved {
            name: name.to_owned(),
            uid: owner(name).uid,
            finalizer: false,
            ..observed(images)
        };
        self.releases.insert(name.to_owned(), release);
    }

    pub(crate) fn replace(&mut self, name: &str, images: Vec<ImageEntry>) {
        let assets = assets();
        self.release(name).files = Files::Ready { images, assets };
    }

    pub(crate) fn release(&mut self, name: &str) -> &mut ReleaseObserved {
        self.releases.get_mut(name).expect("a release")
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.release(name).deleting = true;
    }

    fn now(&self) -> Timestamp {
        now() + SignedDuration::from_secs(self.passed)
    }

    /// What a release sees of the images: those that it owns, and those with a name that it wants.
    fn look(&self, name: &str) -> ReleaseObserved {
        let mut release = self.releases[name].clone();
        let wanted: BTreeSet<String> = match &release.files {
            Files::Ready { images, .. } => images.iter().map(|entry| entry.name.clone()).collect(),
            _ => BTreeSet::new(),
        };
        let concerns = |(image, found): &(&String, &Image)| {
            wanted.contains(*image) || found.view.owners.iter().any(|owner| owner.uid == release.uid)
        };
        let objects = self.images.iter().filter(concerns).map(|(image, found)| {
            let view = ImageView {
                version: found.version.to_string(),
                ..found.view.clone()
            };
            (image.clone(), view)
        });
        release.objects = objects.collect();
        release
    }

    /// What a release would do now, and its status.
    pub(crate) fn pass(&mut self, name: &str) -> Vec<ReleaseAction> {
        let seen = self.look(name);
        let plan = plan(&seen, self.now());
        let generation = plan.status.observed_generation.unwrap_or_default();
        assert_eq!(
            lint(&plan.status.conditions, seen.generation, generation),
            [],
            "{plan:#?}"
        );
        if plan.status_due {
            let at = self.now();
            self.writes += 1;
            let release = self.release(name);
            release.status = plan.status;
            release.status_written_at = Some(at);
        }
        plan.actions
    }

    /// Performs what was decided, perhaps long ago; a write of what has changed meanwhile is refused.
    pub(crate) fn perform(&mut self, release: &str, actions: Vec<ReleaseAction>) {
        for action in actions {
            self.perform_one(release, action);
        }
    }

    fn perform_one(&mut self, release: &str, action: ReleaseAction) {
        match action {
            ReleaseAction::AddFinalizer => self.release(release).finalizer = true,
            ReleaseAction::RemoveFinalizer => drop(self.releases.remove(release)),
            ReleaseAction::CreateImage { name, spec } => {
                self.made += 1;
                let view = ImageView {
                    uid: format!("image {}", self.made),
                    owners: BTreeSet::from([owner(release)]),
                    content: spec["content"].as_str().unwrap_or_default().to_owned(),
                    spec,
                    ..ImageView::default()
                };
                self.images.entry(name).or_insert(Image { view, version: 1 });
            }
            ReleaseAction::AdoptImage { name, version } => {
                self.write(&name, &version, |view| {
                    view.owners.insert(owner(release));
                });
            }
            ReleaseAction::DropOwner { name, version } => {
                self.write(&name, &version, |view| {
                    view.owners.remove(&owner(release));
                });
            }
            ReleaseAction::UpdateImage { name, version, spec } => self.write(&name, &version, |view| {
                spec["content"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut view.content);
                view.spec = spec;
                view.ready = false;
            }),
            ReleaseAction::DeleteImage { name, uid, version } => self.write(&name, &version, |view| {
                assert_eq!(view.uid, uid);
                view.deleting = true;
            }),
        }
    }

    fn write(&mut self, name: &str, version: &str, change: impl FnOnce(&mut ImageView)) {
        let Some(image) = self.images.get_mut(name) else { return };
        if image.version.to_string() == version {
            change(&mut image.view);
            image.version += 1;
        }
    }

    /// Images become ready, and those that go are gone.
    pub(crate) fn bring_images(&mut self) {
        self.images.retain(|_, image| !image.view.deleting);
        for image in self.images.values_mut().filter(|image| !image.view.ready) {
            image.view.ready = true;
            image.version += 1;
        }
    }

    /// Everybody works until there is nothing to do.
    pub(crate) fn settle(&mut self) {
        const MANY: u32 = 30;
        for _ in 0..MANY {
            self.passed += 10;
            let names: Vec<String> = self.releases.keys().cloned().collect();
            let writes = self.writes;
            let mut is_quiet = true;
            for name in names {
                let actions = self.pass(&name);
                is_quiet &= actions.is_empty();
                self.perform(&name, actions);
            }
            let before = self.images.len();
            self.bring_images();
            if is_quiet && writes == self.writes && before == self.images.len() {
                return;
            }
        }
        panic!("it does not end: {self:#?}");
    }

    pub(crate) fn owners(&self, image: &str) -> Vec<&str> {
        let image = self.images.get(image);
        let owners = image.into_iter().flat_map(|image| &image.view.owners);
        owners.map(|owner| owner.name.as_str()).collect()
    }

    pub(crate) fn ready(&self) -> Vec<&str> {
        let ready = self.releases.values().filter(|release| release.status.ready);
        ready.map(|release| release.name.as_str()).collect()
    }
}
