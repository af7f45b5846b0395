//! Who plays: a stack, its releases and the moments at which they are published. Knows files, not the API server.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use crds::names::{Channel, ReleaseStem, ReleaseTag, StackVersion};
use e2e::releases::{Releases, StackSource, harbor_tag};

use super::images::{Disk, Images};

/// A stack and those of its versions that have a part.
pub(super) struct Cast {
    /// What the operator sees.
    published: Releases,
    /// Everything that may be published.
    store: Releases,
    /// The version that is there from the beginning.
    pub(super) first: ReleaseTag,
    /// The version that appears later; absent when the stack has only one.
    pub(super) second: Option<ReleaseTag>,
    /// The tag under which something unusable appears.
    pub(super) broken: ReleaseTag,
    /// The version that needs another node image, and that nobody wants before it is there; only where there are node images.
    pub(super) unwanted: Option<ReleaseTag>,
    /// The version whose node image has to be built first; only where that can be shown.
    pub(super) built: Option<ReleaseTag>,
    breakage: Breakage,
}

/// What is wrong with the broken release.
enum Breakage {
    /// Its chart ends in the middle.
    CutOff,
    /// It holds the files of another release.
    FilesOf(ReleaseTag),
}

impl Cast {
    /// Our own stack in its three versions, packed by the built `kubectl-stacks`.
    pub(super) fn harbor(folder: &Path) -> Result<Self> {
        let store = Releases::at(&folder.join("store"))?;
        let mut tags = Vec::new();
        for version in ["v1", "v2", "v3"] {
            store.publish_harbor(version, version)?;
            tags.push(harbor_tag(version).parse::<ReleaseTag>()?);
        }
        let [first, second, broken] = tags.try_into().ok().context("three versions make three tags")?;
        Ok(Self {
            published: Releases::at(&folder.join("releases"))?,
            store,
            first,
            second: Some(second),
            broken,
            unwanted: None,
            built: None,
            breakage: Breakage::CutOff,
        })
    }

    /// The same stack with node images: its versions need the first one, one more version needs the next, and one that has to be built.
    pub(super) fn harbor_with(images: &Images, folder: &Path) -> Result<Self> {
        let store = Releases::at(&folder.join("store"))?;
        let pack = |version: &str, disk: &Disk| -> Result<ReleaseTag> {
            let stack = StackSource::harbor(version)?;
            images.ask_for(disk, &stack)?;
            Ok(store.publish_next(&stack.path())?.parse()?)
        };
        let (first, second) = (pack("v1", &images.first)?, pack("v2", &images.first)?);
        let (broken, unwanted) = (pack("v3", &images.first)?, pack("v1", &images.next)?);
        let built = images.built.as_ref().map(|disk| pack("v2", disk)).transpose()?;
        Ok(Self {
            published: Releases::at(&folder.join("releases"))?,
            store,
            first,
            second: Some(second),
            broken,
            unwanted: Some(unwanted),
            built,
            breakage: Breakage::CutOff,
        })
    }

    /// The two newest versions of one stack in a directory of releases, which is only read.
    pub(super) fn from_directory(directory: &Path, folder: &Path) -> Result<Self> {
        let mut releases = releases_in(directory)?;
        let tags: Vec<_> = releases.keys().cloned().collect();
        let (stem, channel) = chosen(&tags).with_context(|| {
            format!(
                "unable to find a release in {}: its folders, or those in its cluster-stacks/, are named \
                 <provider>-<name>-<major>-<minor>-<version>",
                directory.display()
            )
        })?;
        releases.retain(|tag, _| *tag.stem() == stem && *tag.version().channel() == channel);
        let store = Releases::at(&folder.join("store"))?;
        let mut newest_first = releases.into_iter().rev().take(2);
        let mut next = || match newest_first.next() {
            Some((tag, path)) => store.publish(&path).map(|()| Some(tag)),
            None => Ok(None),
        };
        let newest = next()?.context("a chosen stack has a release")?;
        let broken = ReleaseTag::new(stem, successor(newest.version())?)?;
        let (first, second) = match next()? {
            Some(older) => (older, Some(newest.clone())),
            None => (newest.clone(), None),
        };
        Ok(Self {
            published: Releases::at(&folder.join("releases"))?,
            store,
            first,
            second,
            broken,
            unwanted: None,
            built: None,
            breakage: Breakage::FilesOf(newest),
        })
    }

    /// Where the operator finds releases.
    pub(super) fn release_dir(&self) -> &Path {
        self.published.root()
    }

    /// The newest release that can be used.
    pub(super) fn newest(&self) -> &ReleaseTag {
        self.second.as_ref().unwrap_or(&self.first)
    }

    /// Whether a newer version is known to be newer: hashes have no order in a directory, so stacks of them list what they
    /// want.
    pub(super) fn is_ordered(&self) -> bool {
        self.first.version().channel().as_str() != "sha"
    }

    /// Lets the operator see a release.
    pub(super) fn publish(&self, tag: &ReleaseTag) -> Result<()> {
        self.published.publish(&self.store.folder_of(&tag.to_string()))
    }

    /// Lets the operator see the broken release.
    pub(super) fn publish_broken(&self) -> Result<()> {
        let tag = self.broken.to_string();
        match &self.breakage {
            Breakage::CutOff => {
                self.store.edit(&tag, cut_off)?;
                self.publish(&self.broken)
            }
            Breakage::FilesOf(other) => self
                .published
                .publish_as(&self.store.folder_of(&other.to_string()), &tag),
        }
    }

    /// What is wrong with the broken release; completes the sentence "its …".
    pub(super) fn breakage(&self) -> String {
        match &self.breakage {
            Breakage::CutOff => "chart ends in the middle".to_owned(),
            Breakage::FilesOf(other) => format!("files are those of {}", other.version()),
        }
    }
}

/// Shortens the archive of the class chart to its first half, as an upload that broke off.
fn cut_off(release: &Path) -> Result<()> {
    let entries = fs::read_dir(release).with_context(|| format!("failed to list {}", release.display()))?;
    let chart = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.to_string_lossy().contains("-cluster-class-"))
        .with_context(|| format!("{} has no class chart", release.display()))?;
    let bytes = fs::read(&chart).with_context(|| format!("failed to read {}", chart.display()))?;
    fs::write(&chart, &bytes[..bytes.len() / 2]).with_context(|| format!("failed to write {}", chart.display()))
}

/// The folders whose names are tags, in `DIR/cluster-stacks` when it is there, else in `DIR`.
fn releases_in(directory: &Path) -> Result<BTreeMap<ReleaseTag, PathBuf>> {
    let inner = directory.join("cluster-stacks");
    let place = if inner.is_dir() { inner } else { directory.to_owned() };
    let entries = fs::read_dir(&place).with_context(|| format!("failed to list {}", place.display()))?;
    let folders = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir());
    Ok(folders
        .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
        .collect())
}

/// The stack and channel with the most releases; stable ones win, because only they are followed.
fn chosen(tags: &[ReleaseTag]) -> Option<(ReleaseStem, Channel)> {
    let number = |tag: &ReleaseTag| {
        let alike =
            |other: &&ReleaseTag| other.stem() == tag.stem() && other.version().channel() == tag.version().channel();
        (tag.version().channel().is_stable(), tags.iter().filter(alike).count())
    };
    let tag = tags.iter().max_by_key(|tag| number(tag))?;
    Some((tag.stem().clone(), tag.version().channel().clone()))
}

/// A version of the same channel that nobody has released.
fn successor(version: &StackVersion) -> Result<StackVersion> {
    let next = version.major().checked_add(1).context("there is no greater version")?;
    let spelled = match version.patch() {
        None => format!("v{next}"),
        Some(patch) => format!("v{next}-{}.{patch}", version.channel()),
    };
    Ok(spelled.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of releases with these tags, each with a class chart.
    fn directory(tags: &[&str]) -> Result<tempfile::TempDir> {
        let directory = tempfile::tempdir()?;
        for tag in tags {
            let folder = directory.path().join(tag);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("metadata.yaml"), tag)?;
        }
        Ok(directory)
    }

    fn cast_of(tags: &[&str]) -> Result<(Cast, tempfile::TempDir)> {
        let folder = tempfile::tempdir()?;
        let cast = Cast::from_directory(directory(tags)?.path(), folder.path())?;
        Ok((cast, folder))
    }

    #[test]
    fn the_two_newest_stable_releases_of_the_stack_with_most_of_them_play() -> Result<()> {
        let tags = [
            "openstack-scs-1-32-v1",
            "docker-harbor-1-34-v9",
            "docker-harbor-1-34-v10",
            "docker-harbor-1-34-v8",
            "docker-harbor-1-34-v0-sha-abc",
            "notes",
        ];
        let (cast, _folder) = cast_of(&tags)?;
        let played = [&cast.first, cast.newest(), &cast.broken].map(ToString::to_string);
        assert_eq!(
            played,
            [
                "docker-harbor-1-34-v9",
                "docker-harbor-1-34-v10",
                "docker-harbor-1-34-v11"
            ]
        );
        assert!(cast.is_ordered());
        cast.publish(&cast.first)?;
        cast.publish_broken()?;
        let of =
            |tag: &ReleaseTag| fs::read_to_string(cast.published.folder_of(&tag.to_string()).join("metadata.yaml"));
        assert_eq!(of(&cast.first)?, "docker-harbor-1-34-v9");
        assert_eq!(
            of(&cast.broken)?,
            "docker-harbor-1-34-v10",
            "the files of another release"
        );
        assert!(of(cast.newest()).is_err(), "not published yet");
        Ok(())
    }

    #[test]
    fn a_stack_with_one_release_of_a_hash_plays_without_a_second() -> Result<()> {
        let (cast, _folder) = cast_of(&["docker-harbor-1-34-v0-sha-abc"])?;
        assert_eq!(cast.second, None);
        assert_eq!(cast.newest(), &cast.first);
        assert_eq!(cast.broken.to_string(), "docker-harbor-1-34-v1-sha-abc");
        assert!(!cast.is_ordered());
        Ok(())
    }

    #[test]
    fn a_directory_without_releases_is_refused_with_the_form_of_their_names() -> Result<()> {
        let error = cast_of(&["notes"]).err().context("it was accepted")?;
        assert!(
            error
                .to_string()
                .contains("<provider>-<name>-<major>-<minor>-<version>"),
            "{error}"
        );
        Ok(())
    }
}
