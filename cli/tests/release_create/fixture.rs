//! The command, and stacks to make releases of: our own, to which a test does one thing.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

pub(crate) const STACKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/stacks/docker-harbor");

pub(crate) fn create(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"));
    command
        .args(["release", "create"])
        .args(arguments)
        .output()
        .expect("the command starts")
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the command prints text")
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("temporary names are text")
}

/// A copy of our own stack with one more template in its class chart.
pub(crate) fn stack_with(template: &str) -> TempDir {
    let place = TempDir::new().unwrap();
    copy(Path::new(STACKS).join("v1").as_path(), place.path());
    fs::write(place.path().join("cluster-class/templates/more.yaml"), template).unwrap();
    place
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// What is said of our own stack with this file in its chart of the network, which becomes no release.
pub(crate) fn refused_with(file: &str, content: &str) -> String {
    let (stack, output) = (stack_with(""), TempDir::new().unwrap());
    let path_of_file = stack.path().join("cluster-addon/network").join(file);
    fs::create_dir_all(path_of_file.parent().unwrap()).unwrap();
    fs::write(path_of_file, content).unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    let message = text(&made.stderr);
    assert_eq!(made.status.code(), Some(1), "{file} {content}: {message}");
    assert_eq!((message.lines().count(), text(&made.stdout)), (1, ""), "{message}");
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0, "{message}");
    message.trim_end().replace(&format!("{}/", stack.path().display()), "")
}

/// Our own stack with each file in its chart of the network becomes no release. What is said of it begins with this place in the chart, and has this
/// reason in it.
pub(crate) fn each_is_refused(mistakes: &[(&str, &str, &str, &str)]) {
    for &(file, content, place, reason) in mistakes {
        let message = refused_with(file, content);
        let start = format!("error: cluster-addon/network/{place}");
        assert!(message.starts_with(&start), "{content}: {message}");
        assert!(message.contains(reason), "{content}: {message}");
    }
}
