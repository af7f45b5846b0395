//! Directories that are no usable release: each is refused with the file and the reason, and none is read beyond its bounds.

use std::{env, fs, os::unix::fs::symlink, path::Path, process::Command};

use crds::names::ReleaseTag;
use release::{ErrorClass, Purpose, Release};
use tar::EntryType;
use tempfile::TempDir;

use crate::fixture::{Archive, TAG, admitted, chain, good_release, metadata, tag};

const CLASS: &str = "docker-harbor-1-34-cluster-class-v1.tgz";
const ADDON: &str = "docker-harbor-1-34-cluster-addon-v1.tgz";

/// What is said about a good release after somebody did this to its directory.
fn refusal(harm: impl FnOnce(&Path)) -> String {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    Release::open(&directory, &tag(TAG)).expect("the release is good before");
    harm(&directory);
    let error = Release::open(&directory, &tag(TAG)).expect_err("the release is refused");
    assert_eq!(error.class(), ErrorClass::Terminal);
    chain(&error)
}

fn refusal_of_class_chart(archive: Archive) -> String {
    refusal(|directory| fs::write(directory.join(CLASS), archive.bytes()).unwrap())
}

#[track_caller]
fn says(refusal: &str, words: &[&str]) {
    for word in words {
        assert!(refusal.contains(word), "{refusal:?} does not say {word:?}");
    }
}

#[test]
fn missing_files_are_named() {
    for file in ["metadata.yaml", CLASS, ADDON, "cluster-addon-values.yaml"] {
        let refusal = refusal(|directory| fs::remove_file(directory.join(file)).unwrap());
        says(&refusal, &[file, "missing"]);
    }
}

#[test]
fn what_is_read_for_node_images_needs_no_charts_and_has_the_same_digest() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let for_images = || Release::open_for(Purpose::NodeImages, &directory, &tag(TAG));
    fs::write(directory.join("node-images.yaml"), "openStackNodeImages: []\n").unwrap();
    let whole = Release::open(&directory, &tag(TAG)).unwrap();
    let same = for_images().unwrap();
    assert_eq!((same.digest, &same.files), (whole.digest, &whole.files));

    fs::write(directory.join(CLASS), "no archive").unwrap();
    assert_ne!(
        for_images().unwrap().digest,
        whole.digest,
        "files that nobody looks into are pinned too"
    );
    for file in [CLASS, ADDON, "cluster-addon-values.yaml"] {
        fs::remove_file(directory.join(file)).unwrap();
    }
    let two = for_images().unwrap();
    let names: Vec<&str> = two.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["metadata.yaml", "node-images.yaml"]);
    says(
        &chain(&admitted(&two).read_class_chart().unwrap_err()),
        &[CLASS, "missing"],
    );
    says(
        &chain(&Release::open(&directory, &tag(TAG)).unwrap_err()),
        &[CLASS, "missing"],
    );
}

#[test]
fn half_a_release_is_not_one_without_images() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let for_images = || Release::open_for(Purpose::NodeImages, &directory, &tag(TAG));
    for_images().expect("without images");
    for file in ["cluster-addon-values.yaml", CLASS, "metadata.yaml"] {
        fs::remove_file(directory.join(file)).unwrap();
        says(&chain(&for_images().unwrap_err()), &[file, "missing"]);
    }
}

#[test]
fn class_chart_of_version_ten_is_not_that_of_version_one() {
    let ten = "docker-harbor-1-34-cluster-class-v10.tgz";
    let refusal = refusal(|directory| fs::rename(directory.join(CLASS), directory.join(ten)).unwrap());
    says(&refusal, &[CLASS, "missing"]);
}

#[test]
fn metadata_that_contradict_the_tag_are_refused() {
    let of = |version, kubernetes| {
        refusal(|directory| fs::write(directory.join("metadata.yaml"), metadata(version, kubernetes)).unwrap())
    };
    says(&of("v2", "v1.34.2"), &["metadata.yaml", "v2", "v1"]);
    says(&of("v1", "v1.33.2"), &["metadata.yaml", "v1.33.2", "1.34"]);
}

#[test]
fn metadata_that_are_no_metadata_are_refused_with_the_field() {
    let of = |text: &str| refusal(|directory| fs::write(directory.join("metadata.yaml"), text).unwrap());
    says(&of("versions: [\n"), &["metadata.yaml", "line"]);
    says(&of("versions: {}\n"), &["metadata.yaml", "clusterstack version empty"]);
    says(
        &of(&metadata("1", "v1.34.2")),
        &["metadata.yaml", "versions.clusterStack"],
    );
}

#[test]
fn links_devices_and_directories_are_refused() {
    says(
        &refusal(|directory| symlink("/etc/passwd", directory.join("passwd")).unwrap()),
        &["passwd", "symbolic link"],
    );
    says(
        &refusal(|directory| fs::create_dir(directory.join("nested")).unwrap()),
        &["nested", "a directory"],
    );
    let replaced = refusal(|directory| {
        let file = directory.join(CLASS);
        fs::rename(&file, directory.join("elsewhere.tgz")).unwrap();
        symlink("elsewhere.tgz", file).unwrap();
    });
    says(&replaced, &[CLASS, "symbolic link"]);
}

#[test]
fn files_beyond_the_bounds_are_refused_unread() {
    let grow = |file: &'static str, size: u64| {
        refusal(move |directory| fs::File::create(directory.join(file)).unwrap().set_len(size).unwrap())
    };
    for description in ["metadata.yaml", "clusteraddon.yaml", "node-images.yaml", "hashes.json"] {
        says(
            &grow(description, (64 << 10) + 1),
            &[description, "65537 bytes", "65536"],
        );
    }
    says(
        &grow("notes.md", (5 << 20) + 1),
        &["notes.md", "5242881 bytes", "5242880"],
    );
    // Sparse: it takes no space, and reading it all would take seconds.
    says(&grow(CLASS, 1 << 40), &[CLASS, "bytes"]);
    let together = refusal(|directory| {
        for name in ["a.tgz", "b.tgz", "c.tgz"] {
            fs::File::create(directory.join(name))
                .unwrap()
                .set_len(90 << 20)
                .unwrap();
        }
    });
    says(&together, &["release: its files have", "may have 268435456 together"]);
    let many =
        refusal(|directory| (0..64).for_each(|index| fs::write(directory.join(format!("more-{index}")), "").unwrap()));
    says(&many, &["one file too many"]);
}

#[test]
fn descriptions_that_would_keep_the_parser_busy_are_refused_unparsed() {
    // Each level makes every later token dearer; quotes hide the closing brackets from nobody.
    for brackets in ["[".repeat(60_000), "[']',".repeat(10_000), "{\"}\":\n".repeat(10_000)] {
        for file in ["metadata.yaml", "clusteraddon.yaml"] {
            let refusal = refusal(|directory| fs::write(directory.join(file), &brackets).unwrap());
            says(&refusal, &[file, "line 1", "one bracket more than the 1024"]);
        }
        let chart = Archive::new().file("chart/Chart.yaml", brackets.as_bytes());
        says(
            &refusal_of_class_chart(chart),
            &[CLASS, "chart/Chart.yaml", "one bracket more"],
        );
    }
    let long = Archive::new().file("chart/Chart.yaml", &vec![b'#'; (64 << 10) + 1]);
    says(
        &refusal_of_class_chart(long),
        &[CLASS, "chart/Chart.yaml", "65537 bytes", "65536"],
    );
}

#[test]
fn f37_names_inside_archives_stay_inside() {
    for name in [
        "../evil",
        "chart/../../evil",
        "/etc/evil",
        "C:\\evil",
        "chart\\..\\..\\evil",
    ] {
        let refusal = refusal_of_class_chart(Archive::chart("chart").file(name, b""));
        says(&refusal, &[CLASS, "leaves the archive"]);
    }
}

#[test]
fn f37_links_inside_archives_are_refused() {
    for kind in [EntryType::Symlink, EntryType::Link] {
        let refusal =
            refusal_of_class_chart(Archive::chart("chart").entry(kind, "chart/link", Some("/etc/passwd"), b""));
        says(&refusal, &[CLASS, "chart/link", "neither a file nor a directory"]);
    }
}

#[test]
fn f37_archives_that_unpack_to_too_much_are_refused() {
    let large = vec![0; (5 << 20) + 1];
    says(
        &refusal_of_class_chart(Archive::chart("chart").file("chart/large", &large)),
        &[CLASS, "chart/large", "5242881 bytes"],
    );
    let bomb = (0..21).fold(Archive::chart("chart"), |archive, index| {
        archive.file(&format!("chart/{index}"), &large[..5 << 20])
    });
    says(&refusal_of_class_chart(bomb), &[CLASS, "unpacks to more than"]);
    let many = (0..10_000).fold(Archive::chart("chart"), |archive, index| {
        archive.file(&format!("chart/{index}"), b"")
    });
    says(&refusal_of_class_chart(many), &[CLASS, "more than 10000 entries"]);
}

#[test]
fn f37_names_and_attributes_before_an_entry_are_bounded() {
    let long = vec![b'a'; 2 << 20];
    let attribute = [format!("{} comment=", long.len() + 17).as_bytes(), &long, b"\n"].concat();
    let chart = || Archive::chart("chart");
    for archive in [
        chart().entry(EntryType::GNULongName, "././@LongLink", None, &long),
        chart().entry(EntryType::GNULongLink, "././@LongLink", None, &long),
        chart().entry(EntryType::XHeader, "attributes", None, &attribute),
        chart().sparse("chart/holes", 4096),
    ] {
        let refusal = refusal_of_class_chart(archive.file("chart/file", b""));
        says(&refusal, &[CLASS, "more than 1048576 bytes of names and attributes"]);
    }
}

#[test]
fn f37_names_that_no_file_can_have_are_refused_and_told_in_short() {
    let (parts, part) = ("c/".repeat(2500), "c".repeat(256));
    for (kind, name, words) in [
        (EntryType::Regular, &parts, "longer than 4096 bytes"),
        (EntryType::Symlink, &parts, "longer than 4096 bytes"),
        (EntryType::Regular, &part, "or a part of it than 255"),
        (EntryType::Symlink, &parts[..4000].to_owned(), "neither a file"),
        (
            EntryType::Regular,
            &format!("../{}", &parts[..4000]),
            "leaves the archive",
        ),
    ] {
        let refusal = refusal_of_class_chart(Archive::chart("chart").long(kind, name));
        says(&refusal, &[CLASS, words]);
        assert!(refusal.len() < 600, "{} bytes: {refusal}", refusal.len());
    }
    let longest = "c/".repeat(2048);
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let stem = "docker-harbor-1-34-cluster-class";
    let chart = Archive::chart(stem).long(EntryType::Regular, &format!("{stem}/{}", &longest[..4000]));
    fs::write(directory.join(CLASS), chart.bytes()).unwrap();
    Release::open(&directory, &tag(TAG)).expect("names that files have are none to refuse");
}

#[test]
fn charts_are_named_in_short() {
    let text = format!("name: {}\nversion: v1\n", "a".repeat(256));
    let archive = Archive::new().file("chart/Chart.yaml", text.as_bytes());
    says(&refusal_of_class_chart(archive), &[CLASS, "at most 255 bytes"]);
}

/// Where a test finds the release that it opens in a process of its own.
const DIRECTORY: &str = "ARCHIVE_TEST_DIRECTORY";

#[test]
fn f37_archive_of_a_long_name_takes_no_memory() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    for kind in [EntryType::Regular, EntryType::Symlink] {
        let archive = Archive::chart("chart").long(kind, &"c/".repeat(8 << 20));
        fs::write(directory.join(CLASS), archive.bytes()).unwrap();
        let opened = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "hostile_releases::opens_in_little_memory",
                "--ignored",
                "--nocapture",
            ])
            .env(DIRECTORY, &directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&opened.stdout).into_owned();
        assert!(opened.status.success() && said.contains("1 passed"), "{said}");
    }
}

#[test]
#[ignore = "is started as a process of its own"]
fn opens_in_little_memory() {
    let directory = env::var_os(DIRECTORY).expect("the test that starts this one names a release");
    let refused = Release::open(Path::new(&directory), &tag(TAG)).is_err();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kibibytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("refused: {refused}, {kibibytes} KiB");
    assert!(refused && kibibytes < 64 << 10, "refused: {refused}, {kibibytes} KiB");
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let archive = Archive::chart("chart").file("chart/a", b"1").file("./chart//a", b"2");
    says(&refusal_of_class_chart(archive), &[CLASS, "twice"]);
}

/// `git archive` and pax write one.
#[test]
fn a_header_for_the_whole_archive_is_no_entry_of_it() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let stem = "docker-harbor-1-34-cluster-class";
    let chart = Archive::new()
        .entry(
            EntryType::XGlobalHeader,
            "pax_global_header",
            None,
            b"23 comment=of a commit\n",
        )
        .file(
            &format!("{stem}/Chart.yaml"),
            format!("name: {stem}\nversion: v1\n").as_bytes(),
        );
    fs::write(directory.join(CLASS), chart.bytes()).unwrap();
    Release::open(&directory, &tag(TAG)).expect("it has one chart and nothing else");
}

#[test]
fn archives_that_end_early_are_refused() {
    for (what, keep) in [("checksum", 4), ("half", 60)] {
        let refusal = refusal(|directory| {
            let bytes = fs::read(directory.join(ADDON)).unwrap();
            fs::write(directory.join(ADDON), &bytes[..bytes.len() - keep]).unwrap();
        });
        says(&refusal, &[ADDON, "not a complete gzip-compressed tar archive"]);
        assert!(!refusal.is_empty(), "{what}");
    }
    says(
        &refusal(|directory| fs::write(directory.join(ADDON), "not an archive").unwrap()),
        &[ADDON, "not a complete"],
    );
}

#[test]
fn class_chart_must_be_one_chart() {
    says(
        &refusal_of_class_chart(Archive::new().file("Chart.yaml", b"name: a\nversion: v1\n")),
        &[CLASS, "one top directory"],
    );
    says(
        &refusal_of_class_chart(Archive::new().file("chart/values.yaml", b"")),
        &[CLASS, "one top directory"],
    );
    let two = Archive::chart("one").file("two/Chart.yaml", b"name: two\nversion: v1\n");
    says(&refusal_of_class_chart(two), &[CLASS, "one top directory"]);
    says(
        &refusal_of_class_chart(Archive::new().file("chart/Chart.yaml", b"name: a\n")),
        &[CLASS, "Chart.yaml", "version"],
    );
}

#[test]
fn add_ons_without_stages_must_be_one_chart() {
    let of = |archive: Archive| refusal(|directory| fs::write(directory.join(ADDON), archive.bytes()).unwrap());
    let none = Archive::new().file("chart/values.yaml", b"");
    let two = Archive::chart("one").file("two/Chart.yaml", b"name: two\nversion: v1\n");
    for archive in [none, two] {
        says(&of(archive), &[ADDON, "one top directory"]);
    }
}

#[test]
fn every_stage_needs_its_chart() {
    let refusal = refusal(|directory| {
        fs::write(
            directory.join("clusteraddon.yaml"),
            "addonStages:\n  AfterControlPlaneInitialized:\n  - {name: network, action: apply}\n",
        )
        .unwrap();
    });
    says(&refusal, &[ADDON, "\"network\"", "clusteraddon.yaml"]);
}

/// Stages of which one waits for an object of a kind that its chart brings along.
fn waiting(condition: &str) -> String {
    format!(
        "addonStages:\n  AfterClusterUpgrade:\n  - name: rings\n    action: apply\n    waitForPostCondition:\n      objects:\n      \
         - {{key: ring, apiVersion: example.org/v1, kind: Ring, name: one}}\n      \
         - {{key: pods, apiVersion: apps/v1, kind: DaemonSet, name: rings, namespace: kube-system}}\n      conditions: {condition:?}\n"
    )
}

/// A definition with one field, `spec.size`, and this behind it.
fn ring(padding: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: example.org\n  names: {{kind: Ring}}\n  \
         versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            \
         type: object\n            properties: {{size: {{type: integer}}}}\n# {padding}\n"
    )
}

/// Makes a release wait for this, whose chart brings these definitions along.
fn wait(directory: &Path, condition: &str, definitions: &str) {
    let archive = Archive::chart("rings").file("rings/crds/ring.yaml", definitions.as_bytes());
    fs::write(directory.join(ADDON), archive.bytes()).unwrap();
    fs::write(directory.join("clusteraddon.yaml"), waiting(condition)).unwrap();
}

#[test]
fn a_condition_that_can_never_hold_is_refused_with_file_stage_position_and_path() {
    let refused = |condition: &str| refusal(|directory| wait(directory, condition, &ring("")));
    assert_eq!(
        refused("pods.status.numberReady == pods.status.desiredNumberSchedule"),
        "clusteraddon.yaml:9:47: waitForPostCondition of the stage \"rings\" of AfterClusterUpgrade: \
         pods.status.desiredNumberSchedule: there is no field desiredNumberSchedule: did you mean desiredNumberScheduled?; \
         correct it and build the release again"
    );
    says(
        &refused("pods.status.numberReady == '1'"),
        &["an integer with a string, which are never equal"],
    );
    says(
        &refused("pods.status.numberReady =="),
        &["clusteraddon.yaml:9:46: ", "expected a value", "found the end"],
    );
    says(
        &refused("ring.spec.siez == 1"),
        &["ring.spec.siez", "did you mean size?"],
    );
    says(
        &refused("rings.spec.size == 1 && ring.spec.size == ''"),
        &["rings", "did you mean ring", "(and 1 more)"],
    );
    let twice = refusal(|directory| {
        wait(directory, "true", &ring(""));
        let text = waiting("true").replace("key: pods", "key: ring");
        fs::write(directory.join("clusteraddon.yaml"), text).unwrap();
    });
    says(&twice, &["clusteraddon.yaml:5: ", "two objects have the key \"ring\""]);
}

#[test]
fn objects_without_a_word_about_them_are_refused() {
    for nothing in ["", " "] {
        says(
            &refusal(|directory| wait(directory, nothing, &ring(""))),
            &[
                "clusteraddon.yaml:9:",
                "waitForPostCondition of the stage \"rings\" of AfterClusterUpgrade: ",
                "expected a value",
                "found the end",
            ],
        );
    }
}

#[test]
fn of_the_conditions_of_all_stages_the_first_in_the_file_is_told_and_the_others_are_counted() {
    let many: Vec<_> = (0..100).map(|number| format!("ring.f{number}")).collect();
    let refusal = refusal(|directory| {
        wait(directory, "true", &ring(""));
        let objects = "objects: [{key: ring, apiVersion: example.org/v1, kind: Ring, name: one}]";
        let stage = |condition: &str| {
            format!(
                "  - name: rings\n    action: apply\n    waitForPreCondition: {{{objects}, conditions: '{condition}'}}\n"
            )
        };
        // The hooks are in another order than that of the alphabet.
        let text = format!(
            "addonStages:\n  BeforeClusterUpgrade:\n{}{}  AfterClusterUpgrade:\n{}",
            stage("ring.spec.siez == 1"),
            stage("ring.spec.size == "),
            stage(&many.join(" == 1 || ")),
        );
        fs::write(directory.join("clusteraddon.yaml"), text).unwrap();
    });
    says(
        &refusal,
        &[
            "clusteraddon.yaml:5:",
            "stage \"rings\" of BeforeClusterUpgrade: ring.spec.siez: there is no field siez: did you mean size? (and ",
            " more); correct it and build the release again",
        ],
    );
    assert!(refusal.len() < 1_000, "{refusal}");
}

#[test]
fn conditions_pass_that_may_hold_or_of_which_nothing_is_known() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let opens = |condition: &str, definitions: &str| {
        wait(&directory, condition, definitions);
        Release::open(&directory, &tag(TAG)).map_err(|error| chain(&error))
    };
    opens("ring.spec.size == 1 && pods.status.numberReady > 0", &ring("")).unwrap();
    opens("ring.spec.unknown == 1", "not: a definition").unwrap();
    // What is too large to be read for a check is not checked.
    opens("ring.spec.unknown == 1", &ring(&"x".repeat(300 << 10))).unwrap();
    opens("ring.spec.unknown == 1", &ring(&"[".repeat(300))).unwrap();
}

#[test]
fn what_could_not_be_checked_of_conditions_is_noted() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let notes = |directory: &Path, tag: &ReleaseTag| {
        let release = Release::open(directory, tag).map_err(|error| chain(&error)).unwrap();
        release.charts.expect("charts").notes
    };
    wait(
        &directory,
        "ring.spec.size == 1 && pods.status.numberReady > 0",
        &ring(""),
    );
    assert_eq!(notes(&directory, &tag(TAG)), [""; 0]);
    wait(&directory, "ring.spec.unknown == 1", "not: a definition");
    assert_eq!(
        notes(&directory, &tag(TAG)),
        [
            "clusteraddon.yaml:9:20: waitForPostCondition of the stage \"rings\" of AfterClusterUpgrade: ring: \
          no schema of Ring in example.org/v1 is known: its fields are not checked"
        ]
    );
    let many: Vec<_> = (0..50).map(|number| format!("has(pods.spec.f{number})")).collect();
    wait(&directory, &many.join(" || "), &ring(""));
    let notes = notes(&directory, &tag(TAG));
    assert_eq!(notes.len(), 33);
    assert_eq!(notes[32], "clusteraddon.yaml: 18 more of the kind");
}

#[test]
fn a_release_for_a_kubernetes_that_is_newer_than_this_version_knows_may_use_fields_that_it_does_not_know() {
    let root = TempDir::new().unwrap();
    let newer = TAG.replace("-1-34-", "-1-99-");
    assert_ne!(newer, TAG);
    let directory = good_release(root.path(), &newer);
    fs::write(directory.join("metadata.yaml"), metadata("v1", "v1.99.2")).unwrap();
    let archive = Archive::chart("rings").file("rings/crds/ring.yaml", ring("").as_bytes());
    let addon = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
    let addon = addon
        .into_iter()
        .find(|path| path.to_string_lossy().contains("-cluster-addon-"))
        .unwrap();
    fs::write(addon, archive.bytes()).unwrap();
    let opens = |condition: &str| {
        fs::write(directory.join("clusteraddon.yaml"), waiting(condition)).unwrap();
        Release::open(&directory, &tag(&newer)).map_err(|error| chain(&error))
    };
    let release = opens("pods.status.numberNapping == 0").unwrap();
    let notes = release.charts.expect("charts").notes;
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    says(
        note,
        &[
            "pods.status.numberNapping: Kubernetes v1.",
            "has no field numberNapping",
            "not checked",
        ],
    );
    says(&opens("ring.spec.siez == 1").unwrap_err(), &["did you mean size?"]);
    says(
        &opens("pods.status.numberReady == '1'").unwrap_err(),
        &["which are never equal"],
    );
}

#[test]
fn files_that_editors_leave_are_not_part_of_a_release() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let before = Release::open(&directory, &tag(TAG)).unwrap();
    fs::write(directory.join(".metadata.yaml.swp"), "x").unwrap();
    let after = Release::open(&directory, &tag(TAG)).unwrap();
    assert_eq!(before.digest, after.digest);
}

#[test]
fn chart_that_was_exchanged_after_verification_is_not_read() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let release = Release::open(&directory, &tag(TAG)).unwrap();
    assert_eq!(
        admitted(&release).read_class_chart().unwrap(),
        fs::read(directory.join(CLASS)).unwrap()
    );

    let mut bytes = fs::read(directory.join(CLASS)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(directory.join(CLASS), &bytes).unwrap();
    let error = admitted(&release).read_class_chart().expect_err("the bytes are others");
    assert_eq!(error.class(), ErrorClass::Transient);
    says(&chain(&error), &[CLASS, "changed"]);
}

#[test]
fn a_file_that_cannot_be_read_for_a_moment_is_one_to_read_again() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let release = Release::open(&directory, &tag(TAG)).unwrap();
    let away = root.path().join("away");
    fs::rename(&directory, &away).unwrap();
    let error = admitted(&release).read_class_chart().expect_err("its storage is away");
    assert_eq!(
        (error.class(), error.reason()),
        (ErrorClass::Transient, "ReleaseUnreadable")
    );
    fs::rename(away, directory).unwrap();
    admitted(&release)
        .read_class_chart()
        .expect("the storage is there again");
}
