//! Charts that the chart of an add-on needs: those in it, right or wrong, and those in a directory of charts.

use std::{fs, process::Command};

use tempfile::TempDir;

use crate::fixture::{create, path, stack_with, text};

/// Our own stack with a chart that its network has in it, which is wrong.
fn stack_with_a_wrong_chart_in_it(declared: &str) -> TempDir {
    let stack = stack_with("");
    let network = stack.path().join("cluster-addon/network");
    let chart = format!("apiVersion: v2\nname: network\nversion: 0.1.0\n{declared}");
    fs::write(network.join("Chart.yaml"), chart).unwrap();
    fs::create_dir_all(network.join("charts/quay/templates")).unwrap();
    for (file, content) in [
        ("Chart.yaml", "apiVersion: v2\nname: quay\nversion: 1.2.3\n"),
        ("templates/a.yaml", "{{ nosuch }}\n"),
        ("templates/b.yaml", "{{ mustToYaml .Values }}\n"),
    ] {
        fs::write(network.join("charts/quay").join(file), content).unwrap();
    }
    stack
}

#[test]
fn fault_in_a_chart_that_values_may_switch_off_is_noted() {
    let stack = stack_with_a_wrong_chart_in_it("dependencies: [{name: quay, version: 1.x, condition: quay.enabled}]\n");
    let output = TempDir::new().unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let templates = stack.path().join("cluster-addon/network/charts/quay/templates");
    let start = format!("note: {}", templates.display());
    let mut told: Vec<_> = text(&made.stderr).lines().collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            format!(
                "{start}/a.yaml:1: the add-on works only where values switch this chart off: function \"nosuch\" not defined"
            ),
            format!(
                "{start}/b.yaml:1: with spec.policy.helmProfile v4.3 alone, not with v3.19, unless values switch this chart off: function \
                 \"mustToYaml\" not defined"
            ),
        ]
    );

    let stack = stack_with_a_wrong_chart_in_it("dependencies: [{name: quay, version: 1.x}]\n");
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v2"]);
    assert_eq!(made.status.code(), Some(1), "{}", text(&made.stderr));
}

#[test]
fn fault_in_a_chart_that_an_addon_has_in_it_is_told_with_its_place() {
    let (stack, output) = (stack_with(""), TempDir::new().unwrap());
    let folder = stack.path().join("cluster-addon/network/charts");
    for (file, content) in [
        ("quay/Chart.yaml", "apiVersion: v2\nname: quay\nversion: 1.2.3\n"),
        ("quay/templates/a.yaml", "{{ nosuch }}\n"),
    ] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let refusal = || {
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(1), "{}", text(&made.stderr));
        text(&made.stderr).to_owned()
    };
    let start = |file: &str| format!("error: {}/{file}:1: ", folder.display());
    let message = refusal();
    assert!(message.starts_with(&start("quay/templates/a.yaml")), "{message}");
    let packed = Command::new("tar")
        .args([
            "-czf",
            path(&folder.join("quay-1.2.3.tgz")),
            "-C",
            path(&folder),
            "quay",
        ])
        .status()
        .unwrap();
    assert!(packed.success());
    fs::remove_dir_all(folder.join("quay")).unwrap();
    let message = refusal();
    assert!(
        message.starts_with(&start("quay-1.2.3.tgz/templates/a.yaml")),
        "{message}"
    );
}

#[test]
fn chart_that_an_addon_needs_comes_from_the_directory_of_charts_and_is_told() {
    let (stack, output, charts) = (stack_with(""), TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = stack.path().join("cluster-addon/network/Chart.yaml");
    let chart = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        format!("{chart}\ndependencies:\n- {{name: quay, version: ~1.2.0}}\n"),
    )
    .unwrap();
    let arguments = [path(stack.path()), "--output", path(output.path()), "--version", "v1"];
    let refused = create(&arguments);
    assert_eq!(refused.status.code(), Some(1));
    let message = text(&refused.stderr);
    assert!(
        message.contains("the dependency \"quay\" is not in charts/") && message.contains("--charts"),
        "{message}"
    );
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0);

    for version in ["1.2.3", "1.2.10", "1.3.0"] {
        let quay = charts.path().join(version);
        fs::create_dir(&quay).unwrap();
        fs::write(quay.join("Chart.yaml"), format!("name: quay\nversion: {version}\n")).unwrap();
    }
    let made = create(&[&arguments[..], &["--charts", path(charts.path())]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let from = charts.path().join("1.2.10");
    let into = stack.path().join("cluster-addon/network");
    assert_eq!(
        text(&made.stderr),
        format!("note: {}: takes quay 1.2.10 from {}\n", into.display(), from.display())
    );
    assert!(output.path().join("docker-harbor-1-34-v1").is_dir());
}
