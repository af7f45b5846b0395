//! The charts of add-ons out of their archive: one, or one for each stage.

use std::{collections::BTreeMap, fs, path::Path};

use release::{AddonConfiguration, Purpose, Release};
use tempfile::TempDir;

use crate::{
    directory_source::corpus,
    fixture::{Archive, TAG, admitted, chain, good_release, tag},
};

/// A release with stages whose archive is this one.
fn staged(root: &Path, archive: Archive) -> Release {
    let directory = good_release(root, TAG);
    let addon = directory.join("docker-harbor-1-34-cluster-addon-v1.tgz");
    fs::write(addon, archive.bytes()).unwrap();
    let stages = "addonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}]}";
    fs::write(directory.join("clusteraddon.yaml"), stages).unwrap();
    Release::open(&directory, &tag(TAG)).unwrap()
}

#[test]
fn each_stage_has_the_files_of_its_folder_and_nothing_beside() {
    let root = TempDir::new().unwrap();
    let archive = Archive::chart("cni")
        .file(".helmignore", b"beside")
        .file("cni/charts/cilium-1.17.4.tgz", b"\x1f\x8b")
        .file("./cni/overwrite.yaml", b"values: |")
        .file("csi/Chart.yaml", b"name: csi\nversion: v1\n")
        .file("cni-more/Chart.yaml", b"name: more\nversion: v1\n");
    let release = admitted(&staged(root.path(), archive));
    let file = |name: &str, content: &[u8]| (name.to_owned(), content.to_vec());
    assert_eq!(
        release.read_stage_chart("cni").unwrap(),
        [
            file("Chart.yaml", b"name: cni\nversion: v1\n"),
            file("charts/cilium-1.17.4.tgz", b"\x1f\x8b"),
            file("overwrite.yaml", b"values: |"),
        ]
    );
    let templates = release.read_stage_files(|_, path| path == "overwrite.yaml").unwrap();
    assert_eq!(
        templates,
        BTreeMap::from([("cni".to_owned(), vec![file("overwrite.yaml", b"values: |")])])
    );
    assert_eq!(
        chain(&release.read_stage_chart("ccm").unwrap_err()),
        "docker-harbor-1-34-cluster-addon-v1.tgz: the stage \"ccm\" of clusteraddon.yaml needs a directory of this name with a Chart.yaml"
    );
}

#[test]
fn an_archive_that_changed_since_it_was_verified_gives_no_chart() {
    let root = TempDir::new().unwrap();
    let release = admitted(&staged(root.path(), Archive::chart("cni")));
    let addon = release.release().charts.as_ref().unwrap().addon_chart.name.clone();
    let path = root.path().join("cluster-stacks").join(TAG).join(addon);
    fs::write(path, Archive::chart("cni").file("cni/templates/more.yaml", b"").bytes()).unwrap();
    let error = chain(&release.read_stage_chart("cni").unwrap_err());
    assert!(error.contains("changed"), "{error}");
}

#[test]
fn a_release_that_was_opened_for_its_images_has_no_charts() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    fs::write(directory.join("node-images.yaml"), "openStackNodeImages: []").unwrap();
    let release = Release::open_for(Purpose::NodeImages, &directory, &tag(TAG)).unwrap();
    assert_eq!(
        chain(&admitted(&release).read_stage_chart("cni").unwrap_err()),
        "docker-harbor-1-34-cluster-addon-v1.tgz: missing; the release was opened for its node images alone"
    );
}

#[test]
fn stages_of_real_releases_are_what_tar_unpacks() {
    let Some(root) = corpus() else { return };
    let mut stages = 0;
    for release in fs::read_dir(root.path().join("cluster-stacks")).unwrap() {
        let directory = release.unwrap().path();
        let name = directory.file_name().unwrap().to_str().unwrap();
        let Ok(release) = Release::open(&directory, &tag(name)) else {
            continue;
        };
        let release = admitted(&release);
        let unpacked = TempDir::new().unwrap();
        let archive = release.read_addon_archive().unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()))
            .unpack(unpacked.path())
            .unwrap();
        let AddonConfiguration::Stages(_) = &release.release().charts.as_ref().unwrap().addons else {
            continue;
        };
        for (folder, files) in release.read_stage_files(|_, _| true).unwrap() {
            assert!(files.len() > 1, "{name}/{folder}");
            for (path, content) in &files {
                assert!(
                    fs::read(unpacked.path().join(&folder).join(path)).unwrap() == *content,
                    "{path}"
                );
            }
            assert_eq!(release.read_stage_chart(&folder).unwrap(), files);
            stages += 1;
        }
    }
    assert!(stages >= 16, "{stages} stages");
}
