//! What the files of a release must say, wherever they are: in a directory, or on their way into the store. Decides; reads nothing itself.

use std::{collections::BTreeSet, io::Read, path::Path};

use crds::{
    names::ReleaseTag,
    release_files::{
        CLUSTER_ADDON_CONFIG, CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA, ClusterAddonConfig, METADATA, Metadata,
        NODE_IMAGES, ReleaseFileError, without_mark,
    },
};

use super::{
    AddonConfiguration, Charts, FileRef, Purpose, Release, ReleaseError, addon_chart_name, class_chart_name,
    conditions, stages::never_upgraded,
};
use crate::{
    Digest,
    archive::{self, Contents},
    description::bracket_too_many,
};

/// The files of a release, each of which is read once, in the order in which they are understood.
pub(crate) trait Files {
    /// Why a file could not be read, or the release not be used.
    type Error: From<ReleaseError>;

    /// Whether there is a file of this name.
    fn has(&self, name: &str) -> bool;

    /// Streams one file through `look` and its digest, also what `look` leaves over. Nothing that was found is given for bytes that turn out
    /// to be others than they had to be. The advice is for whoever forgot the file.
    fn read<T>(
        &mut self,
        name: &str,
        advice: &'static str,
        look: impl FnOnce(&mut dyn Read) -> Result<T, ReleaseError>,
    ) -> Result<(FileRef, T), Self::Error>;

    /// Reads the files that nobody looked into; then gives all of them, sorted by name.
    fn finish(&mut self) -> Result<Vec<FileRef>, Self::Error>;
}

/// Reads the files of a release and finds out whether they belong together. A file that is wrong ends it: none after it is read.
pub(crate) fn understand<F: Files>(
    files: &mut F,
    purpose: Purpose,
    tag: &ReleaseTag,
    directory: &Path,
) -> Result<Release, F::Error> {
    let text = description(files, METADATA, "every release has one")?;
    let metadata = Metadata::parse(&text).map_err(|source| parse_error(METADATA, source))?;
    agree(&metadata, tag)?;
    let charts = match purpose {
        Purpose::NodeImages if files.has(NODE_IMAGES) => None,
        // Half of a release that is being copied must not pass for one without images.
        Purpose::NodeImages | Purpose::Clusters => Some(charts(files, tag, &metadata)?),
    };
    let files = files.finish()?;
    let digest = Digest::of_release(&files);
    Ok(Release {
        tag: tag.clone(),
        digest,
        metadata,
        charts,
        files,
        directory: directory.to_owned(),
    })
}

fn charts<F: Files>(files: &mut F, tag: &ReleaseTag, metadata: &Metadata) -> Result<Charts, F::Error> {
    let class_chart = class_chart_name(tag);
    let advice = "the class chart of a release has exactly this name";
    let (class_chart, contents) = archive(files, &class_chart, advice, &BTreeSet::new())?;
    one_chart(&class_chart, &contents)?;

    // Read first, because it says what the charts are asked.
    let stages = stages(files)?;
    let groups = stages.as_ref().map(|(stages, _)| conditions::groups(stages));
    let groups = groups.unwrap_or_default();
    let addon_chart = addon_chart_name(tag, &metadata.cluster_addon);
    let advice = "the add-on archive has exactly this name, ending in the clusterAddon version of metadata.yaml";
    let (addon_chart, contents) = archive(files, &addon_chart, advice, &groups)?;
    let mut notes = Vec::new();
    let addons = if let Some((stages, text)) = stages {
        charts_of_stages(&stages, &addon_chart, &contents)?;
        let schemas = conditions::schemas(contents.definitions.found, tag.kubernetes_minor());
        let checked = conditions::check(&stages, &text, &schemas);
        if let [first, more @ ..] = checked.faults.as_slice() {
            let (first, more) = (first.told(&CLUSTER_ADDON_CONFIG), more.len() + checked.more);
            return Err(ReleaseError::Conditions { first, more }.into());
        }
        notes = checked.notes;
        notes.extend(never_upgraded(&stages));
        AddonConfiguration::Stages(stages)
    } else {
        one_chart(&addon_chart, &contents)?;
        let advice = "add-ons need it, or clusteraddon.yaml when they come in stages";
        let (values, ()) = files.read(values_name(files)?, advice, |_| Ok(()))?;
        AddonConfiguration::Values(values)
    };
    Ok(Charts {
        class_chart,
        addon_chart,
        addons,
        notes,
    })
}

/// The template of the values of the only chart.
fn values_name<F: Files>(files: &F) -> Result<&'static str, ReleaseError> {
    match (files.has(CLUSTER_ADDON_VALUES), files.has(CLUSTER_ADDON_VALUES_TERA)) {
        (true, true) => Err(ReleaseError::TwoValues),
        (false, true) => Ok(CLUSTER_ADDON_VALUES_TERA),
        (_, false) => Ok(CLUSTER_ADDON_VALUES),
    }
}

/// The stages of the add-ons, if they have any, with the text that lists them.
fn stages<F: Files>(files: &mut F) -> Result<Option<(ClusterAddonConfig, String)>, F::Error> {
    if !files.has(CLUSTER_ADDON_CONFIG) {
        return Ok(None);
    }
    let text = description(files, CLUSTER_ADDON_CONFIG, "")?;
    let stages = ClusterAddonConfig::parse(&text).map_err(|source| parse_error(CLUSTER_ADDON_CONFIG, source))?;
    Ok(Some((
        stages,
        String::from_utf8_lossy(without_mark(&text)).into_owned(),
    )))
}

/// A text that can be given to a parser.
fn description<F: Files>(files: &mut F, name: &str, advice: &'static str) -> Result<Vec<u8>, F::Error> {
    let (_, text) = files.read(name, advice, |reader| {
        let mut text = Vec::new();
        let read = reader.read_to_end(&mut text);
        read.map_err(|source| ReleaseError::ReadFile {
            file: name.to_owned(),
            source,
        })?;
        bounded(name, text)
    })?;
    Ok(text)
}

/// Reads an archive, and what its charts bring for these groups of the API.
fn archive<F: Files>(
    files: &mut F,
    name: &str,
    advice: &'static str,
    groups: &BTreeSet<String>,
) -> Result<(FileRef, Contents), F::Error> {
    files.read(name, advice, |reader| {
        archive::inspect(reader, groups).map_err(|source| ReleaseError::Archive {
            file: name.to_owned(),
            source,
        })
    })
}

fn parse_error(file: &str, source: ReleaseFileError) -> ReleaseError {
    ReleaseError::Parse {
        file: file.to_owned(),
        source,
    }
}

/// A text within its size, if a parser can be given it.
pub(super) fn bounded(name: &str, text: Vec<u8>) -> Result<Vec<u8>, ReleaseError> {
    match bracket_too_many(&text) {
        None => Ok(text),
        Some(line) => Err(ReleaseError::TooManyBrackets {
            file: name.to_owned(),
            line,
        }),
    }
}

/// Refuses metadata that speak of another release than the tag.
fn agree(metadata: &Metadata, tag: &ReleaseTag) -> Result<(), ReleaseError> {
    let file = METADATA.to_owned();
    let (version, kubernetes) = (&metadata.cluster_stack, &metadata.kubernetes);
    if version != tag.version() {
        return Err(ReleaseError::VersionContradictsTag {
            file,
            found: version.to_string(),
            expected: tag.version().to_string(),
        });
    }
    if metadata.kubernetes_minor() != Ok(tag.kubernetes_minor()) {
        return Err(ReleaseError::KubernetesContradictsTag {
            file,
            found: kubernetes.clone(),
            expected: tag.kubernetes_minor(),
        });
    }
    Ok(())
}

fn one_chart(archive: &FileRef, contents: &Contents) -> Result<(), ReleaseError> {
    match contents.single_chart() {
        Some(_) => Ok(()),
        None => Err(ReleaseError::NotOneChart {
            file: archive.name.clone(),
        }),
    }
}

fn charts_of_stages(stages: &ClusterAddonConfig, archive: &FileRef, contents: &Contents) -> Result<(), ReleaseError> {
    let mut names = stages.addon_stages.values().flatten().map(|stage| &stage.name);
    match names.find(|name| !contents.has_chart(name)) {
        Some(stage) => Err(ReleaseError::MissingStageChart {
            file: archive.name.clone(),
            stage: stage.clone(),
        }),
        None => Ok(()),
    }
}
