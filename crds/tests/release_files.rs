//! The files of a release: what is read, and in which words a bad one is refused.

use std::{env, error::Error, fs, io::Write, path::PathBuf, time::Duration};

use crds::{
    cluster_addon::StageAction,
    names::ReleaseTag,
    release_files::{
        CLUSTER_ADDON_CONFIG, ClusterAddonConfig, ClusterApiVersion, HASHES, Hashes, MAX_STAGES, METADATA, Metadata,
        NODE_IMAGES, NodeImages, OnFailure, ReleaseFileError, parse_timeout,
    },
};

const GOOD: &str = "\
apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1
versions:
  clusterStack: v0-sha.hipstsw
  kubernetes: v1.27.7
  components:
    clusterAddon: v2
    nodeImage: v01
";

#[test]
fn metadata_tells_the_versions() {
    let metadata = Metadata::parse(GOOD.as_bytes()).expect("good metadata");
    assert_eq!(metadata.cluster_stack.to_string(), "v0-sha.hipstsw");
    assert_eq!(metadata.kubernetes, "v1.27.7");
    assert_eq!(metadata.kubernetes_minor().expect("a minor").to_string(), "1.27");
    assert_eq!(metadata.cluster_addon.to_string(), "v2");
    assert_eq!(
        metadata.node_image.as_ref().map(ToString::to_string).as_deref(),
        Some("v1")
    );
    assert_eq!(
        Metadata::parse(metadata.to_yaml().as_bytes()).expect("its own text"),
        metadata
    );
}

#[test]
fn node_image_version_is_optional() {
    let metadata = Metadata::parse(GOOD.replace("    nodeImage: v01\n", "").as_bytes()).expect("good metadata");
    assert_eq!(metadata.node_image, None);
    assert_eq!(
        Metadata::parse(metadata.to_yaml().as_bytes()).expect("its own text"),
        metadata
    );
}

#[test]
fn bad_metadata_is_refused_in_the_words_of_the_contract() {
    for (from, to, words) in [
        ("  clusterStack: v0-sha.hipstsw\n", "", "clusterstack version empty"),
        ("v0-sha.hipstsw", "\"\"", "clusterstack version empty"),
        ("  kubernetes: v1.27.7\n", "", "kubernetes version empty"),
        ("    clusterAddon: v2\n", "", "cluster addon version empty"),
        ("versions:", "other:", "clusterstack version empty"),
        (
            "v0-sha.hipstsw",
            "v0-sha-hipstsw",
            "unable to use versions.clusterStack of metadata.yaml: invalid version string v0-sha-hipstsw",
        ),
        (
            "v1.27.7",
            "latest",
            "unable to use versions.kubernetes of metadata.yaml: invalid kubernetes version \"latest\"",
        ),
        (
            "v2",
            "2",
            "unable to use versions.components.clusterAddon of metadata.yaml: invalid version string 2",
        ),
        (
            "v01",
            "one",
            "unable to use versions.components.nodeImage of metadata.yaml: invalid version string one",
        ),
    ] {
        let error = Metadata::parse(GOOD.replace(from, to).as_bytes()).expect_err(words);
        let mut message = error.to_string();
        if let Some(source) = error.source() {
            message = format!("{message}: {source}");
        }
        assert!(message.starts_with(words), "{message}");
    }
    assert_eq!(
        Metadata::parse(b"").expect_err("an empty file").to_string(),
        "clusterstack version empty"
    );
    for no_yaml in [&b"\xff\xfe"[..], b"versions: ["] {
        let error = Metadata::parse(no_yaml).expect_err("no YAML");
        assert!(matches!(error, ReleaseFileError::ReadYaml(_)), "{error}");
        assert!(
            !error.to_string().contains("metadata.yaml"),
            "whoever tells names the file: {error}"
        );
    }
}

#[test]
fn nested_aliases_do_not_grow_without_bound() {
    use std::fmt::Write as _;
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let previous = level - 1;
        let items = vec![format!("*a{previous}"); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{items}]").expect("a string takes everything");
    }
    assert!(NodeImages::parse(bomb.as_bytes()).is_err());
}

#[test]
fn a_long_name_that_is_named_again_and_again_is_refused() {
    let stages = |name: usize, times: usize| {
        let object = format!(
            "&o {{key: a, apiVersion: v1, kind: ConfigMap, name: {}}}",
            "n".repeat(name)
        );
        let objects = format!("[{object}{}]", ", *o".repeat(times));
        let condition = format!("waitForPreCondition: {{objects: {objects}, conditions: 'true'}}");
        format!("addonStages: {{BeforeClusterUpgrade: [{{name: cni, action: apply, {condition}}}]}}")
    };
    let config = ClusterAddonConfig::parse(stages(20, 100).as_bytes()).expect("what somebody may write");
    let stage = &config.addon_stages["BeforeClusterUpgrade"][0];
    let objects = stage.wait_for_pre_condition.as_ref().map(|wait| wait.objects.len());
    assert_eq!(objects, Some(101));
    for bomb in [stages(40_000, 1_000), stages(20, 20_000)] {
        let error = ClusterAddonConfig::parse(bomb.as_bytes()).expect_err("a bomb");
        assert!(matches!(error, ReleaseFileError::TooManyAliases), "{error}");
    }
    // The stars of an expression name nothing.
    let product = stages(40_000, 0).replace("'true'", &format!("'1{} > 0'", " * 1".repeat(1_000)));
    ClusterAddonConfig::parse(product.as_bytes()).expect("a long condition");
}

#[test]
fn stages_are_read_in_order_and_unknown_actions_are_refused() {
    let text = "\
addonStages:
  AfterControlPlaneInitialized:
    - {name: cni, action: apply}
    - name: metrics-server
      action: delete
      waitForPostCondition:
        objects: [{key: web, apiVersion: apps/v1, kind: Deployment, name: web, namespace: kube-system}]
        conditions: web.spec.replicas == 1
";
    let config = ClusterAddonConfig::parse(text.as_bytes()).expect("a good config");
    let stages = &config.addon_stages["AfterControlPlaneInitialized"];
    assert_eq!(
        stages.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>(),
        ["cni", "metrics-server"]
    );
    assert_eq!(stages[1].action, StageAction::Delete);
    let wait = stages[1].wait_for_post_condition.as_ref().expect("a condition");
    assert_eq!(
        (wait.objects[0].key.as_str(), wait.conditions.as_str()),
        ("web", "web.spec.replicas == 1")
    );
    let error =
        ClusterAddonConfig::parse(text.replace("action: apply", "action: Aply").as_bytes()).expect_err("a typo");
    assert!(error.to_string().contains("Aply"), "{error}");
}

#[test]
fn a_byte_order_mark_before_the_stages_counts_for_nothing() {
    let text = "clusterApiVersion: v1beta2\naddonStages:\n  AfterClusterUpgrade:\n  - {name: cni, action: apply}\n";
    let parse = |text: &str| ClusterAddonConfig::parse(text.as_bytes()).expect("a good config");
    assert_eq!(parse(&format!("\u{feff}{text}")), parse(text));
}

#[test]
fn a_release_has_as_many_stages_as_a_status_can_tell_of_and_no_more() {
    let parsed = |most: usize| {
        let stages = |number: usize| vec!["{name: cni, action: apply}"; number].join(", ");
        let text = format!(
            "addonStages: {{BeforeClusterUpgrade: [{}], BeforeClusterDelete: [{}]}}",
            stages(most - 1),
            stages(1)
        );
        ClusterAddonConfig::parse(text.as_bytes())
    };
    parsed(MAX_STAGES).expect("as many as are allowed");
    let error = parsed(MAX_STAGES + 1).expect_err("one too many");
    assert_eq!(
        error.to_string(),
        "addonStages has 101 stages together, 100 are allowed: put their charts together"
    );
}

#[test]
fn a_stage_says_how_long_it_may_take_and_what_happens_then() {
    let config = |stage: &str| {
        let text = format!("addonStages: {{BeforeClusterUpgrade: [{{name: cni, action: apply{stage}}}]}}");
        ClusterAddonConfig::parse(text.as_bytes())
    };
    let stage = |text: &str| config(text).expect("a good config").addon_stages["BeforeClusterUpgrade"][0].clone();
    assert_eq!((stage("").timeout, stage("").on_failure), (None, None));
    let limited = stage(", timeout: 1h30m, onFailure: continue");
    assert_eq!(limited.timeout, Some(Duration::from_mins(90)));
    assert_eq!(limited.on_failure, Some(OnFailure::Continue));
    for timeout in ["90m", "1h 30m", "1.5h", "90 minutes", "01:30:00", "PT1H30M"] {
        assert_eq!(parse_timeout(timeout), Ok(Duration::from_mins(90)), "{timeout}");
    }
    for timeout in ["0s", "-5m", "30", "soon", "169h", "9999999999h"] {
        config(&format!(", timeout: \"{timeout}\"")).expect_err(timeout);
    }
    config(", onFailure: retry").expect_err("nobody can say what that would be");
}

#[test]
fn a_timeout_that_cannot_be_used_is_refused_with_its_own_reason_at_its_own_line() {
    for (timeout, words) in [
        (
            "169h",
            "\"169h\" is longer than a stage may take, which is a week, 168h",
        ),
        ("8d", "\"8d\" is longer than a stage may take, which is a week, 168h"),
        (
            "1w",
            "\"1w\": there is no unit w: a length of time is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h",
        ),
        (
            "2d",
            "\"2d\": there is no unit d: a length of time is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h",
        ),
        (
            "soon",
            "\"soon\" is no length of time, which is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h",
        ),
        (
            "30",
            "\"30\" is no length of time, which is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h",
        ),
    ] {
        assert_eq!(parse_timeout(timeout).expect_err(timeout).to_string(), words);
        let text = format!(
            "addonStages:\n  BeforeClusterUpgrade:\n  - name: cni\n    action: apply\n    timeout: {timeout}\n    onFailure: stop\n"
        );
        let error = ClusterAddonConfig::parse(text.as_bytes()).expect_err(timeout);
        assert_eq!(
            error.to_string(),
            format!("addonStages.BeforeClusterUpgrade[0].timeout: {words} at line 5 column 14")
        );
    }
    let long = parse_timeout(&"1".repeat(1 << 10)).expect_err("a number").to_string();
    assert!(long.len() < 300, "{long}");
}

#[test]
fn values_get_the_cluster_in_the_version_that_the_release_names_and_else_in_that_of_the_go_operator() {
    let version = |text: &str| ClusterAddonConfig::parse(text.as_bytes()).map(|config| config.cluster_api_version);
    assert_eq!(
        version("addonStages: {}").expect("a good config"),
        ClusterApiVersion::V1Beta1
    );
    assert_eq!(
        version("clusterApiVersion: v1beta2").expect("a good config"),
        ClusterApiVersion::V1Beta2
    );
    version("clusterApiVersion: v1").expect_err("no such version");
}

#[test]
fn hashes_survive_their_own_text() {
    let hashes = Hashes {
        cluster_stack: "abc".to_owned(),
        cluster_addon_dir: "def".to_owned(),
        ..Hashes::default()
    };
    let text = hashes.to_json();
    assert_eq!(
        text,
        "{\n  \"clusterStack\": \"abc\",\n  \"clusterAddonDir\": \"def\",\n  \"clusterAddonValues\": \"\"\n}\n"
    );
    assert_eq!(Hashes::parse(text.as_bytes()).expect("its own text"), hashes);
    let marked = format!("\u{feff}{text}");
    assert_eq!(Hashes::parse(marked.as_bytes()).expect("with a mark"), hashes);
    assert!(Hashes::parse(b"clusterStack: abc").is_err());
}

#[test]
fn node_images_keep_what_they_do_not_know() {
    let text = "\
apiVersion: openstack.infrastructure.clusterstack.x-k8s.io/v1alpha1
openStackNodeImages:
  - url: https://images.example.com/ubuntu.qcow2
    createOpts: {name: ubuntu, disk_format: qcow2}
    imageDir: ubuntu
";
    let images = NodeImages::parse(text.as_bytes()).expect("good images");
    assert_eq!(images.0.keys().collect::<Vec<_>>(), ["openStackNodeImages"]);
    let image = &images.0["openStackNodeImages"][0];
    assert_eq!(image.url.as_deref(), Some("https://images.example.com/ubuntu.qcow2"));
    assert_eq!(image.create_opts["name"], "ubuntu");
    assert_eq!(image.other["imageDir"], "ubuntu");
    assert!(NodeImages::parse(b"openStackNodeImages: [1]").is_err());
}

#[test]
fn real_releases_are_read() {
    let Some(corpus) = env::var_os("STACKWRIGHT_CORPUS").map(PathBuf::from) else {
        // Not by a macro: the harness keeps what those write to itself when a test passes.
        let said = "REDUCED: STACKWRIGHT_CORPUS is not set, so no real release is read\n";
        std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
        return;
    };
    let mut count = 0;
    for entry in fs::read_dir(corpus.join("releases")).expect("the corpus has releases") {
        let directory = entry.expect("the corpus can be read").path();
        let tag: ReleaseTag = directory
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name")
            .parse()
            .expect("a tag");
        let metadata = Metadata::parse(&fs::read(directory.join(METADATA)).expect("metadata")).expect("good metadata");
        assert_eq!(&metadata.cluster_stack, tag.version());
        assert_eq!(metadata.kubernetes_minor().expect("a minor"), tag.kubernetes_minor());
        if let Ok(bytes) = fs::read(directory.join(CLUSTER_ADDON_CONFIG)) {
            ClusterAddonConfig::parse(&bytes).expect("a good config");
        }
        if let Ok(bytes) = fs::read(directory.join(NODE_IMAGES)) {
            assert!(!NodeImages::parse(&bytes).expect("good images").0.is_empty());
        }
        if let Ok(bytes) = fs::read(directory.join(HASHES)) {
            assert_ne!(Hashes::parse(&bytes).expect("good hashes"), Hashes::default());
        }
        count += 1;
    }
    assert!(count >= 11, "only {count} releases");
}
