//! Which versions a new release has: those given, or the ones after the newest release of a directory.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crds::{
    names::{ReleaseTag, StackVersion},
    release_files::{CLUSTER_ADDON_CONFIG, HASHES, Hashes, METADATA, Metadata, ReleaseFileError},
};

use super::{
    PackError,
    placeholder::{Placeholder, mentions},
    stack::{Addons, Stack},
    tree::{Tree, text},
};
use crate::files;

/// What is known of the release before.
struct Previous {
    tag: ReleaseTag,
    metadata: Metadata,
    /// Without them, everything counts as changed.
    hashes: Option<Hashes>,
    stages: Option<Vec<u8>>,
}

/// The versions of the next release.
pub(super) enum Next {
    /// These.
    Versions(Metadata),
    /// None: the stack is what this release was made from.
    Unchanged(ReleaseTag),
}

/// One version for everything.
pub(super) fn given(stack: &Stack, version: &StackVersion) -> Metadata {
    Metadata {
        cluster_stack: version.clone(),
        kubernetes: stack.kubernetes.clone(),
        cluster_addon: version.clone(),
        node_image: Some(version.clone()),
    }
}

/// The stable version after the highest in `releases`, a directory with one directory per release that need not exist. Names that are no tags
/// of this stack do not matter. Add-ons and node images get a new version only if they changed.
pub(super) fn next_after(stack: &Stack, releases: &Path) -> Result<Next, PackError> {
    let Some(previous) = previous(stack, releases)? else {
        return Ok(Next::Versions(given(stack, &StackVersion::stable(1))));
    };
    let Previous {
        tag,
        metadata,
        hashes,
        stages,
    } = previous;
    if hashes
        .as_ref()
        .is_some_and(|hashes| hashes.cluster_stack == stack.hashes.cluster_stack)
    {
        return Ok(Next::Unchanged(tag));
    }
    let after = |version: &StackVersion| StackVersion::stable(version.major().saturating_add(1));
    let same_images = hashes
        .as_ref()
        .is_some_and(|hashes| hashes.node_image_dir == stack.hashes.node_image_dir);
    let node_image = metadata
        .node_image
        .map(|version| if same_images { version } else { after(&version) });

    let (charts, values, stages_now) = match &stack.addons {
        Addons::Single { chart, values, .. } => (chart, text(values), None),
        Addons::Stages { charts, stages } => (charts, None, Some(stages)),
    };
    // What quotes a version that moves on is not the same any more, though its source is.
    let quote = |version| {
        let mut texts = charts.files.values().filter_map(|content| text(content)).chain(values);
        texts.any(|text| mentions(text, version))
    };
    let moves_along = quote(Placeholder::ClusterClass) || (!same_images && quote(Placeholder::NodeImage));
    let same_addons = !moves_along
        && stages.as_ref() == stages_now
        && hashes.is_some_and(|hashes| {
            hashes.cluster_addon_dir == stack.hashes.cluster_addon_dir
                && hashes.cluster_addon_values == stack.hashes.cluster_addon_values
        });
    Ok(Next::Versions(Metadata {
        cluster_stack: after(tag.version()),
        kubernetes: stack.kubernetes.clone(),
        cluster_addon: if same_addons {
            metadata.cluster_addon
        } else {
            after(&metadata.cluster_addon)
        },
        node_image: Some(node_image.unwrap_or_else(|| StackVersion::stable(1))),
    }))
}

fn previous(stack: &Stack, releases: &Path) -> Result<Option<Previous>, PackError> {
    let unreadable = |source| PackError::Read {
        path: releases.to_owned(),
        source,
    };
    let entries = match fs::read_dir(releases) {
        Ok(entries) => entries,
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(unreadable(source)),
    };
    let mut newest: Option<ReleaseTag> = None;
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let tag = name.to_str().and_then(files::tag_of_directory);
        let of_this_stack = tag.filter(|tag| *tag.stem() == stack.stem && tag.version().channel().is_stable());
        newest = newest.max(of_this_stack);
    }
    newest
        .map(|tag| Previous::read(&releases.join(tag.to_string()), tag))
        .transpose()
}

impl Previous {
    fn read(directory: &Path, tag: ReleaseTag) -> Result<Self, PackError> {
        let files = Tree::read(directory, &[METADATA, HASHES, CLUSTER_ADDON_CONFIG])?;
        let unusable = |file: &str| {
            let path: PathBuf = directory.join(file);
            |source: ReleaseFileError| PackError::PreviousRelease { path, source }
        };
        let metadata = files.description(METADATA)?.unwrap_or_default();
        let metadata = Metadata::parse(metadata).map_err(unusable(METADATA))?;
        let hashes = files
            .description(HASHES)?
            .map(Hashes::parse)
            .transpose()
            .map_err(unusable(HASHES))?;
        Ok(Self {
            tag,
            metadata,
            hashes,
            stages: files.files.get(CLUSTER_ADDON_CONFIG).cloned(),
        })
    }
}
