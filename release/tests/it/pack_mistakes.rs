//! Mistakes in a stack: each message names the file, the line and what to do, and nothing is written.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use release::pack::{self, Creation, Versioning};
use tempfile::TempDir;

use crate::fixture::chain;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// What is said, without the directory of the stack, after somebody did this to a good one.
fn refusal(harm: impl FnOnce(&Path)) -> String {
    let place = TempDir::new().unwrap();
    let (stack, output) = (place.path().join("stack"), place.path().join("output"));
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1"),
        &stack,
    );
    harm(&stack);
    let versioning = Versioning::Given("v1".parse().unwrap());
    let error = pack::create(&stack, &output, &versioning).expect_err("the stack is refused");
    let left: Vec<PathBuf> = fs::read_dir(&output).map_or_else(
        |_| Vec::new(),
        |entries| entries.map(|entry| entry.unwrap().path()).collect(),
    );
    assert_eq!(left, Vec::<PathBuf>::new());
    chain(&error).replace(&format!("{}/", stack.display()), "")
}

/// What is noted of a good stack, without its directory, after somebody did this to it.
fn notes(change: impl FnOnce(&Path)) -> Vec<String> {
    let place = TempDir::new().unwrap();
    let (stack, output) = (place.path().join("stack"), place.path().join("output"));
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1"),
        &stack,
    );
    change(&stack);
    let versioning = Versioning::Given("v1".parse().unwrap());
    let Creation::Packed(packed) = pack::create(&stack, &output, &versioning).expect("the stack is good") else {
        panic!("there was no release before");
    };
    let within = format!("{}/", stack.display());
    packed.notes.iter().map(|note| note.replace(&within, "")).collect()
}

/// The refusal after replacing a text in a file.
fn refusal_of(file: &str, from: &str, to: &str) -> String {
    refusal(|stack| {
        let text = fs::read_to_string(stack.join(file)).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(stack.join(file), text.replace(from, to)).unwrap();
    })
}

#[test]
fn missing_parts_are_named() {
    let without = |part: &str| {
        refusal(|stack| {
            let path = stack.join(part);
            if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .unwrap();
        })
    };
    assert_eq!(
        without("csctl.yaml"),
        "csctl.yaml: missing; a stack directory needs it; the help of this command shows one"
    );
    assert_eq!(
        without("cluster-class"),
        "cluster-class: missing; put the chart of the ClusterClass there"
    );
    assert!(without("cluster-addon").starts_with("cluster-addon: missing; "));
    assert!(without("clusteraddon.yaml").starts_with("cluster-addon-values.yaml: missing; "));
    assert_eq!(
        without("cluster-class/Chart.yaml"),
        "cluster-class/Chart.yaml: missing; a chart needs it, with a name and a version"
    );
    assert_eq!(
        without("cluster-addon/welcome/Chart.yaml"),
        "clusteraddon.yaml:7: the stage \"welcome\" has no chart; create cluster-addon/welcome/Chart.yaml or remove the stage"
    );
}

#[test]
fn settings_that_make_no_tag_are_named_with_their_line() {
    let of = |from, to| refusal_of("csctl.yaml", from, to);
    assert_eq!(
        of("v1.34.0", "1.34"),
        "csctl.yaml:3: kubernetesVersion is \"1.34\"; write the full version, such as v1.34.2"
    );
    assert_eq!(
        of("harbor", "har-bor"),
        "csctl.yaml:4: unable to use clusterStackName: invalid name \"har-bor\": use lower-case letters and digits only"
    );
    assert_eq!(
        of("type: docker", "type: Docker"),
        "csctl.yaml:6: unable to use type: invalid provider \"Docker\": use lower-case letters and digits only"
    );
    assert!(of("csctl.clusterstack", "other.clusterstack").starts_with("csctl.yaml:1: apiVersion is \"other."));
    assert!(of("clusterStackName: harbor", "clusterStack: harbor").contains("clusterStackName"));
}

#[test]
fn unknown_placeholder_is_named_with_its_line() {
    let refusal = refusal_of(
        "cluster-addon/welcome/templates/note.yaml",
        ".ClusterAddonVersion",
        ".AddonVersion",
    );
    assert_eq!(
        refusal,
        "cluster-addon/welcome/templates/note.yaml:7: nothing is known for \"<< .AddonVersion >>\"; there are << .ClusterClassVersion >>, \
         << .ClusterAddonVersion >>, << .NodeImageVersion >>"
    );
}

#[test]
fn charts_that_readers_would_not_find_or_complete_are_refused() {
    let chart = "cluster-class/Chart.yaml";
    assert_eq!(
        refusal_of(chart, "name: docker-harbor-1-34-cluster-class", "name: harbor"),
        "cluster-class/Chart.yaml:2: the chart is named \"harbor\"; name it \"docker-harbor-1-34-cluster-class\""
    );
    assert_eq!(
        refusal_of(chart, "version: v0", "\"version\": v0"),
        "cluster-class/Chart.yaml: unable to set the version; write `version: v0` on a line of its own"
    );
    assert!(refusal_of(chart, "version: v0", "").starts_with("cluster-class/Chart.yaml:"));
    assert_eq!(
        refusal_of(
            "cluster-addon/network/Chart.yaml",
            "version: 0.1.0",
            "version: 0.1.0\ndependencies:\n- name: cilium\n  version: 1.17.1"
        ),
        "cluster-addon/network/Chart.yaml:7: the dependency \"cilium\" is not in charts/; run `helm dependency build cluster-addon/network`, \
         or name the directory that has it with --charts"
    );
    assert_eq!(
        refusal_of("cluster-class/.helmignore", "*~", "**/*~"),
        "cluster-class/.helmignore:2: the pattern \"**/*~\" is not supported; use *, ? and [...] within one directory"
    );
}

#[test]
fn broken_yaml_is_named_with_its_line() {
    assert!(refusal_of("csctl.yaml", "  provider:", "  provider: [").starts_with("csctl.yaml:"));
    let stages = refusal_of("clusteraddon.yaml", "  AfterControl", "  [AfterControl");
    assert!(
        stages.starts_with("clusteraddon.yaml:") && !stages.starts_with("clusteraddon.yaml: "),
        "{stages}"
    );
    let images = refusal_of("node-images.yaml", "- url:", "- [");
    assert!(images.starts_with("node-images.yaml: "), "{images}");
    for refusal in [stages, images] {
        assert_eq!(refusal.matches(".yaml").count(), 1, "the file is named once: {refusal}");
    }
}

/// Eleven of them.
const MISTAKES: &str = "\
addonStages:
  AfterControlPlaneInitialised:
  - name: network
    action: install
    timeout: 1w
  AfterControlPlaneInitialized:
  - name: welcome
    action: apply
    timeOut: 5m
    waitForPostCondition:
      objects:
      - {key: agent, apiVersion: apps/v1, kind: DaemonSet, name: agent, namespace: kube-system}
      condition: agent.status.numberReady > 0
  - name: storage
    action: apply
    timeout: 8d
    waitForPreCondition:
      objects:
      - {key: agent, apiVersion: apps/v1, kind: DaemonSet, name: agent, namespace: kube-system}
      conditions: agent.status.numberReady > 0 && agent.status.numberRead > 0
    waitForPostCondition:
      objects:
      - {key: agent, apiVersion: apps/v1, kind: DaemonSet, namespace: kube-system}
      conditions: agent.status.numberReady >
  BeforeClusterDelete:
  - name: welcome
    action: delete
    waitForPreCondition:
      conditions: |
        true &&
        1
";

#[test]
fn all_that_is_wrong_with_the_stages_is_told_at_once_by_its_lines() {
    let path = "addonStages.AfterControlPlaneInitiali";
    let form = "a length of time is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h";
    let expected = [
        "2: there is no hook \"AfterControlPlaneInitialised\", so its stages would never be run; the hooks are BeforeClusterCreate, \
         AfterControlPlaneInitialized, BeforeClusterUpgrade, BeforeControlPlaneUpgrade, AfterControlPlaneUpgrade, BeforeWorkersUpgrade, \
         AfterWorkersUpgrade, AfterClusterUpgrade, BeforeClusterDelete"
            .to_owned(),
        format!("4: {path}sed[0].action: unknown variant `install`, expected `apply` or `delete`"),
        format!("5: {path}sed[0].timeout: \"1w\": there is no unit w: {form}"),
        format!("9: {path}zed[0].timeOut: there is no such key: did you mean timeout?"),
        format!("13: {path}zed[0].waitForPostCondition.condition: there is no such key: did you mean conditions?"),
        "14: the stage \"storage\" has no chart; create cluster-addon/storage/Chart.yaml or remove the stage".to_owned(),
        format!("16: {path}zed[1].timeout: \"8d\" is longer than a stage may take, which is a week, 168h"),
        "20:51: waitForPreCondition of the stage \"storage\" of AfterControlPlaneInitialized: agent.status.numberRead: \
         there is no field numberRead: did you mean numberReady?"
            .to_owned(),
        format!("23: {path}zed[1].waitForPostCondition.objects[0]: the key name is missing"),
    ];
    let refusal = refusal(|stack| fs::write(stack.join("clusteraddon.yaml"), MISTAKES).unwrap());
    let told: Vec<_> = refusal.lines().collect();
    let expected = expected.map(|line| format!("clusteraddon.yaml:{line}"));
    assert_eq!(told[..9], expected);
    let conditions = [
        "24:45: waitForPostCondition of the stage \"storage\" of AfterControlPlaneInitialized: expected a value",
        "31:9: waitForPreCondition of the stage \"welcome\" of BeforeClusterDelete: 1: is ",
    ];
    for (told, expected) in told[9..].iter().zip(conditions) {
        assert!(told.starts_with(&format!("clusteraddon.yaml:{expected}")), "{told}");
    }
    assert_eq!(told.len(), 11, "{refusal}");
}

#[test]
fn descriptions_that_would_keep_the_parser_busy_are_refused_unparsed() {
    let brackets = format!("a:\n{}", "[".repeat(60_000));
    for file in [
        "csctl.yaml",
        "clusteraddon.yaml",
        "node-images.yaml",
        "cluster-class/Chart.yaml",
    ] {
        assert_eq!(
            refusal(|stack| fs::write(stack.join(file), &brackets).unwrap()),
            format!("{file}:2: opens one bracket more than the 1024 that this file may have")
        );
        assert_eq!(
            refusal(|stack| fs::write(stack.join(file), "[".repeat(3_000_000)).unwrap()),
            format!("{file}: is larger than 65536 bytes; leave out what is not needed")
        );
    }
}

#[test]
fn stages_that_nobody_would_read_are_refused() {
    assert_eq!(
        refusal_of("clusteraddon.yaml", "addonStages:", "addonStage:"),
        "clusteraddon.yaml:3: addonStage: there is no such key: did you mean addonStages?"
    );
    assert_eq!(
        refusal(|stack| fs::write(
            stack.join("clusteraddon.yaml"),
            "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\n"
        )
        .unwrap()),
        "clusteraddon.yaml: has no addonStages; list the charts of cluster-addon there"
    );
    for nothing in ["{}", "{AfterControlPlaneInitialized: []}"] {
        assert_eq!(
            refusal(|stack| fs::write(stack.join("clusteraddon.yaml"), format!("addonStages: {nothing}\n")).unwrap()),
            "clusteraddon.yaml: has no addonStages; list the charts of cluster-addon there"
        );
    }
    let unknown = refusal_of(
        "clusteraddon.yaml",
        "  AfterControlPlaneInitialized:",
        "  AfterControlPlaneInitialised:",
    );
    assert!(
        unknown.contains("there is no hook \"AfterControlPlaneInitialised\", so its stages would never be run; the hooks are BeforeClusterCreate, "),
        "{unknown}"
    );
}

#[test]
fn a_misspelt_key_in_a_stage_is_refused_with_its_line_its_path_and_the_one_that_is_meant() {
    let stage = "addonStages.AfterControlPlaneInitialized[1]";
    for (from, to, line, said) in [
        (
            "    waitForPreCondition:",
            "    timeOut: 5m\n    waitForPreCondition:",
            9,
            ".timeOut: there is no such key: did you mean timeout?",
        ),
        (
            "    waitForPreCondition:",
            "    waitForPrecondition:",
            9,
            ".waitForPrecondition: there is no such key: did you mean waitForPreCondition?",
        ),
        (
            "    waitForPreCondition:",
            "    retries: 3\n    waitForPreCondition:",
            9,
            ".retries: there is no such key; there are action, name, onFailure, timeout, waitForPostCondition, waitForPreCondition",
        ),
        (
            "      conditions: agent",
            "      timeout: 5m\n      conditions: agent",
            16,
            ".waitForPreCondition.timeout: there is no such key; there are conditions, objects",
        ),
        (
            "      conditions: agent",
            "      condition: agent",
            16,
            ".waitForPreCondition.condition: there is no such key: did you mean conditions?",
        ),
        (
            "        namespace: kube-system",
            "        nameSpace: kube-system",
            15,
            ".waitForPreCondition.objects[0].nameSpace: there is no such key: did you mean namespace?",
        ),
    ] {
        assert_eq!(
            refusal_of("clusteraddon.yaml", from, to),
            format!("clusteraddon.yaml:{line}: {stage}{said}")
        );
    }
}

#[test]
fn an_object_that_there_cannot_be_is_refused_with_what_is_meant() {
    let object = "addonStages.AfterControlPlaneInitialized[1].waitForPreCondition.objects[0]: ";
    for (from, to, line, said) in [
        (
            "kind: DaemonSet",
            "kind: Daemonset",
            13,
            "apps/v1 has no Daemonset: did you mean DaemonSet?",
        ),
        (
            "apiVersion: apps/v1\n",
            "apiVersion: apps/v1beta1\n",
            12,
            "apps/v1beta1 has no DaemonSet; Kubernetes has it in apps/v1",
        ),
        (
            "        namespace: kube-system\n",
            "",
            13,
            "a DaemonSet is always in a namespace, so \"cluster-addon-network\" would never be found: add `namespace:`",
        ),
    ] {
        let told = format!("clusteraddon.yaml:{line}: {object}{said}");
        assert_eq!(refusal_of("clusteraddon.yaml", from, to), told);
    }
}

/// A stack of which a stage waits for a ring, whose kind one of its charts defines with this scope; the ring has this beside its name.
fn waits_for_a_ring(stack: &Path, scope: &str, beside: &str) {
    let stages = fs::read_to_string(stack.join("clusteraddon.yaml")).unwrap();
    let (before, _) = stages.split_once("      objects:").unwrap();
    let ring = format!("{{key: ring, apiVersion: example.org/v1, kind: Ring, name: one{beside}}}");
    let waiting = format!("{before}      objects: [{ring}]\n      conditions: ring.spec.size > 1\n");
    fs::write(stack.join("clusteraddon.yaml"), waiting).unwrap();
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: rings.example.org}}\nspec:\n  group: example.org\n  \
         scope: {scope}\n  names: {{kind: Ring}}\n  versions:\n  - name: v1\n    schema: {{openAPIV3Schema: {{type: object, properties: \
         {{spec: {{type: object, properties: {{size: {{type: integer}}}}}}}}}}}}\n"
    );
    let folder = stack.join("cluster-addon/network/crds");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("rings.yaml"), definition).unwrap();
}

#[test]
fn the_scope_of_a_kind_that_a_chart_brings_along_counts_as_well() {
    let refused = |scope: &str, beside: &str| refusal(|stack| waits_for_a_ring(stack, scope, beside));
    assert!(refused("Namespaced", "").ends_with("add `namespace:`"));
    for (scope, beside) in [
        ("Namespaced", ", namespace: fleet"),
        ("Cluster", ""),
        ("Cluster", ", namespace: fleet"),
    ] {
        let notes = notes(|stack| waits_for_a_ring(stack, scope, beside));
        assert_eq!(notes, Vec::<String>::new(), "{scope}");
    }
}

#[test]
fn a_template_of_values_under_a_name_that_nobody_reads_is_refused() {
    let named = |name: &str| {
        refusal(|stack| {
            let folder = stack.join("cluster-addon/network");
            fs::rename(folder.join("overwrite.yaml"), folder.join(name)).unwrap();
        })
    };
    for (name, meant) in [
        ("overwrite.yml", "overwrite.yaml"),
        ("override.yaml", "overwrite.yaml"),
        ("cluster-addon-values.yaml", "overwrite.yaml"),
        ("overwrite.tera", "overwrite.yaml.tera"),
    ] {
        assert_eq!(
            named(name),
            format!(
                "cluster-addon/network/{name}: nobody reads this file, so the chart would get no values: did you mean {meant}?"
            )
        );
    }
    let both = refusal(|stack| {
        let folder = stack.join("cluster-addon/network");
        fs::copy(folder.join("overwrite.yaml"), folder.join("overwrite.yaml.tera")).unwrap();
    });
    assert_eq!(
        both,
        "cluster-addon/network/overwrite.yaml: is there beside overwrite.yaml.tera; take one of the two out"
    );
}

/// Operators do not look at it, either.
#[test]
fn what_is_wrong_with_a_chart_that_no_stage_names_stops_nothing() {
    let notes = notes(|stack| {
        let spare = stack.join("cluster-addon/spare");
        copy(&stack.join("cluster-addon/network"), &spare);
        let chart = fs::read_to_string(spare.join("Chart.yaml")).unwrap();
        fs::write(spare.join("Chart.yaml"), chart.replace("name: network", "name: spare")).unwrap();
        fs::rename(spare.join("overwrite.yaml"), spare.join("overwrite.yml")).unwrap();
    });
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(
        note.starts_with("cluster-addon/spare: no stage names this chart"),
        "{note}"
    );
}

#[test]
fn a_file_that_a_template_of_the_chart_reads_is_no_template_of_values() {
    let notes = notes(|stack| {
        let folder = stack.join("cluster-addon/network");
        fs::rename(folder.join("overwrite.yaml"), folder.join("override.yaml")).unwrap();
        fs::write(
            folder.join("templates/more.yaml"),
            "{{ .Files.Get \"override.yaml\" }}\n",
        )
        .unwrap();
    });
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn a_template_of_values_beside_stages_is_noted() {
    let notes = notes(|stack| fs::write(stack.join("cluster-addon-values.yaml"), "values: |\n").unwrap());
    assert_eq!(
        notes,
        [
            "cluster-addon-values.yaml: nobody reads it beside clusteraddon.yaml; write the values of a chart into overwrite.yaml in its folder"
        ]
    );
}

#[test]
fn a_template_of_values_of_a_stage_is_noted_where_there_are_no_stages() {
    let notes = notes(|stack| {
        fs::remove_file(stack.join("clusteraddon.yaml")).unwrap();
        fs::write(stack.join("cluster-addon-values.yaml"), "values: |\n").unwrap();
        let folder = stack.join("cluster-addon");
        let chart = "name: docker-harbor-1-34-cluster-addon\nversion: v0\n";
        fs::write(folder.join("Chart.yaml"), chart).unwrap();
        fs::write(folder.join("overwrite.yaml"), "values: |\n").unwrap();
    });
    assert_eq!(
        notes,
        [
            "cluster-addon/overwrite.yaml: nobody reads it without clusteraddon.yaml; write the values of the chart into cluster-addon-values.yaml"
        ]
    );
}

#[test]
fn a_chart_that_an_upgrade_leaves_as_it_is_is_noted() {
    let notes = notes(|stack| {
        let file = stack.join("clusteraddon.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let hook = "  BeforeClusterUpgrade:\n";
        let without = text.replace(&format!("{hook}  - name: network\n    action: apply\n"), hook);
        assert_ne!(without, text);
        fs::write(file, without).unwrap();
    });
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(
        note.starts_with("clusteraddon.yaml: an upgrade leaves what clusters have of network as it is"),
        "{note}"
    );
}

#[test]
fn a_chart_that_no_stage_names_is_noted() {
    let notes = notes(|stack| {
        let folder = stack.join("cluster-addon");
        copy(&folder.join("network"), &folder.join("spare"));
    });
    assert_eq!(
        notes,
        [
            "cluster-addon/spare: no stage names this chart, so it is packed and never used; list it in clusteraddon.yaml or take it out"
        ]
    );
}

#[test]
fn a_condition_with_a_misspelt_field_is_refused_with_its_place_in_the_file_of_the_stack() {
    assert_eq!(
        refusal_of(
            "clusteraddon.yaml",
            "== agent.status.desiredNumberScheduled",
            "== agent.status.desiredNumberSchedule",
        ),
        "clusteraddon.yaml:16:47: waitForPreCondition of the stage \"welcome\" of AfterControlPlaneInitialized: \
         agent.status.desiredNumberSchedule: there is no field desiredNumberSchedule: did you mean desiredNumberScheduled?"
    );
}

#[test]
fn a_condition_about_a_kind_of_a_chart_is_checked_with_what_the_chart_defines() {
    let refusal = refusal(|stack| {
        let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: example.org\n  \
                          names: {kind: Ring}\n  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
                          properties:\n          spec: {type: object, properties: {size: {type: integer}}}\n";
        fs::create_dir(stack.join("cluster-addon/network/crds")).unwrap();
        fs::write(stack.join("cluster-addon/network/crds/ring.yaml"), definition).unwrap();
        let stages = "addonStages:\n  AfterClusterUpgrade:\n  - name: network\n    action: apply\n    waitForPostCondition:\n      \
                      objects: [{key: ring, apiVersion: example.org/v1, kind: Ring, name: one}]\n      conditions: ring.spec.siez == 1\n";
        fs::write(stack.join("clusteraddon.yaml"), stages).unwrap();
    });
    assert_eq!(
        refusal,
        "clusteraddon.yaml:7:19: waitForPostCondition of the stage \"network\" of AfterClusterUpgrade: ring.spec.siez: there is no field siez: \
         did you mean size?"
    );
}

#[test]
fn a_key_that_cannot_be_a_variable_is_refused_once_and_where_it_stands() {
    let objects = "addonStages.AfterControlPlaneInitialized[1].waitForPreCondition.objects";
    let advice = "take letters, digits and _, no digit first, and no word that the language reserves";
    for key in ["my-agent", "in", "true", "namespace", "1st"] {
        let refusal = refusal(|stack| {
            let file = stack.join("clusteraddon.yaml");
            let text = fs::read_to_string(&file).unwrap();
            let named = text.replace("key: agent", &format!("key: {key}"));
            fs::write(&file, named.replace("agent.status", &format!("{key}.status"))).unwrap();
        });
        assert_eq!(
            refusal,
            format!("clusteraddon.yaml:11: {objects}[0].key: {key:?} cannot be a variable of the expression: {advice}")
        );
    }
    assert_eq!(
        refusal_of(
            "clusteraddon.yaml",
            "      conditions: agent",
            "      - {kind: Node, apiVersion: v1, name: one, key: agent}\n      conditions: agent",
        ),
        format!(
            "clusteraddon.yaml:16: {objects}[1].key: \"agent\" is the key of an object before, too: give each its own"
        )
    );
}

/// Puts a byte order mark before a file.
fn mark(stack: &Path, file: &str) {
    let text = fs::read_to_string(stack.join(file)).unwrap();
    fs::write(stack.join(file), format!("\u{feff}{text}")).unwrap();
}

#[test]
fn a_byte_order_mark_before_a_description_counts_for_nothing() {
    let files = [
        "csctl.yaml",
        "clusteraddon.yaml",
        "cluster-class/Chart.yaml",
        "cluster-addon/network/Chart.yaml",
    ];
    let notes = notes(|stack| files.iter().for_each(|file| mark(stack, file)));
    assert_eq!(notes, Vec::<String>::new());
    let refusal = refusal(|stack| {
        let file = stack.join("clusteraddon.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            text.replace("agent.status.numberReady ==", "agent.status.numberRead =="),
        )
        .unwrap();
        mark(stack, "clusteraddon.yaml");
    });
    assert!(refusal.starts_with("clusteraddon.yaml:16:19: "), "{refusal}");
}

#[test]
fn stack_that_is_not_there_is_told_as_such() {
    let place = TempDir::new().unwrap();
    let versioning = Versioning::Given("v1".parse().unwrap());
    fs::write(place.path().join("csctl.yaml"), "").unwrap();
    for name in ["nowhere", "csctl.yaml"] {
        let stack = place.path().join(name);
        let error = pack::create(&stack, &place.path().join("output"), &versioning).unwrap_err();
        assert_eq!(
            chain(&error),
            format!(
                "{}: there is no such directory; give the directory of the stack, the one with csctl.yaml",
                stack.display()
            )
        );
    }
}

#[test]
fn releases_do_not_go_into_the_next_release() {
    let place = TempDir::new().unwrap();
    let stack = place.path().join("stack");
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1"),
        &stack,
    );
    let versioning = Versioning::Given("v1".parse().unwrap());
    for inside in [
        "cluster-class",
        "cluster-addon/network/releases",
        "cluster-addon/../cluster-class/a/b",
    ] {
        let error = pack::create(&stack, &stack.join(inside), &versioning).unwrap_err();
        assert!(
            chain(&error).ends_with("which goes into the release; choose a directory for releases outside of it"),
            "{error}"
        );
    }
    assert!(!stack.join("cluster-addon/network/releases").exists());
    // What no release is made from may hold releases.
    pack::create(&stack, &stack.join("releases"), &versioning).unwrap();
}

#[test]
fn image_that_is_yet_to_be_built_is_refused() {
    let refusal = refusal_of(
        "node-images.yaml",
        "url: docker.io/kindest/node:v1.34.0",
        "imageDir: ubuntu",
    );
    assert_eq!(
        refusal,
        "node-images.yaml:4: the image has an imageDir but no url; build and upload it first, then write its url"
    );
}

#[test]
fn directory_of_node_images_needs_their_list() {
    let refusal = refusal(|stack| {
        fs::create_dir(stack.join("node-images")).unwrap();
        fs::rename(stack.join("node-images.yaml"), stack.join("node-images/images.yaml")).unwrap();
    });
    assert!(refusal.starts_with("node-images/config.yaml: missing; "), "{refusal}");
}

#[test]
fn links_and_large_files_are_refused() {
    let link = refusal(|stack| symlink("/etc/passwd", stack.join("cluster-class/files")).unwrap());
    assert_eq!(
        link,
        "cluster-class/files: is a symbolic link; put a regular file there"
    );
    let large = refusal(|stack| {
        fs::File::create(stack.join("cluster-addon/network/disk"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
    });
    assert_eq!(
        large,
        "cluster-addon/network/disk: is larger than 5242880 bytes; leave out what is not needed"
    );
}
