//! Which files a new provider consists of, and which lines of others name it. Pure: the texts come in and go out.

use super::{
    name::Name,
    text::{PlaceError, after, counted_up, into_block, into_list},
};

/// Files that are new, with their templates.
const NEW: [(&str, &str); 7] = [
    (
        "provider-operator/providers/{{name}}/Cargo.toml",
        include_str!("templates/Cargo.toml.in"),
    ),
    (
        "provider-operator/providers/{{name}}/src/lib.rs",
        include_str!("templates/lib.rs.in"),
    ),
    (
        "provider-operator/providers/{{name}}/src/cloud.rs",
        include_str!("templates/cloud.rs.in"),
    ),
    (
        "provider-operator/providers/{{name}}/src/store.rs",
        include_str!("templates/store.rs.in"),
    ),
    (
        "provider-operator/providers/{{name}}/tests/suite_of_{{name}}.rs",
        include_str!("templates/suite.rs.in"),
    ),
    ("crds/src/providers/{{name}}.rs", include_str!("templates/kinds.rs.in")),
    (
        "crds/src/release_files/node_images/{{name}}.rs",
        include_str!("templates/entries.rs.in"),
    ),
];

type Change = fn(&str, &Name) -> Result<String, PlaceError>;

/// Files that name all providers, and how they come to name one more.
const CHANGED: [(&str, Change); 15] = [
    ("Cargo.toml", workspace),
    ("provider-operator/Cargo.toml", features),
    ("provider-operator/src/kinds.rs", kinds),
    ("provider-operator/src/registry.rs", registry),
    ("crds/src/providers.rs", definitions),
    ("crds/src/release_files/node_images.rs", node_images),
    ("crds/src/release_files/mod.rs", release_files),
    ("crds/src/manifests/providers.rs", crds),
    ("crds/src/manifests/files.rs", parts),
    ("crds/src/manifests/provider_operator.rs", rights),
    ("crds/tests/generated.rs", folders),
    ("crds/tests/objects.rs", objects_in_tests),
    ("crds/tests/providers.rs", names_in_tests),
    ("planning/src/node_image/entries.rs", entries),
    ("e2e/tests/architecture.rs", rooms),
];

/// New files: path from the root, and text.
pub(crate) fn new_files(name: &Name) -> impl Iterator<Item = (String, String)> {
    NEW.iter()
        .map(|(path, template)| (name.fill(path), name.fill(template)))
}

/// The paths of the files that change.
pub(crate) fn changed_files() -> impl Iterator<Item = &'static str> {
    CHANGED.iter().map(|(path, _)| *path)
}

/// What becomes of one of [`changed_files`].
pub(crate) fn changed(path: &str, text: &str, name: &Name) -> Result<String, PlaceError> {
    match CHANGED.iter().find(|(changed, _)| *changed == path) {
        Some((_, change)) => change(text, name),
        None => Ok(text.to_owned()),
    }
}

fn workspace(text: &str, name: &Name) -> Result<String, PlaceError> {
    let member = name.fill("    \"provider-operator/providers/{{name}}\",");
    let text = after(text, "\"provider-operator/providers/filestore\",", &member)?;
    let dependency = name.fill("provider-{{name}} = { path = \"provider-operator/providers/{{name}}\" }");
    after(&text, "provider-filestore = {", &dependency)
}

fn features(text: &str, name: &Name) -> Result<String, PlaceError> {
    let text = into_list(text, ("default = [", "]"), &name.fill("\"{{name}}\""))?;
    let feature = name.fill("# {{Prefix}}, in memory at first.\n{{name}} = [\"dep:provider-{{name}}\"]");
    let text = after(&text, "filestore = [\"dep:", &feature)?;
    let dependency = name.fill("provider-{{name}} = { workspace = true, optional = true }");
    after(&text, "provider-filestore = {", &dependency)
}

fn kinds(text: &str, name: &Name) -> Result<String, PlaceError> {
    let row = name.fill(
        "    #[cfg(feature = \"{{name}}\")]\n    Kind {\n        definition: Provider::{{Prefix}}.definition(),\n        \
         read_image: read::<crds::providers::{{name}}::{{Prefix}}NodeImageReleaseSpec>,\n        format: \"format\",\n        has_options: false,\n        makes_images: true,\n        secret_key: None,\n        secret_type: None,\n    },",
    );
    into_block(text, ("pub(crate) static KINDS", "];"), &row)
}

fn registry(text: &str, name: &Name) -> Result<String, PlaceError> {
    let line = name.fill(
        "        #[cfg(feature = \"{{name}}\")]\n        named(Name::{{Prefix}}, provider_{{name}}::{{Prefix}}::default()),",
    );
    into_block(text, ("Vec::from([", "])"), &line)
}

fn definitions(text: &str, name: &Name) -> Result<String, PlaceError> {
    let (text, index) = counted_up(text, ("DEFINITIONS: [Definition; ", "]"))?;
    let definition = name.fill(
        "    Definition {\n        provider: Provider::{{Prefix}},\n        release_kind: \"{{Prefix}}ClusterStackRelease\",\n        \
         release_plural: \"{{name}}clusterstackreleases\",\n        image_kind: \"{{Prefix}}NodeImageRelease\",\n        \
         image_plural: \"{{name}}nodeimagereleases\",\n        images_key: \"{{key}}\",\n        \
         images_ready: ConditionType::NodeImageReleasesReady,\n    },",
    );
    let text = into_block(&text, ("pub const DEFINITIONS", "];"), &definition)?;
    let text = after(&text, "pub mod filestore;", &name.fill("pub mod {{name}};"))?;
    let variant = name.fill("    /// Images in {{Prefix}}.\n    {{Prefix}},");
    let text = into_block(&text, ("pub enum Provider {", "}"), &variant)?;
    let arm = format!("            Self::{} => &DEFINITIONS[{index}],", name.prefix);
    into_block(&text, ("match self {", "}"), &arm)
}

fn node_images(text: &str, name: &Name) -> Result<String, PlaceError> {
    let text = after(text, "mod filestore;", &name.fill("mod {{name}};"))?;
    into_list(&text, ("pub use self::{", "}"), &name.fill("{{name}}::{{name}}_images"))
}

fn release_files(text: &str, name: &Name) -> Result<String, PlaceError> {
    into_list(text, ("node_images::{NodeImage", "}"), &name.fill("{{name}}_images"))
}

fn crds(text: &str, name: &Name) -> Result<String, PlaceError> {
    let used = name.fill(
        "        {{name}}::{\n            {{Prefix}}ClusterStackRelease, {{Prefix}}ClusterStackReleaseTemplate, {{Prefix}}NodeImageRelease,\n        },",
    );
    let text = after(text, "Provider,", &used)?;
    let arm = name.fill(
        "        Provider::{{Prefix}} => [\n            {{Prefix}}ClusterStackRelease::crd(),\n            \
         {{Prefix}}ClusterStackReleaseTemplate::crd(),\n            {{Prefix}}NodeImageRelease::crd(),\n        ],",
    );
    into_block(&text, ("let definitions = match provider {", "};"), &arm)
}

fn parts(text: &str, name: &Name) -> Result<String, PlaceError> {
    let variant = name.fill("    /// The CRDs of the provider {{name}}.\n    {{Prefix}},");
    let text = into_block(text, ("pub enum Part {", "}"), &variant)?;
    let arm =
        name.fill("            Self::{{Prefix}} => of_definitions(&provider_definitions(Provider::{{Prefix}}))?,");
    after(&text, "Self::FileStore => of_definitions", &arm)
}

fn rights(text: &str, name: &Name) -> Result<String, PlaceError> {
    let mut text = text.to_owned();
    for plural in ["clusterstackreleases", "nodeimagereleases"] {
        for part in ["", "/status"] {
            let first = format!("\"openstack{plural}{part}\"");
            let item = format!("\"{}{plural}{part}\"", name.word);
            text = into_list(&text, (&first, "]"), &item)?;
        }
    }
    Ok(text)
}

fn folders(text: &str, name: &Name) -> Result<String, PlaceError> {
    let arm = name.fill("        Part::{{Prefix}} => \"providers/{{name}}\",");
    after(text, "Part::FileStore =>", &arm)
}

fn objects_in_tests(text: &str, name: &Name) -> Result<String, PlaceError> {
    let used = name.fill(
        "        {{name}}::{{{Prefix}}ClusterStackRelease, {{Prefix}}ClusterStackReleaseTemplate, {{Prefix}}NodeImageRelease},",
    );
    let text = after(text, "filestore::{FileStoreClusterStackRelease,", &used)?;
    let row = |kind: &str| {
        let kind = name.fill(kind);
        format!("        Some(\"{kind}\") => through::<{kind}>(object),")
    };
    let rows = [
        "{{Prefix}}ClusterStackRelease",
        "{{Prefix}}ClusterStackReleaseTemplate",
        "{{Prefix}}NodeImageRelease",
    ];
    let last = "Some(\"FileStoreNodeImageRelease\") =>";
    after(&text, last, &rows.map(row).join("\n"))
}

fn names_in_tests(text: &str, name: &Name) -> Result<String, PlaceError> {
    let text = into_list(
        text,
        ("const RELEASES: &[&str] = &[", "]"),
        &name.fill("\"{{name}}clusterstackreleases\""),
    )?;
    let text = into_list(
        &text,
        ("const IMAGES: &[&str] = &[", "]"),
        &name.fill("\"{{name}}nodeimagereleases\""),
    )?;
    let text = into_list(&text, ("const KEYS: &[&str] = &[", "]"), &name.fill("\"{{key}}\""))?;
    let row = name.fill("[\"{{name}}csr\", \"{{name}}csrt\", \"{{name}}nir\"]");
    into_list(&text, ("let short_names = [", "];"), &row)
}

fn entries(text: &str, name: &Name) -> Result<String, PlaceError> {
    let used = name.fill("use crds::providers::{{name}}::{{Prefix}}ClusterStackReleaseSpec;");
    let text = after(text, "use crds::providers::filestore::", &used)?;
    let arm = name.fill(
        "        Provider::{{Prefix}} => of_release::<{{Prefix}}ClusterStackReleaseSpec>(spec, file, tag, metadata),",
    );
    let text = after(&text, "Provider::FileStore => of_release::<", &arm)?;
    let arm = name.fill("        Provider::{{Prefix}} => of_image::<{{Prefix}}ClusterStackReleaseSpec>(spec),");
    after(&text, "Provider::FileStore => of_image::<", &arm)
}

fn rooms(text: &str, name: &Name) -> Result<String, PlaceError> {
    let room = name.fill(
        "    Room {\n        name: \"provider-{{name}}\",\n        rooms: &[\"provider-plugin\"],\n        \
         without: &[\"kube-core\", \"kube-client\", \"k8s-openapi\"],\n        pure: false,\n    },",
    );
    let text = after_block(text, ("name: \"provider-filestore\",", "},"), &room)?;
    // Its place is among the rooms that the operator may use, behind its own row.
    let own = "name: \"provider-operator\",";
    let Some((before, behind)) = text.split_once(own) else {
        return Err(PlaceError::Begin { begin: own.to_owned() });
    };
    let behind = after(
        behind,
        "\"provider-filestore\",",
        &name.fill("            \"provider-{{name}}\","),
    )?;
    Ok(format!("{before}{own}{behind}"))
}

/// The text with lines added right after the line that ends a block.
fn after_block(text: &str, (begin, end): (&str, &str), addition: &str) -> Result<String, PlaceError> {
    let marked = into_block(text, (begin, end), "\u{0}")?;
    let Some((before, behind)) = marked.split_once("\u{0}\n") else {
        return Err(PlaceError::Begin {
            begin: begin.to_owned(),
        });
    };
    let (last, rest) = behind.split_once('\n').unwrap_or((behind, ""));
    Ok(format!("{before}{last}\n{addition}\n{rest}"))
}
