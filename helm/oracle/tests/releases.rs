//! The add-ons of real releases, rendered as operators do and by the real Helm as the Go operator calls it: the same objects.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    io::{Write as _, stderr},
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;
use helm::yaml::{self, Node};
use helm_oracle::{Answer, Helm, Lab};
use rendering::{
    ChartBytes, HelmProfile, Lane, RenderError, RenderRequest, Rendered, Renderer,
    answers::{Answers, Moment, Seeded},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Releases with add-ons in stages, of these stacks.
const STACKS: [&str; 2] = ["docker-scs-", "openstack-scs-"];
const NAMESPACE: &str = "kube-system";
const RELEASE: &str = "cluster-addon";

/// A chart of a stage, in a folder as the Go operator unpacks it.
struct Stage {
    /// The release and the folder.
    name: String,
    folder: PathBuf,
    kubernetes: String,
}

/// Every stage of every release, unpacked; nothing without a corpus.
fn stages() -> Option<(TempDir, Vec<Stage>)> {
    let Some(corpus) = env::var_os("STACKWRIGHT_CORPUS") else {
        // Unlike the macros, this is not captured.
        let said = b"REDUCED: releases: STACKWRIGHT_CORPUS is not set, so no add-on of a real release is rendered\n";
        stderr().write_all(said).unwrap();
        return None;
    };
    let scratch = TempDir::new().unwrap();
    let mut stages = Vec::new();
    for release in folders(&PathBuf::from(corpus).join("releases")) {
        let name = release.file_name().unwrap().to_str().unwrap().to_owned();
        if !STACKS.iter().any(|stack| name.starts_with(stack)) {
            continue;
        }
        let metadata = yaml::parse(&fs::read(release.join("metadata.yaml")).unwrap()).unwrap();
        let kubernetes = metadata.get("versions").and_then(|versions| versions.get("kubernetes"));
        let kubernetes = kubernetes.and_then(Node::as_text).unwrap().to_owned();
        let unpacked = scratch.path().join(&name);
        let files = fs::read_dir(&release).unwrap().map(|file| file.unwrap().path());
        let archive = files
            .into_iter()
            .find(|file| file.to_string_lossy().contains("-cluster-addon-v"));
        let archive = fs::File::open(archive.unwrap()).unwrap();
        tar::Archive::new(GzDecoder::new(archive)).unpack(&unpacked).unwrap();
        stages.extend(folders(&unpacked).into_iter().map(|folder| Stage {
            name: format!("{name}/{}", folder.file_name().unwrap().to_string_lossy()),
            folder,
            kubernetes: kubernetes.clone(),
        }));
    }
    Some((scratch, stages))
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The files below a folder, by their paths in it.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = self::files(&path).into_iter();
            files.extend(below.map(|(path, content)| (format!("{name}/{path}"), content)));
        } else {
            files.push((name, fs::read(&path).unwrap()));
        }
    }
    files
}

impl Stage {
    /// What its values template gives for a cluster.
    fn values(&self) -> Value {
        let folder = self.folder.file_name().unwrap().to_str().unwrap();
        match folder {
            "ccm" => json!({"openstack-cloud-controller-manager": {"cluster": {"name": "harbor"}}}),
            "csi" => json!({"openstack-cinder-csi": {"clusterID": "harbor"}}),
            _ => Value::Null,
        }
    }

    /// As an operator renders it, who finds nothing in the cluster but what these answers say.
    fn ours(&self, values: &Value, answers: &Answers) -> Rendered {
        let mut answers = answers.clone();
        let renderer = Renderer::new(0);
        let chart = || Ok(ChartBytes::Files(files(&self.folder)));
        loop {
            let request = RenderRequest {
                identity: &self.name,
                chart: &chart,
                release_name: RELEASE,
                namespace: NAMESPACE,
                kubernetes_version: Some(&self.kubernetes),
                api_versions: &[],
                include_crds: true,
                profile: HelmProfile::V3_19,
                values,
                answers: Some(&answers),
            };
            match renderer.render(&request, Lane::Slow) {
                Ok(ours) => return ours,
                Err(RenderError::Needs { lookups }) => {
                    answers
                        .found
                        .extend(lookups.into_iter().map(|lookup| (lookup, Value::Null)));
                }
                Err(error) => panic!("{}: {error:?}", self.name),
            }
        }
    }

    /// The objects in what the real Helm prints.
    fn theirs(&self, helm: &Helm, values: &Value) -> Vec<Value> {
        let file = self.folder.with_extension("values.json");
        fs::write(&file, values.to_string()).unwrap();
        let flags = [
            "--include-crds",
            "--dependency-update",
            "--kube-version",
            &self.kubernetes,
            RELEASE,
        ];
        let mut arguments: Vec<OsString> = flags.map(OsString::from).to_vec();
        arguments.push(self.folder.clone().into());
        arguments.extend(["--namespace", NAMESPACE, "-f"].map(OsString::from));
        arguments.push(file.into());
        match helm.ask(&arguments).unwrap() {
            Answer::Output(output) => objects(&output),
            other => panic!("{}: {other:?}", self.name),
        }
    }
}

/// The documents of a text that are not empty, as JSON. The line break before a separator belongs to the document.
fn objects(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let text = format!("\n{text}");
    let documents = text.split("\n---\n").map(|document| format!("{document}\n"));
    let read = documents.map(|document| json(&yaml::read(document.as_bytes()).unwrap().node));
    read.filter(|document| !document.is_null()).collect()
}

fn json(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => json!(value),
        Node::Int(number) => json!(number),
        Node::Uint(number) => json!(number),
        Node::Float(number) => json!(number),
        Node::Text(text) => json!(text),
        Node::Bytes(_) => panic!("YAML has none"),
        Node::List(items) => items.iter().map(json).collect(),
        Node::Map(entries) => entries.iter().map(|(key, node)| (key.clone(), json(node))).collect(),
    }
}

/// What one looks for an object by.
fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    [
        &object["apiVersion"],
        &object["kind"],
        &metadata["namespace"],
        &metadata["name"],
    ]
    .map(text)
    .join(" ")
}

/// The leaves of an object by their paths.
fn leaves(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                leaves(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (position, value) in items.iter().enumerate() {
                leaves(value, &format!("{path}/{position}"), found);
            }
        }
        leaf => drop(found.insert(path.to_owned(), leaf.clone())),
    }
}

fn all_leaves(objects: &[Value]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for object in objects {
        leaves(object, &identity(object), &mut found);
    }
    found
}

/// Where two lists of leaves differ.
fn differences(left: &BTreeMap<String, Value>, right: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let paths: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let differ = paths.into_iter().filter(|path| left.get(*path) != right.get(*path));
    differ.cloned().collect()
}

fn answers(seed: u8) -> Answers {
    let now = Moment {
        seconds: 1_790_000_000,
        nanoseconds: 0,
    };
    Answers {
        memo: Vec::new(),
        found: BTreeMap::new(),
        new: Seeded::new([seed; 32], now),
    }
}

fn values(rendered: &Rendered) -> Vec<Value> {
    rendered.objects.iter().map(|object| object.value.clone()).collect()
}

#[test]
fn every_stage_of_the_real_releases_has_the_objects_of_helm_in_its_order() {
    let Some((_scratch, stages)) = stages() else { return };
    let helm = Helm::real(Lab::load().unwrap().helm("v3.19").unwrap());
    let mut drawn = BTreeSet::new();
    for stage in &stages {
        let values_given = stage.values();
        let ours = values(&stage.ours(&values_given, &answers(1)));
        // Asked twice, because what it draws differs.
        let [theirs, again] = [(); 2].map(|()| stage.theirs(&helm, &values_given));
        let order = |objects: &[Value]| objects.iter().map(identity).collect::<Vec<_>>();
        assert_eq!(order(&ours), order(&theirs), "{}", stage.name);
        let [ours, theirs, again] = [ours, theirs, again].map(|objects| all_leaves(&objects));
        let of_chance = differences(&theirs, &again);
        let unlike = differences(&ours, &theirs);
        let wrong: Vec<_> = unlike.difference(&of_chance).collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", stage.name);
        if !of_chance.is_empty() {
            drawn.insert(stage.name.rsplit('/').next().unwrap());
            assert_eq!(unlike, of_chance, "{}: what is drawn is drawn here too", stage.name);
        }
    }
    assert_eq!(stages.len(), 2 * 2 + 4 * 4, "stages that were rendered");
    assert_eq!(drawn, BTreeSet::from(["cni"]), "cilium makes certificates");
}

#[test]
fn cilium_keeps_its_certificates_with_its_memo_and_gets_others_with_another() {
    let Some((_scratch, stages)) = stages() else { return };
    for stage in stages.iter().filter(|stage| stage.name.ends_with("/cni")) {
        let first = stage.ours(&Value::Null, &answers(1));
        assert!(!first.questions.new.is_empty(), "{}", stage.name);
        // Written and read, as a Secret keeps it; and what is not in it would be drawn from another seed.
        let kept = serde_json::to_string(&first.questions.new).unwrap();
        let memo = Answers {
            memo: serde_json::from_str(&kept).unwrap(),
            ..answers(2)
        };
        let again = stage.ours(&Value::Null, &memo);
        assert_eq!(
            (&again.digest, &again.objects),
            (&first.digest, &first.objects),
            "{}",
            stage.name
        );
        assert!(again.questions.new.is_empty());

        let change = json!({"cilium": {"operator": {"replicas": 5}}});
        let changed = stage.ours(&change, &memo);
        assert!(changed.questions.new.is_empty(), "no certificate depends on that");
        let [before, after] = [&first, &changed].map(|rendered| all_leaves(&values(rendered)));
        let replicas = format!("apps/v1 Deployment {NAMESPACE} cilium-operator/spec/replicas");
        assert_eq!(differences(&before, &after), BTreeSet::from([replicas]));

        // Once it is applied, the chart finds its own authority in the cluster.
        let authority = first.questions.lookups.iter().map(|lookup| {
            let is_it = |object: &&Value| object["kind"] == lookup.kind && object["metadata"]["name"] == lookup.name;
            let applied = values(&first);
            (lookup.clone(), applied.iter().find(is_it).unwrap().clone())
        });
        let applied = Answers {
            found: authority.collect(),
            ..memo.clone()
        };
        let later = stage.ours(&Value::Null, &applied);
        assert!(later.questions.new.is_empty(), "{}: {:?}", stage.name, later.questions);
        assert_eq!(later.objects, first.objects, "{}", stage.name);

        let other = all_leaves(&values(&stage.ours(&Value::Null, &answers(3))));
        let secrets = differences(&before, &other);
        assert!(!secrets.is_empty());
        for path in &secrets {
            assert!(
                path.contains(" Secret ") || path.ends_with("/data/ca.crt"),
                "{}: {path} is no certificate",
                stage.name
            );
        }
    }
}
