//! The directory of a stack: what is in it, and whether that is a stack at all. Versions come later.

use std::path::{self, Path, PathBuf};

use crds::{
    names::{KubernetesMinor, NameError, ReleaseStem},
    release_files::{
        CLUSTER_ADDON_CONFIG, CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA, Hashes, NODE_IMAGES, NodeImages,
    },
};
use serde::Deserialize;

use super::{
    PackError,
    overwrite::OVERWRITES,
    stages,
    supply::Shelf,
    tree::{Tree, hash, line_of, text},
};

const DESCRIPTION: &str = "csctl.yaml";
const API_VERSION: &str = "csctl.clusterstack.x-k8s.io/v1alpha1";
pub(super) const CLASS: &str = "cluster-class";
pub(super) const ADDON: &str = "cluster-addon";
const NODE_IMAGES_DIRECTORY: &str = "node-images";
/// Key of an image that a plugin of csctl would build.
const IMAGE_DIRECTORY: &str = "imageDir";

/// What a release is made from.
const PARTS: [&str; 8] = [
    DESCRIPTION,
    CLASS,
    ADDON,
    CLUSTER_ADDON_CONFIG,
    CLUSTER_ADDON_VALUES,
    CLUSTER_ADDON_VALUES_TERA,
    NODE_IMAGES,
    NODE_IMAGES_DIRECTORY,
];

/// Everything of a stack directory that goes into releases.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) directory: PathBuf,
    pub(super) stem: ReleaseStem,
    /// The full version with `v`.
    pub(super) kubernetes: String,
    pub(super) class: Tree,
    pub(super) addons: Addons,
    /// The list of node images: its path in the directory, and its text.
    pub(super) node_images: Option<(String, Vec<u8>)>,
    pub(super) hashes: Hashes,
    /// What its maker may not have meant, a sentence each.
    pub(super) notes: Vec<String>,
}

/// The two forms of add-ons.
#[derive(Debug)]
pub(super) enum Addons {
    /// A directory with one chart, and its values template, which has this name.
    Single {
        chart: Tree,
        name: &'static str,
        values: Vec<u8>,
    },
    /// A directory with one chart per stage, and the text of clusteraddon.yaml.
    Stages { charts: Tree, stages: Vec<u8> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    api_version: String,
    config: Config,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    kubernetes_version: String,
    cluster_stack_name: String,
    provider: Provider,
}

#[derive(Deserialize)]
struct Provider {
    r#type: String,
}

impl Stack {
    /// Reads the directory. Charts that lack others get them from the shelf, where there is one, as if they were in the directory.
    pub(super) fn read(directory: &Path, shelf: Option<&mut Shelf<'_>>) -> Result<Self, PackError> {
        if !directory.is_dir() {
            return Err(PackError::NoStack {
                path: directory.to_owned(),
            });
        }
        let mut tree = Tree::read(directory, &PARTS)?;
        if let Some(shelf) = shelf {
            complete(&mut tree, shelf)?;
        }
        let (stem, kubernetes) = read_description(&tree)?;
        let class = part(&tree, CLASS, "put the chart of the ClusterClass there")?;
        let charts = part(
            &tree,
            ADDON,
            "put the chart of the add-ons there, or one directory per chart with a clusteraddon.yaml beside",
        )?;
        let values = values(&tree)?;
        let node_images = node_images(&tree)?;
        let hashes = Hashes {
            cluster_stack: tree.hash(),
            cluster_addon_dir: charts.hash(),
            cluster_addon_values: values.map_or_else(String::new, hash_of_values),
            node_image_dir: Tree::read(directory, &[NODE_IMAGES, NODE_IMAGES_DIRECTORY])?.hash(),
        };
        let (addons, more) = addons(&tree, charts, values, stem.kubernetes_minor())?;
        let notes = [unread(&tree), more].concat();
        Ok(Self {
            directory: tree.origin,
            stem,
            kubernetes,
            class,
            addons,
            node_images,
            hashes,
            notes,
        })
    }
}

/// The add-ons, which are these charts, and what their maker may not have meant.
fn addons(
    tree: &Tree,
    charts: Tree,
    values: Option<(&'static str, &Vec<u8>)>,
    kubernetes: KubernetesMinor,
) -> Result<(Addons, Vec<String>), PackError> {
    match (tree.description(CLUSTER_ADDON_CONFIG)?, values) {
        (Some(stages), _) => {
            let notes = stages::check(tree, stages, &charts, kubernetes)?;
            let stages = stages.to_owned();
            Ok((Addons::Stages { charts, stages }, notes))
        }
        (None, Some((name, values))) => {
            let values = values.clone();
            let chart = charts;
            Ok((Addons::Single { chart, name, values }, Vec::new()))
        }
        (None, None) => {
            let advice = "write the values of the add-on chart, or clusteraddon.yaml for several charts";
            Err(PackError::Missing {
                path: tree.path(CLUSTER_ADDON_VALUES),
                advice,
            })
        }
    }
}

/// The templates of values that nobody reads in this form of add-ons. They are no errors: real stacks have some.
fn unread(tree: &Tree) -> Vec<String> {
    let is_staged = tree.files.contains_key(CLUSTER_ADDON_CONFIG);
    let (unread, advice) = if is_staged {
        let advice = "beside clusteraddon.yaml; write the values of a chart into overwrite.yaml in its folder";
        (
            [CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA].map(str::to_owned),
            advice,
        )
    } else {
        let advice = "without clusteraddon.yaml; write the values of the chart into cluster-addon-values.yaml";
        (OVERWRITES.map(|name| format!("{ADDON}/{name}")), advice)
    };
    let there = unread.iter().filter(|file| tree.files.contains_key(*file));
    there
        .map(|file| format!("{}: nobody reads it {advice}", tree.path(file).display()))
        .collect()
}

/// The template of the values of the only chart, with its name.
fn values(tree: &Tree) -> Result<Option<(&'static str, &Vec<u8>)>, PackError> {
    let named = |name| tree.files.get(name).map(|values| (name, values));
    let (go, tera) = (named(CLUSTER_ADDON_VALUES), named(CLUSTER_ADDON_VALUES_TERA));
    if go.is_some() && tera.is_some() {
        return Err(PackError::TwoValues {
            path: tree.path(CLUSTER_ADDON_VALUES),
            beside: CLUSTER_ADDON_VALUES_TERA,
        });
    }
    Ok(go.or(tera))
}

/// That of csctl for what csctl knows. The same text under the other name is another template.
fn hash_of_values((name, values): (&str, &Vec<u8>)) -> String {
    if name == CLUSTER_ADDON_VALUES {
        hash(values)
    } else {
        hash(&[name.as_bytes(), values].concat())
    }
}

/// Refuses to write where the next release is read from.
pub(super) fn check_output(stack: &Path, output: &Path) -> Result<(), PackError> {
    let absolute = path::absolute(output).unwrap_or_default();
    let Some(there) = absolute.ancestors().find_map(|path| path.canonicalize().ok()) else {
        return Ok(());
    };
    let mut packed = PARTS.iter().map(|part| stack.join(part));
    match packed.find(|part| part.canonicalize().is_ok_and(|part| there.starts_with(part))) {
        None => Ok(()),
        Some(packed) => Err(PackError::OutputInsideStack {
            path: output.to_owned(),
            packed,
        }),
    }
}

/// Gives the charts of a stack what they lack.
fn complete(tree: &mut Tree, shelf: &mut Shelf<'_>) -> Result<(), PackError> {
    let mut charts = vec![CLASS.to_owned(), ADDON.to_owned()];
    if tree.files.contains_key(CLUSTER_ADDON_CONFIG) {
        charts.pop();
        let addons = tree.below(ADDON);
        charts.extend(addons.directories().iter().map(|stage| format!("{ADDON}/{stage}")));
    }
    charts.iter().try_for_each(|chart| shelf.complete(tree, chart))
}

fn part(tree: &Tree, directory: &str, advice: &'static str) -> Result<Tree, PackError> {
    let part = tree.below(directory);
    if part.files.is_empty() {
        Err(PackError::Missing {
            path: part.origin,
            advice,
        })
    } else {
        Ok(part)
    }
}

/// The list of node images, if the stack has any. A stack made for plugins of csctl has it in a directory, and may have images that are yet to be built.
fn node_images(tree: &Tree) -> Result<Option<(String, Vec<u8>)>, PackError> {
    let config = format!("{NODE_IMAGES_DIRECTORY}/config.yaml");
    let file = if tree.files.contains_key(NODE_IMAGES) {
        NODE_IMAGES
    } else {
        &config
    };
    let Some(content) = tree.description(file)? else {
        if tree.directories().contains(NODE_IMAGES_DIRECTORY) {
            return Err(PackError::Missing {
                path: tree.path(&config),
                advice: "list the images there, or in node-images.yaml beside the directory",
            });
        }
        return Ok(None);
    };
    let path = tree.path(file);
    let images = NodeImages::parse(content).map_err(|source| PackError::ReadReleaseFile {
        path: path.clone(),
        source,
    })?;
    if images
        .0
        .values()
        .flatten()
        .any(|image| image.url.is_none() && image.other.contains_key(IMAGE_DIRECTORY))
    {
        return Err(PackError::UnbuiltImage {
            path,
            line: line_of(text(content).unwrap_or_default(), IMAGE_DIRECTORY),
        });
    }
    Ok(Some((file.to_owned(), content.to_owned())))
}

fn read_description(tree: &Tree) -> Result<(ReleaseStem, String), PackError> {
    let path = tree.path(DESCRIPTION);
    let Some(content) = tree.description(DESCRIPTION)? else {
        return Err(PackError::Missing {
            path,
            advice: "a stack directory needs it; the help of this command shows one",
        });
    };
    let Description { api_version, config } =
        serde_yaml::from_slice(content).map_err(|source| PackError::read_yaml(path.clone(), source))?;
    let Config {
        kubernetes_version: kubernetes,
        cluster_stack_name: name,
        provider: Provider { r#type: provider },
    } = config;
    let line = |key| line_of(text(content).unwrap_or_default(), key);

    if api_version != API_VERSION {
        return Err(PackError::ApiVersion {
            path,
            line: line("apiVersion"),
            found: api_version,
            expected: API_VERSION,
        });
    }
    let full = kubernetes.starts_with('v') && kubernetes.split('.').count() == 3;
    let Some(minor) = KubernetesMinor::of_full_version(&kubernetes).ok().filter(|_| full) else {
        return Err(PackError::KubernetesVersion {
            path,
            line: line("kubernetesVersion"),
            found: kubernetes,
        });
    };
    let stem = ReleaseStem::new(&provider, &name, minor).map_err(|source| {
        let key = if matches!(source, NameError::Provider { .. }) {
            "type"
        } else {
            "clusterStackName"
        };
        PackError::Setting {
            path,
            line: line(key),
            key,
            source,
        }
    })?;
    Ok((stem, kubernetes))
}
