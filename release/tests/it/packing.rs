//! Releases made from stacks: the same bytes every time, readable by who reads releases, and the right versions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Permissions},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use flate2::read::GzDecoder;
use proptest::prelude::*;
use release::{
    AddonConfiguration, Release,
    pack::{self, Creation, Packed, Packing, Versioning},
    source::{DirectorySource, ReleaseSource},
};
use tempfile::TempDir;

use crate::{
    fixture::{admitted, tag},
    lab,
};

/// The source of one version of our own stack.
fn harbor(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../e2e/stacks/docker-harbor")
        .join(version)
}

/// Every file below a directory, sorted.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let below = path.file_name().unwrap().to_owned();
            files.extend(
                self::files(&path)
                    .into_iter()
                    .map(|(path, content)| (Path::new(&below).join(path), content)),
            );
        } else {
            files.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    files
}

fn write(directory: &Path, files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) {
    for (path, content) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A copy of a stack that a test can change.
fn copy_of(stack: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    write(copy.path(), files(stack));
    copy
}

/// A copy of our own stack with one chart of add-ons, which has these values.
fn with_one_chart(values: &str) -> TempDir {
    let stack = copy_of(&harbor("v1"));
    fs::remove_dir_all(stack.path().join("cluster-addon")).unwrap();
    fs::remove_file(stack.path().join("clusteraddon.yaml")).unwrap();
    let chart = "name: docker-harbor-1-34-cluster-addon\nversion: v0\n";
    write(
        stack.path(),
        [
            ("cluster-addon/Chart.yaml".into(), chart.into()),
            ("cluster-addon/templates/note.yaml".into(), b"a: b\n".to_vec()),
            ("cluster-addon-values.yaml".into(), values.into()),
        ],
    );
    stack
}

/// Adds a line to a file of a stack.
fn append(stack: &Path, file: &str, line: &str) {
    let path = stack.join(file);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{text}{line}\n")).unwrap();
}

fn created(stack: &Path, output: &Path, versioning: &Versioning) -> Packed {
    match pack::create(stack, output, versioning).expect("the stack is good") {
        Creation::Packed(packed) => packed,
        Creation::Unchanged { since } => panic!("unchanged since {since}"),
    }
}

fn given(version: &str) -> Versioning {
    Versioning::Given(version.parse().expect("the test gives a valid version"))
}

/// The versions of the stack, of its add-ons and of its node images.
fn versions(packed: &Packed) -> [String; 3] {
    let metadata = Release::open(&packed.directory, &packed.tag).unwrap().metadata;
    [
        metadata.cluster_stack,
        metadata.cluster_addon,
        metadata.node_image.unwrap(),
    ]
    .map(|version| version.to_string())
}

/// Names and contents inside an archive.
fn unpacked(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let entries = archive
        .entries()
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.header().entry_type().is_file());
    entries
        .map(|mut entry| {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_owned(), content)
        })
        .collect()
}

#[tokio::test]
async fn packed_stack_is_what_the_directory_source_opens() {
    let root = TempDir::new().unwrap();
    let packed = created(&harbor("v1"), &root.path().join("cluster-stacks"), &given("v1"));
    let source = DirectorySource::new(root.path());
    let listing = source.list().await.unwrap();
    assert_eq!(
        listing.releases.iter().map(|release| &release.tag).collect::<Vec<_>>(),
        [&packed.tag]
    );
    assert_eq!(listing.foreign, Vec::<String>::new());

    let release = source.open(&packed.tag).await.unwrap();
    assert_eq!((release.digest, &release.files), (packed.digest, &packed.files));
    assert_eq!(release.metadata.kubernetes, "v1.34.0");
    assert!(matches!(
        release.charts.as_ref().unwrap().addons,
        AddonConfiguration::Stages(_)
    ));
    let chart = unpacked(&admitted(&release).read_class_chart().unwrap());
    let text = std::str::from_utf8(&chart["docker-harbor-1-34-cluster-class/Chart.yaml"]).unwrap();
    assert!(text.contains("\nversion: v1\n"), "{text}");
}

#[test]
fn permissions_times_and_order_of_files_do_not_show() {
    let (one, other) = (copy_of(&harbor("v1")), TempDir::new().unwrap());
    // The directory lists files in another order when they are created in another order.
    write(other.path(), files(&harbor("v1")).into_iter().rev());
    for (age, path) in files(other.path()).keys().enumerate() {
        let path = other.path().join(path);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64))
            .unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let output = TempDir::new().unwrap();
    let one = created(one.path(), &output.path().join("one"), &given("v1"));
    let other = created(other.path(), &output.path().join("other"), &given("v1"));
    assert_eq!(one.digest, other.digest);
    assert_eq!(files(&one.directory), files(&other.directory));
}

#[test]
fn everybody_may_read_a_release() {
    let output = TempDir::new().unwrap();
    let packed = created(&harbor("v1"), output.path(), &given("v1"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&packed.directory), 0o755);
    for file in &packed.files {
        assert_eq!(mode(&packed.directory.join(&file.name)), 0o644, "{}", file.name);
    }
    // Nothing temporary stays.
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 1);
}

#[test]
fn release_that_is_there_is_left_alone() {
    let output = TempDir::new().unwrap();
    let first = created(&harbor("v1"), output.path(), &given("v1"));
    let again = created(&harbor("v1"), output.path(), &given("v1"));
    assert_eq!(
        (first.packing, again.packing),
        (Packing::Created, Packing::AlreadyThere)
    );
    assert_eq!(first.digest, again.digest);

    let refused = pack::create(&harbor("v2"), output.path(), &given("v1")).expect_err("v1 has another content");
    assert!(refused.to_string().contains("a release never changes"), "{refused}");
    assert_eq!(
        Release::open(&first.directory, &first.tag).unwrap().digest,
        first.digest
    );
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 1);
}

#[test]
fn next_release_has_new_versions_only_for_what_changed() {
    let output = TempDir::new().unwrap();
    for name in [
        "docker-harbor-v7",
        "docker-harbor-1-34-v9-test",
        "docker-harbor-1-33-v5",
        "docker-harbor-1-34-v6-sha-abc",
        "docker-harbor-1-34-v07",
        "README",
    ] {
        fs::create_dir(output.path().join(name)).unwrap();
    }
    let next = Versioning::NextAfter(output.path().to_owned());
    assert_eq!(
        versions(&created(&harbor("v1"), output.path(), &next)),
        ["v1", "v1", "v1"]
    );
    // Only the class changes.
    assert_eq!(
        versions(&created(&harbor("v2"), output.path(), &next)),
        ["v2", "v1", "v1"]
    );
    assert_eq!(
        versions(&created(&harbor("v3"), output.path(), &next)),
        ["v3", "v2", "v1"]
    );
    let unchanged = pack::create(&harbor("v3"), output.path(), &next).unwrap();
    assert_eq!(
        unchanged,
        Creation::Unchanged {
            since: tag("docker-harbor-1-34-v3")
        }
    );

    let stack = copy_of(&harbor("v3"));
    append(stack.path(), "node-images.yaml", "# changed");
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v4", "v2", "v2"]
    );
    append(stack.path(), "clusteraddon.yaml", "# changed");
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v5", "v3", "v2"]
    );
}

#[test]
fn add_ons_have_another_version_when_they_quote_one_that_is_another() {
    let (stack, output) = (copy_of(&harbor("v1")), TempDir::new().unwrap());
    append(
        stack.path(),
        "cluster-addon/welcome/templates/note.yaml",
        "# << .ClusterClassVersion >>",
    );
    let next = Versioning::NextAfter(output.path().to_owned());
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v1", "v1", "v1"]
    );
    append(stack.path(), "cluster-class/values.yaml", "# changed");
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v2", "v2", "v1"]
    );
}

#[test]
fn one_chart_of_add_ons_has_another_version_when_only_its_values_changed() {
    let (stack, output) = (with_one_chart("values: |\n"), TempDir::new().unwrap());
    let next = Versioning::NextAfter(output.path().to_owned());
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v1", "v1", "v1"]
    );
    append(stack.path(), "cluster-class/values.yaml", "# changed");
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v2", "v1", "v1"]
    );
    append(stack.path(), "cluster-addon-values.yaml", "  a: b");
    assert_eq!(
        versions(&created(stack.path(), output.path(), &next)),
        ["v3", "v2", "v1"]
    );
}

#[test]
fn everything_is_new_after_a_release_that_does_not_say_what_it_was_made_from() {
    let output = TempDir::new().unwrap();
    let next = Versioning::NextAfter(output.path().to_owned());
    let first = created(&harbor("v1"), output.path(), &next);
    fs::remove_file(first.directory.join("hashes.json")).unwrap();
    assert_eq!(
        versions(&created(&harbor("v1"), output.path(), &next)),
        ["v2", "v2", "v2"]
    );
}

#[test]
fn a_stack_of_which_a_file_has_another_name_is_another_one() {
    let (stack, output) = (copy_of(&harbor("v1")), TempDir::new().unwrap());
    let next = Versioning::NextAfter(output.path().to_owned());
    created(stack.path(), output.path(), &next);
    let templates = stack.path().join("cluster-class/templates");
    fs::rename(templates.join("_names.tpl"), templates.join("_words.tpl")).unwrap();
    let renamed = created(stack.path(), output.path(), &next);
    assert_eq!(versions(&renamed), ["v2", "v1", "v1"]);
}

#[test]
fn list_of_node_images_has_their_version() {
    let (stack, output) = (copy_of(&harbor("v1")), TempDir::new().unwrap());
    let images = "dockerImages:\n- url: docker.io/kindest/node:<< .NodeImageVersion >>\n";
    fs::write(stack.path().join("node-images.yaml"), images).unwrap();
    let packed = created(stack.path(), output.path(), &given("v7"));
    assert_eq!(
        fs::read_to_string(packed.directory.join("node-images.yaml")).unwrap(),
        "dockerImages:\n- url: docker.io/kindest/node:v7\n"
    );
}

/// The Go operator makes no folder that is not an entry.
#[test]
fn every_folder_of_an_archive_is_an_entry_before_what_is_in_it() {
    let output = TempDir::new().unwrap();
    let packed = created(&harbor("v1"), output.path(), &given("v1"));
    for part in ["class", "addon"] {
        let name = format!("docker-harbor-1-34-cluster-{part}-v1.tgz");
        let bytes = fs::read(packed.directory.join(name)).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        let mut folders = BTreeSet::from([PathBuf::new()]);
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let path = entry.path().unwrap().into_owned();
            assert!(folders.contains(path.parent().unwrap()), "{}", path.display());
            if entry.header().entry_type().is_dir() {
                folders.insert(path);
            }
        }
        assert!(folders.len() > 2, "{folders:?}");
    }
}

#[test]
fn single_chart_of_add_ons_gets_name_version_and_values() {
    let stack = copy_of(&harbor("v1"));
    fs::remove_dir_all(stack.path().join("cluster-addon")).unwrap();
    fs::remove_file(stack.path().join("clusteraddon.yaml")).unwrap();
    let chart = "apiVersion: v2\nname: docker-harbor-1-34-cluster-addon\nversion: 0.1.0 # set by us\nappVersion: << .ClusterClassVersion >>\n";
    write(
        stack.path(),
        [
            ("cluster-addon/Chart.yaml".into(), chart.into()),
            ("cluster-addon/logo.png".into(), b"\x89PNG\0<< .Unknown >>\xff".to_vec()),
            ("cluster-addon/notes.swp".into(), b"".to_vec()),
            ("cluster-addon/.helmignore".into(), b"*.swp\noverwrite*\n".to_vec()),
            (
                "cluster-addon/overwrite.yaml.tera".into(),
                b"read by operators\n".to_vec(),
            ),
            (
                "cluster-addon-values.yaml".into(),
                b"values: |\n  addons: << .ClusterAddonVersion >>\n".to_vec(),
            ),
        ],
    );
    let output = TempDir::new().unwrap();
    let packed = created(stack.path(), output.path(), &given("v0-sha.abc"));
    assert_eq!(packed.tag, tag("docker-harbor-1-34-v0-sha-abc"));
    let made = files(&packed.directory);
    let made = |name: &str| &made[Path::new(name)];
    assert_eq!(made("cluster-addon-values.yaml"), b"values: |\n  addons: v0-sha.abc\n");
    let addon = unpacked(made("docker-harbor-1-34-cluster-addon-v0-sha.abc.tgz"));
    let top = "docker-harbor-1-34-cluster-addon";
    assert_eq!(
        addon.keys().collect::<Vec<_>>(),
        [
            &format!("{top}/.helmignore"),
            &format!("{top}/Chart.yaml"),
            &format!("{top}/logo.png"),
            &format!("{top}/overwrite.yaml.tera")
        ]
    );
    assert_eq!(addon[&format!("{top}/logo.png")], b"\x89PNG\0<< .Unknown >>\xff");
    let chart = std::str::from_utf8(&addon[&format!("{top}/Chart.yaml")]).unwrap();
    assert!(
        chart.ends_with("version: v0-sha.abc\nappVersion: v0-sha.abc\n"),
        "{chart}"
    );

    // The same as a template of Tera; nobody can tell which of two counts.
    let go = stack.path().join("cluster-addon-values.yaml");
    fs::copy(&go, stack.path().join("cluster-addon-values.yaml.tera")).unwrap();
    let both = pack::create(stack.path(), output.path(), &given("v1")).expect_err("two templates");
    assert!(both.to_string().contains("take one of the two out"), "{both}");
    fs::remove_file(go).unwrap();
    let packed = created(stack.path(), output.path(), &given("v1"));
    let released = Release::open(&packed.directory, &packed.tag).expect("what was packed can be used");
    let charts = released.charts.expect("it was opened for clusters");
    let AddonConfiguration::Values(values) = charts.addons else {
        panic!("it has no stages")
    };
    assert_eq!(values.name, "cluster-addon-values.yaml.tera");
    fs::write(packed.directory.join("cluster-addon-values.yaml"), "values: |\n").unwrap();
    let both = Release::open(&packed.directory, &packed.tag).expect_err("two templates");
    assert!(both.to_string().contains("a release has one of them"), "{both}");
}

#[test]
fn hashes_are_what_sha256sum_and_base64_make_of_the_files() {
    let (stack, output) = (with_one_chart("values: |\n"), TempDir::new().unwrap());
    let packed = created(stack.path(), output.path(), &given("v1"));
    let text = fs::read(packed.directory.join("hashes.json")).unwrap();
    let hashes: serde_json::Value = serde_json::from_slice(&text).unwrap();
    // Of `sha256sum Chart.yaml templates/note.yaml | sha256sum` as bytes, without the signs of Base64 and in lower case.
    assert_eq!(hashes["clusterAddonDir"], "tvwpocshgubaw4nj9hq8nrxebya7smjb9wajx6fqm");
    assert_eq!(hashes["clusterAddonValues"], "q1mtuza4tqrqvcgkpg1knmotrvaluhc6qvda2rx8");
}

#[test]
fn hashes_are_those_that_csctl_would_write() {
    let Some(corpus) = std::env::var_os("STACKWRIGHT_CORPUS") else {
        // Not by a macro: the harness keeps what those write to itself when a test passes.
        let said = "REDUCED: STACKWRIGHT_CORPUS is unset, so hashes are not compared with those of a real release\n";
        std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
        return;
    };
    // This release has no placeholders in its add-ons, so that the archive holds the very sources.
    let release = PathBuf::from(corpus).join("releases/openstack-scs-1-32-v4");
    let archive = fs::read(release.join("openstack-scs-1-32-cluster-addon-v4.tgz")).unwrap();
    let stack = copy_of(&harbor("v1"));
    fs::remove_dir_all(stack.path().join("cluster-addon")).unwrap();
    write(
        &stack.path().join("cluster-addon"),
        unpacked(&archive)
            .into_iter()
            .map(|(path, content)| (path.into(), content)),
    );
    fs::copy(
        release.join("clusteraddon.yaml"),
        stack.path().join("clusteraddon.yaml"),
    )
    .unwrap();

    let output = TempDir::new().unwrap();
    let packed = created(stack.path(), output.path(), &given("v1"));
    let hash = |directory: &Path| {
        let hashes: serde_json::Value =
            serde_json::from_slice(&fs::read(directory.join("hashes.json")).unwrap()).unwrap();
        hashes["clusterAddonDir"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash(&packed.directory), hash(&release));
}

#[test]
fn real_helm_reads_the_class_chart_under_the_names_of_the_release() {
    let output = TempDir::new().unwrap();
    // The third has a template in Tera, which Helm takes for one of its own.
    for version in ["v1", "v2"] {
        let packed = created(&harbor(version), output.path(), &given(version));
        let chart = packed
            .directory
            .join(format!("docker-harbor-1-34-cluster-class-{version}.tgz"));
        let rendered = Command::new(lab::helm())
            .args(["template", "docker-harbor-1-34"])
            .arg(chart)
            .output()
            .unwrap();
        assert!(
            rendered.status.success(),
            "{}",
            String::from_utf8_lossy(&rendered.stderr)
        );
        let text = String::from_utf8(rendered.stdout).unwrap();
        let class = format!("kind: ClusterClass\nmetadata:\n  name: {}\n", packed.tag.class_name());
        assert!(text.contains(&class), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_files_come_out_of_the_archive_as_they_went_in(
        extra in proptest::collection::btree_map("x[a-z]{0,3}/[a-zA-Z0-9_ ~äß-]{1,120}", proptest::collection::vec(any::<u8>(), 0..200), 0..12)
    ) {
        let stack = copy_of(&harbor("v2"));
        fs::remove_file(stack.path().join("cluster-class/.helmignore")).unwrap();
        write(&stack.path().join("cluster-class"), extra.iter().map(|(path, content)| (path.into(), content.clone())));
        let output = TempDir::new().unwrap();
        let packed = created(stack.path(), output.path(), &given("v1"));
        let release = Release::open(&packed.directory, &packed.tag).unwrap();
        let mut chart = unpacked(&admitted(&release).read_class_chart().unwrap());
        for (path, content) in extra {
            prop_assert_eq!(chart.remove(&format!("docker-harbor-1-34-cluster-class/{path}")), Some(content));
        }
        prop_assert_eq!(chart.len(), files(&harbor("v2").join("cluster-class")).len() - 1);
    }
}
