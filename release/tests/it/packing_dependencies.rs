//! Charts that charts of a stack need, taken from a directory.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use release::{
    Release,
    pack::{self, Origin, PackError, Preparation, Prepared, Supplied, Supply, Versioning},
};
use tempfile::TempDir;

use crate::fixture::{Archive, admitted, chain, tag};

pub(crate) const CSCTL: &str = "apiVersion: csctl.clusterstack.x-k8s.io/v1alpha1\nconfig:\n  kubernetesVersion: v1.34.2\n  clusterStackName: scs2\n  \
    provider: {type: openstack}\n";
const STAGES: &str =
    "addonStages:\n  AfterControlPlaneInitialized:\n  - {name: cni, action: apply}\n  - {name: csi, action: apply}\n";

/// A stack whose add-on charts name others and have none of them, as stacks of this kind lie in their repositories.
fn stack(folder: &Path) -> PathBuf {
    let stack = folder.join("stack");
    let chart = |name: &str, dependencies: &str| {
        format!("apiVersion: v2\nname: {name}\nversion: v1\ndependencies:\n{dependencies}")
    };
    write(&stack, "csctl.yaml", CSCTL);
    write(
        &stack,
        "cluster-class/Chart.yaml",
        "apiVersion: v2\nname: openstack-scs2-1-34-cluster-class\nversion: v1\n",
    );
    write(&stack, "clusteraddon.yaml", STAGES);
    let cilium = "- name: cilium\n  alias: network\n  repository: https://helm.cilium.io/\n  version: ~1.17.0\n";
    write(&stack, "cluster-addon/cni/Chart.yaml", &chart("cni", cilium));
    let csi = "- {name: cinder, repository: 'https://example.com', version: 2.x}\n- {name: common, version: '*'}\n";
    write(&stack, "cluster-addon/csi/Chart.yaml", &chart("csi", csi));
    stack
}

/// A directory with more charts than the stack needs, and other files.
fn charts(folder: &Path) -> PathBuf {
    let charts = folder.join("charts");
    fs::create_dir_all(&charts).unwrap();
    for (file, version) in [
        ("cilium-1.16.6", "1.16.6"),
        ("cilium-1.17.4", "1.17.4"),
        ("other-name", "1.17.3"),
        ("cilium-1.18.0", "1.18.0"),
    ] {
        fs::write(charts.join(format!("{file}.tgz")), archive("cilium", version)).unwrap();
    }
    write(
        &charts,
        "cinder/Chart.yaml",
        "name: cinder\nversion: 2.32.0\ndependencies: [{name: common, version: 2.x.x}]\n",
    );
    write(&charts, "cinder/.helmignore", "notes.txt\n");
    write(&charts, "cinder/notes.txt", "for nobody");
    write(&charts, "cinder/templates/a.yaml", "a: 1\n");
    fs::write(charts.join("common.tgz"), archive("common", "2.1.0")).unwrap();
    write(&charts, "README.md", "no chart");
    write(&charts, "notes/README.md", "no chart");
    charts
}

pub(crate) fn archive(name: &str, version: &str) -> Vec<u8> {
    let text = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    Archive::new()
        .file(&format!("{name}/Chart.yaml"), text.as_bytes())
        .bytes()
}

pub(crate) fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Versions as `x.y.z`, and ranges as far as these tests have them: what ranges are is another room's business.
pub(crate) fn newest(range: &str, versions: &[&str]) -> Option<usize> {
    let prefix = range
        .trim_start_matches('~')
        .split(['x', '*'])
        .next()
        .unwrap_or_default();
    let prefix = prefix.strip_suffix(".0").unwrap_or(prefix);
    let prefix = if range == ">=0.0.0-0" { "" } else { prefix };
    let fitting = versions
        .iter()
        .enumerate()
        .filter(|(_, version)| version.starts_with(prefix));
    fitting
        .max_by_key(|(_, version)| **version)
        .map(|(position, _)| position)
}

fn prepared(stack: &Path, output: &Path, charts: Option<&Path>) -> Result<Prepared, PackError> {
    let versioning = Versioning::Given("v1".parse().unwrap());
    let supply = charts.map(|charts| Supply {
        charts: Some(charts),
        registries: None,
        newest,
    });
    match pack::prepare(stack, output, &versioning, supply)? {
        Preparation::Prepared(prepared) => Ok(prepared),
        Preparation::Unchanged { since } => panic!("unchanged since {since}"),
    }
}

/// The error without the folder of the test.
fn refusal(stack: &Path, charts: Option<&Path>) -> String {
    let folder = stack.parent().unwrap();
    let error = prepared(stack, &folder.join("releases"), charts).unwrap_err();
    chain(&error).replace(&format!("{}/", folder.display()), "")
}

#[test]
fn what_charts_of_a_stack_lack_is_taken_from_the_directory_into_the_release_alone() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    let made = prepared(&stack, folder.path(), Some(&charts)).unwrap();
    let supplied = |into: &str, from: &str, name: &str, version: &str| Supplied {
        into: stack.join("cluster-addon").join(into),
        from: Origin::Path(charts.join(from)),
        name: name.to_owned(),
        version: version.to_owned(),
    };
    assert_eq!(
        made.supplied(),
        [
            supplied("cni", "cilium-1.17.4.tgz", "cilium", "1.17.4"),
            supplied("csi", "cinder", "cinder", "2.32.0"),
            supplied("csi/charts/cinder", "common.tgz", "common", "2.1.0"),
            supplied("csi", "common.tgz", "common", "2.1.0"),
        ]
    );
    let packed = made.write().unwrap();
    let release = Release::open(&packed.directory, &tag("openstack-scs2-1-34-v1")).unwrap();
    let stages = admitted(&release).read_stage_files(|_, _| true).unwrap();
    let names = |stage: &str| stages[stage].iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>();
    assert_eq!(names("cni"), ["Chart.yaml", "charts/cilium-1.17.4.tgz"]);
    assert_eq!(
        names("csi"),
        [
            "Chart.yaml",
            "charts/cinder/.helmignore",
            "charts/cinder/Chart.yaml",
            "charts/cinder/charts/common-2.1.0.tgz",
            "charts/cinder/templates/a.yaml",
            "charts/common-2.1.0.tgz",
        ]
    );
    let files: BTreeMap<_, _> = stages["cni"].iter().cloned().collect();
    assert_eq!(files["charts/cilium-1.17.4.tgz"], archive("cilium", "1.17.4"));
    assert!(
        !stack.join("cluster-addon/cni/charts").exists(),
        "the stack stays as it is"
    );

    // Once more, to the byte; and with another version of one chart it is another release.
    let again = prepared(&stack, &folder.path().join("again"), Some(&charts)).unwrap();
    assert_eq!(again.write().unwrap().digest, packed.digest);
    fs::write(charts.join("cilium-1.17.9.tgz"), archive("cilium", "1.17.9")).unwrap();
    let supply = Some(Supply {
        charts: Some(&charts),
        registries: None,
        newest,
    });
    let next = Versioning::NextAfter(folder.path().to_owned());
    let next = pack::prepare(&stack, folder.path(), &next, supply).unwrap();
    let Preparation::Prepared(next) = next else {
        panic!("{next:?}");
    };
    let next = next.write().unwrap();
    assert_eq!(next.tag.to_string(), "openstack-scs2-1-34-v2");
    assert!(
        next.files
            .iter()
            .any(|file| file.name == "openstack-scs2-1-34-cluster-addon-v2.tgz")
    );
}

#[test]
fn what_was_chosen_before_is_chosen_again_while_it_is_there_and_fits() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    let chosen = || {
        let made = prepared(&stack, folder.path(), Some(&charts)).unwrap();
        made.supplied()[0].version.clone()
    };
    for (locked, expected) in [("1.17.3", "1.17.3"), ("1.16.6", "1.17.4"), ("1.17.1", "1.17.4")] {
        let lock =
            format!("dependencies:\n- name: cilium\n  repository: https://helm.cilium.io/\n  version: {locked}\n");
        write(&stack, "cluster-addon/cni/Chart.lock", &lock);
        assert_eq!(chosen(), expected, "{locked}");
    }
}

#[test]
fn what_is_there_is_not_taken_from_elsewhere_whatever_its_file_is_called() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    let below = stack.join("cluster-addon/cni/charts");
    fs::create_dir_all(&below).unwrap();
    // Another chart, whose file is called as the one that is needed could be.
    fs::write(below.join("cilium-cli-1.0.0.tgz"), archive("cilium-cli", "1.0.0")).unwrap();
    let made = prepared(&stack, folder.path(), Some(&charts)).unwrap();
    assert_eq!(made.supplied()[0].name, "cilium");
    fs::write(below.join("mine.tgz"), archive("cilium", "1.17.0")).unwrap();
    let made = prepared(&stack, folder.path(), Some(&charts)).unwrap();
    assert_eq!(made.supplied()[0].name, "cinder");
}

#[test]
fn a_chart_that_another_one_has_in_it_is_not_there_for_the_chart_around_that() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    let other = "cluster-addon/cni/charts/other";
    write(&stack, &format!("{other}/Chart.yaml"), "name: other\nversion: v1\n");
    let cilium = "name: cilium\nversion: 1.17.0\n";
    write(&stack, &format!("{other}/charts/cilium/Chart.yaml"), cilium);
    let made = prepared(&stack, folder.path(), Some(&charts)).unwrap();
    let Supplied { into, name, .. } = &made.supplied()[0];
    assert_eq!((into, name.as_str()), (&stack.join("cluster-addon/cni"), "cilium"));
}

/// A number for YAML, and a text for Helm.
#[test]
fn a_range_of_two_numbers_needs_no_quotes() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    let file = "cluster-addon/cni/Chart.yaml";
    let text = fs::read_to_string(stack.join(file)).unwrap();
    let unquoted = text.replace("version: ~1.17.0\n", "version: 1.17\n");
    assert_ne!(unquoted, text);
    write(&stack, file, &unquoted);
    let made = prepared(&stack, folder.path(), Some(&charts)).unwrap();
    let Supplied { name, version, .. } = &made.supplied()[0];
    assert_eq!((name.as_str(), version.as_str()), ("cilium", "1.17.4"));
}

#[test]
fn a_dependency_that_is_nowhere_is_named_with_its_line_and_what_there_is() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    assert_eq!(
        refusal(&stack, None),
        "stack/cluster-addon/cni/Chart.yaml:5: the dependency \"cilium\" is not in charts/; run \
         `helm dependency build stack/cluster-addon/cni`, or name the directory that has it with --charts"
    );
    fs::remove_file(charts.join("cilium-1.17.4.tgz")).unwrap();
    fs::remove_file(charts.join("other-name.tgz")).unwrap();
    assert_eq!(
        refusal(&stack, Some(&charts)),
        "stack/cluster-addon/cni/Chart.yaml:5: the dependency \"cilium\" of version \"~1.17.0\" is not in charts/; charts has 1.16.6, 1.18.0: \
         put it there"
    );
    fs::remove_file(charts.join("cilium-1.16.6.tgz")).unwrap();
    fs::remove_file(charts.join("cilium-1.18.0.tgz")).unwrap();
    let nowhere = refusal(&stack, Some(&charts));
    assert!(
        nowhere.ends_with("; charts has no version of it: put it there"),
        "{nowhere}"
    );
    // The chart itself may have the name.
    let chart = stack.join("cluster-addon/cni/Chart.yaml");
    let text = fs::read_to_string(&chart).unwrap();
    fs::write(&chart, text.replace("name: cni", "name: cilium-cni")).unwrap();
    let refused = refusal(&stack, Some(&charts));
    assert!(
        refused.starts_with("stack/cluster-addon/cni/Chart.yaml:5: the dependency \"cilium\""),
        "{refused}"
    );
}

#[test]
fn a_directory_of_charts_that_cannot_be_used_is_refused() {
    let folder = TempDir::new().unwrap();
    let (stack, charts) = (stack(folder.path()), charts(folder.path()));
    let missing = refusal(&stack, Some(&folder.path().join("nowhere")));
    assert!(missing.starts_with("nowhere: unable to read it"), "{missing}");
    write(
        &charts,
        "cinder/Chart.yaml",
        "name: cinder\nversion: 2.32.0\ndependencies: [{name: cinder, version: 2.x}]\n",
    );
    assert_eq!(
        refusal(&stack, Some(&charts)).rsplit_once("Chart.yaml: ").unwrap().1,
        "the dependency \"cinder\" is too deep in others; charts that need each other cannot be used"
    );
    fs::write(charts.join("broken.tgz"), "no archive").unwrap();
    let broken = refusal(&stack, Some(&charts));
    assert!(
        broken.starts_with("charts/broken.tgz: is not the archive of a chart: "),
        "{broken}"
    );
}
