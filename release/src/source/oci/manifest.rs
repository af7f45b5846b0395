//! What a tag of a registry stands for: a manifest, read without trust, of a release or of an artifact with a file that is wanted. Fetches nothing.
//!
//! Two ways of pushing are in use, and both are read: that of csctl, which gives every file its own media type, and that of the build
//! script of the public cluster stacks, which leaves them to `oras push`. In both a file is a layer with its name as an annotation.

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};
use thiserror::Error;

use crate::{Digest, source::RemoteFile};

/// Largest manifest, in bytes. That of a release has three kilobytes; the specification lets registries refuse more than 4 MiB, but in memory
/// hostile ones take twenty times what they take here.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// The media types of what a tag can stand for, as a registry wants to have them asked for. Those of images and lists of images are
/// asked for too: else a registry would say that there is nothing, and nobody would know why.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// What publishers call a release: csctl; the build script of the public cluster stacks; `oras push` when nobody names a type, in both
/// versions of the specification. What is none of these is something else that has the name of a release.
pub(super) const ARTIFACT_TYPES: [&str; 4] = [
    "application/vnd.scs.cluster-stacks.v1",
    "application/vnd.clusterstack.release",
    "application/vnd.unknown.artifact.v1",
    "application/vnd.unknown.config.v1+json",
];

/// The type of an artifact that has none.
const NO_TYPE: &str = "unknown";

/// Why a manifest is no release.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// No JSON, or another than that of a manifest.
    #[error("its manifest is not one of the OCI image specification; push it again")]
    Parse {
        /// What the parser met, and where.
        #[source]
        source: serde_json::Error,
    },
    /// A list of manifests, of which nobody knows which is meant.
    #[error("it is an index of several manifests; push the files themselves under the tag, without a platform")]
    Index,
    /// Readers would not agree what it is.
    #[error("its manifest says {body:?} of itself, but the registry calls it {header:?}; push it again")]
    MediaType {
        /// The media type in the manifest.
        body: String,
        /// The media type in the answer.
        header: String,
    },
    /// Something else than a release.
    #[error(
        "it is an artifact of the type {found:?}; push releases with `--artifact-type {}`",
        ARTIFACT_TYPES[0]
    )]
    ArtifactType {
        /// The type of the artifact, or of its configuration when it names none.
        found: String,
    },
    /// A digest that is not SHA-256.
    #[error("the file {file:?} has the digest {digest:?}; only sha256 can be used")]
    LayerDigest {
        /// The name of the file.
        file: String,
        /// The digest in the manifest.
        digest: String,
    },
    /// A directory, packed by oras.
    #[error("{file:?} is a directory; push the files that are in it, from inside of it")]
    Directory {
        /// The name of the directory.
        file: String,
    },
    /// No layer with a name.
    #[error(
        "no layer has the annotation org.opencontainers.image.title with the name of a file; push the release with oras"
    )]
    NoFiles,
    /// The file system of a container, whose layers are no files.
    #[error(
        "it is a container image, whose layers are archives and not files; push the file itself, as `oras push` does"
    )]
    Container,
    /// No layer has this name.
    #[error("none of its layers has the title {title:?}{}", titles(.known))]
    NoLayer {
        /// The name that is looked for.
        title: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Not one layer, and nobody said which one is meant.
    #[error("it has {count} layers and not one{}; say behind # which title is meant", titles(.known))]
    WhichLayer {
        /// How many.
        count: usize,
        /// The titles that there are.
        known: Vec<String>,
    },
    /// Something else than a chart of Helm.
    #[error("its configuration is of the type {found:?}, so it is no Helm chart; push charts with `helm push`")]
    NoChart {
        /// The type of the configuration.
        found: String,
    },
    /// Not one layer with a chart.
    #[error(
        "{count} of its layers are of the type {CHART_CONTENT:?}, and a chart has one; push it again with `helm push`"
    )]
    ChartLayers {
        /// How many.
        count: usize,
    },
}

/// What Helm calls the configuration of a chart, and its archive.
pub(super) const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
pub(super) const CHART_CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Most titles that a message names.
const TITLES: usize = 5;

/// As a part of a sentence.
fn titles(known: &[String]) -> String {
    if known.is_empty() {
        return String::new();
    }
    let more = if known.len() > TITLES { ", …" } else { "" };
    format!(" ({}{more})", known[..known.len().min(TITLES)].join(", "))
}

/// A layer of an artifact: a file in a registry, which is known by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Of its bytes as they are in the registry.
    pub digest: Digest,
    /// Its length in bytes, as the manifest says; not checked here.
    pub size: u64,
}

/// The types of configurations that make of layers the file system of a container.
const CONTAINERS: [&str; 2] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];

/// What a manifest says.
#[derive(Debug)]
pub(super) struct Artifact {
    /// The files, in the order of the manifest, as the manifest describes them.
    pub(super) files: Vec<RemoteFile>,
    /// When it was pushed, if the manifest tells.
    pub(super) created: Option<Timestamp>,
}

/// A manifest of an image or artifact, or an index of manifests: as much of it as matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    manifests: Option<IgnoredAny>,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: Annotations,
}

/// The annotations that matter, of manifests and of layers.
#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "org.opencontainers.image.created")]
    created: Option<String>,
    #[serde(rename = "org.opencontainers.image.title")]
    title: Option<String>,
    /// `true` where oras packed a directory.
    #[serde(rename = "io.deis.oras.content.unpack")]
    unpack: Option<String>,
}

/// A manifest that is one of layers, as the registry calls it.
fn parse(bytes: &[u8], header: Option<&str>) -> Result<Manifest, ManifestError> {
    let manifest: Manifest = serde_json::from_slice(bytes).map_err(|source| ManifestError::Parse { source })?;
    // Also what has layers beside: one reader would take these, another those.
    if manifest.manifests.is_some() {
        return Err(ManifestError::Index);
    }
    if let (Some(body), Some(header)) = (&manifest.media_type, header.and_then(media_type))
        && body != header
    {
        return Err(ManifestError::MediaType {
            body: body.clone(),
            header: header.to_owned(),
        });
    }
    Ok(manifest)
}

/// Reads the release in the bytes that a registry gave under the media type `header`.
pub(super) fn read(bytes: &[u8], header: Option<&str>) -> Result<Artifact, ManifestError> {
    let manifest = parse(bytes, header)?;
    // Artifacts that name no type have that of their configuration, by the specification.
    let configuration = manifest.config.map(|config| config.media_type);
    let found = manifest
        .artifact_type
        .or(configuration)
        .unwrap_or_else(|| NO_TYPE.to_owned());
    if !ARTIFACT_TYPES.contains(&found.as_str()) {
        return Err(ManifestError::ArtifactType { found });
    }
    // Layers without a name are passed over, as oras and the Go operator do.
    let files: Vec<_> = manifest.layers.into_iter().filter_map(file).collect::<Result<_, _>>()?;
    if files.is_empty() {
        return Err(ManifestError::NoFiles);
    }
    let created = manifest.annotations.created.and_then(|created| created.parse().ok());
    Ok(Artifact { files, created })
}

/// Reads which layer is the one with this title or, where none is named, the only one: of whatever artifact that is not a container.
pub(super) fn layer(bytes: &[u8], header: Option<&str>, title: Option<&str>) -> Result<Layer, ManifestError> {
    let Manifest { config, layers, .. } = parse(bytes, header)?;
    if config.is_some_and(|config| CONTAINERS.contains(&config.media_type.as_str())) {
        return Err(ManifestError::Container);
    }
    let known = || {
        layers
            .iter()
            .filter_map(|layer| layer.annotations.title.clone())
            .collect()
    };
    let found = match (title, layers.as_slice()) {
        (Some(title), layers) => {
            let is_meant = |layer: &&Descriptor| layer.annotations.title.as_deref() == Some(title);
            layers.iter().find(is_meant).ok_or_else(|| ManifestError::NoLayer {
                title: title.to_owned(),
                known: known(),
            })?
        }
        (None, [only]) => only,
        (None, layers) => {
            return Err(ManifestError::WhichLayer {
                count: layers.len(),
                known: known(),
            });
        }
    };
    let Descriptor {
        media_type: _,
        digest,
        size,
        annotations: Annotations { title, unpack, .. },
    } = found;
    let file = || title.clone().unwrap_or_else(|| "its only layer".to_owned());
    if unpack.as_deref() == Some("true") {
        return Err(ManifestError::Directory { file: file() });
    }
    let digest = digest.parse().map_err(|_| ManifestError::LayerDigest {
        file: file(),
        digest: digest.clone(),
    })?;
    Ok(Layer { digest, size: *size })
}

/// Reads which layer is the archive of a Helm chart. What lies beside it, such as its provenance, is passed over.
pub(super) fn chart(bytes: &[u8], header: Option<&str>) -> Result<Layer, ManifestError> {
    let Manifest { config, layers, .. } = parse(bytes, header)?;
    let found = config.map_or_else(|| NO_TYPE.to_owned(), |config| config.media_type);
    if found != CHART_CONFIG {
        return Err(ManifestError::NoChart { found });
    }
    let archives: Vec<_> = layers
        .into_iter()
        .filter(|layer| layer.media_type == CHART_CONTENT)
        .collect();
    let [Descriptor { digest, size, .. }] = archives.as_slice() else {
        let count = archives.len();
        return Err(ManifestError::ChartLayers { count });
    };
    let read = digest.parse().map_err(|_| ManifestError::LayerDigest {
        file: "its chart".to_owned(),
        digest: digest.clone(),
    })?;
    Ok(Layer {
        digest: read,
        size: *size,
    })
}

/// The media type of a header that says something of manifests; what some servers say of all JSON says nothing.
fn media_type(header: &str) -> Option<&str> {
    let name = header.split(';').next().unwrap_or_default().trim();
    name.starts_with("application/vnd.").then_some(name)
}

/// The file that a layer is, if it has a name; names are looked at where those of all sources are. The URLs that a layer may have are not
/// even read: its bytes come from the repository.
fn file(layer: Descriptor) -> Option<Result<RemoteFile, ManifestError>> {
    let Descriptor {
        media_type: _,
        digest,
        size,
        annotations: Annotations {
            title,
            unpack,
            created: _,
        },
    } = layer;
    let name = title?;
    if unpack.as_deref() == Some("true") {
        return Some(Err(ManifestError::Directory { file: name }));
    }
    let sha256: Option<Digest> = digest.parse().ok();
    Some(match sha256 {
        None => Err(ManifestError::LayerDigest { file: name, digest }),
        sha256 => Ok(RemoteFile {
            name,
            size: Some(size),
            sha256,
            location: digest,
        }),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MEDIA_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

    fn layer(title: &str) -> Value {
        json!({
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": Digest::of(title.as_bytes()).to_string(),
            "size": 3,
            "annotations": {"org.opencontainers.image.title": title}
        })
    }

    fn manifest() -> Value {
        json!({
            "schemaVersion": 2,
            "mediaType": MEDIA_TYPE,
            "artifactType": "application/vnd.scs.cluster-stacks.v1",
            "config": {
                "mediaType": "application/vnd.oci.empty.v1+json",
                "digest": Digest::of(b"{}").to_string(),
                "size": 2,
                "data": "e30="
            },
            "layers": [layer("metadata.yaml"), layer("cluster-addon-values.yaml")],
            "annotations": {"hash": "0123456", "org.opencontainers.image.created": "2026-03-01T12:00:00Z"}
        })
    }

    fn read_json(manifest: &Value) -> Result<Artifact, ManifestError> {
        read(manifest.to_string().as_bytes(), Some(MEDIA_TYPE))
    }

    #[test]
    fn files_are_the_layers_with_their_names_sizes_and_digests() {
        let artifact = read_json(&manifest()).unwrap();
        let expected = ["metadata.yaml", "cluster-addon-values.yaml"].map(|name| RemoteFile {
            name: name.to_owned(),
            size: Some(3),
            sha256: Some(Digest::of(name.as_bytes())),
            location: Digest::of(name.as_bytes()).to_string(),
        });
        assert_eq!(artifact.files, expected);
        assert_eq!(artifact.created, Some("2026-03-01T12:00:00Z".parse().unwrap()));
    }

    #[test]
    fn date_that_is_none_is_no_reason_to_refuse_a_release() {
        for created in [json!("yesterday"), json!("")] {
            let mut manifest = manifest();
            manifest["annotations"]["org.opencontainers.image.created"] = created;
            assert_eq!(read_json(&manifest).unwrap().created, None);
        }
        let mut manifest = manifest();
        manifest.as_object_mut().unwrap().remove("annotations");
        assert_eq!(read_json(&manifest).unwrap().created, None);
    }

    #[test]
    fn type_of_the_artifact_is_that_of_its_configuration_when_it_names_none() {
        let mut manifest = manifest();
        manifest.as_object_mut().unwrap().remove("artifactType");
        manifest["config"]["mediaType"] = json!("application/vnd.scs.cluster-stacks.v1");
        assert!(read_json(&manifest).is_ok());
        manifest["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
        let error = read_json(&manifest).unwrap_err().to_string();
        assert!(error.contains("application/vnd.oci.image.config.v1+json"), "{error}");
    }

    #[test]
    fn what_is_no_release_is_refused_with_what_to_do() {
        let with = |change: fn(&mut Value)| {
            let mut manifest = manifest();
            change(&mut manifest);
            read_json(&manifest).unwrap_err().to_string()
        };
        for (error, words) in [
            (
                with(|m| m["manifests"] = json!([])),
                "is an index of several manifests; push",
            ),
            (
                with(|m| m["artifactType"] = json!("application/vnd.cncf.helm")),
                "--artifact-type",
            ),
            (
                with(|m| m["mediaType"] = json!("application/vnd.oci.image.index.v1+json")),
                "says",
            ),
            (with(|m| m["layers"] = json!([])), "no layer has the annotation"),
            (with(|m| m["layers"][0]["digest"] = json!("sha512:00")), "only sha256"),
            (
                with(|m| m["layers"][0]["digest"] = json!("sha256:../../x")),
                "only sha256",
            ),
            (
                with(|m| m["layers"][0]["annotations"]["io.deis.oras.content.unpack"] = json!("true")),
                "\"metadata.yaml\" is a directory",
            ),
            (with(|m| m["layers"][0]["size"] = json!(-1)), "push it again"),
            (
                with(|m| m["layers"][0]["annotations"] = json!([[[[]]]])),
                "push it again",
            ),
        ] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn json_that_nests_deep_repeats_fields_or_ends_early_is_an_error() {
        let text = manifest().to_string();
        let deep = format!("{{\"subject\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let twice = text.replacen("\"schemaVersion\"", "\"layers\":[],\"schemaVersion\"", 1);
        let nested = text.replacen("\"layers\":[", &format!("\"layers\":[{}", "[".repeat(100_000)), 1);
        for text in [&deep, &twice, &nested, &text[..text.len() / 2], ""] {
            assert!(read(text.as_bytes(), None).is_err());
        }
    }

    fn layer_of(manifest: &Value, title: Option<&str>) -> Result<Layer, String> {
        let read = super::layer(manifest.to_string().as_bytes(), Some(MEDIA_TYPE), title);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn a_chart_is_known_by_its_types_and_what_lies_beside_is_passed_over() {
        let content =
            |kind: &str| json!({"mediaType": kind, "digest": Digest::of(kind.as_bytes()).to_string(), "size": 7});
        let (archive, provenance) = (
            content(CHART_CONTENT),
            content("application/vnd.cncf.helm.chart.provenance.v1.prov"),
        );
        let of = |config: &str, layers: &[&Value]| {
            let manifest = json!({"config": {"mediaType": config, "digest": "", "size": 2}, "layers": layers});
            chart(manifest.to_string().as_bytes(), Some(MEDIA_TYPE)).map_err(|error| error.to_string())
        };
        let digest = Digest::of(CHART_CONTENT.as_bytes());
        let found = of(CHART_CONFIG, &[&provenance, &archive]);
        assert_eq!(found, Ok(Layer { digest, size: 7 }));
        let mut odd = archive.clone();
        odd["digest"] = json!("sha512:00");
        for (refused, words) in [
            (
                of("application/vnd.oci.image.config.v1+json", &[&archive]),
                "so it is no Helm chart",
            ),
            (of(CHART_CONFIG, &[&provenance]), "0 of its layers"),
            (of(CHART_CONFIG, &[&archive, &archive]), "2 of its layers"),
            (of(CHART_CONFIG, &[&odd]), "only sha256 can be used"),
        ] {
            let error = refused.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_layer_is_found_by_its_title_or_because_there_is_no_other() {
        let of = |title: &str| {
            Ok(Layer {
                digest: Digest::of(title.as_bytes()),
                size: 3,
            })
        };
        let two = manifest();
        assert_eq!(layer_of(&two, Some("metadata.yaml")), of("metadata.yaml"));
        let mut one = manifest();
        one["layers"] = json!([layer("disk.qcow2")]);
        one["artifactType"] = json!("application/vnd.example.disk");
        assert_eq!(layer_of(&one, None), of("disk.qcow2"));
        one["layers"][0].as_object_mut().unwrap().remove("annotations");
        assert_eq!(layer_of(&one, None), of("disk.qcow2"));
    }

    #[test]
    fn a_layer_that_cannot_be_meant_is_refused_with_what_to_do() {
        let with = |title, change: fn(&mut Value)| {
            let mut manifest = manifest();
            change(&mut manifest);
            layer_of(&manifest, title).unwrap_err()
        };
        let named = Some("metadata.yaml");
        for (error, words) in [
            (
                with(None, |_| ()),
                "2 layers and not one (metadata.yaml, cluster-addon-values.yaml); say behind #",
            ),
            (with(None, |m| m["layers"] = json!([])), "0 layers"),
            (with(Some("disk"), |_| ()), "the title \"disk\" (metadata.yaml"),
            (
                with(named, |m| m["config"]["mediaType"] = json!(CONTAINERS[0])),
                "container image",
            ),
            (
                with(named, |m| m["config"]["mediaType"] = json!(CONTAINERS[1])),
                "oras push",
            ),
            (
                with(named, |m| m["layers"][0]["digest"] = json!("sha512:00")),
                "only sha256",
            ),
            (
                with(named, |m| {
                    m["layers"][0]["annotations"]["io.deis.oras.content.unpack"] = json!("true");
                }),
                "is a directory",
            ),
            (with(named, |m| m["manifests"] = json!([])), "without a platform"),
        ] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn media_type_of_the_answer_counts_only_where_it_says_something() {
        let bytes = manifest().to_string();
        for header in [
            None,
            Some("application/json"),
            Some("application/vnd.oci.image.manifest.v1+json; charset=utf-8"),
        ] {
            assert!(read(bytes.as_bytes(), header).is_ok(), "{header:?}");
        }
        let index = Some("application/vnd.oci.image.index.v1+json");
        assert!(matches!(
            read(bytes.as_bytes(), index),
            Err(ManifestError::MediaType { .. })
        ));
    }
}
