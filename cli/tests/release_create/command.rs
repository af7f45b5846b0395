//! The command among others: what it prints, to whom, and its status, whatever is in the stack.

use std::{fs, process::Command};

use tempfile::TempDir;

use crate::fixture::{STACKS, create, path, stack_with, text};

#[test]
fn every_file_of_the_release_is_printed_with_size_and_digest() {
    let output = TempDir::new().unwrap();
    let made = create(&[&format!("{STACKS}/v1"), "--output", path(output.path())]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let release = output.path().join("docker-harbor-1-34-v1");
    let printed = text(&made.stdout);
    assert!(
        printed.starts_with(&format!(
            "docker-harbor-1-34-v1 (class of 7 objects) created: {}\n",
            release.display()
        )),
        "{printed}"
    );
    for file in fs::read_dir(&release).unwrap() {
        let file = file.unwrap();
        let line = printed
            .lines()
            .find(|line| line.starts_with(file.file_name().to_str().unwrap()))
            .expect("the file has a line");
        assert!(
            line.contains(&format!(" {} ", file.metadata().unwrap().len())),
            "{line}"
        );
    }

    let again = create(&[&format!("{STACKS}/v1"), "--output", path(output.path())]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(
        text(&again.stdout),
        "nothing changed since docker-harbor-1-34-v1, so no release was made; give a --version to make one nevertheless\n"
    );
}

#[test]
fn umask_time_zone_and_working_directory_do_not_show() {
    let output = TempDir::new().unwrap();
    let made = |name: &str, umask: &str, time_zone: &str| {
        let place = output.path().join(name);
        let script = format!("umask {umask}; exec \"$0\" release create \"$1\" --output \"$2\" --version v1");
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &script,
            env!("CARGO_BIN_EXE_kubectl-stacks"),
            &format!("{STACKS}/v1"),
            path(&place),
        ]);
        let printed = command
            .env("TZ", time_zone)
            .current_dir(output.path())
            .output()
            .unwrap();
        assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
        // The first line has the place, the others names and digests.
        text(&printed.stdout)
            .split_once('\n')
            .expect("more than one line")
            .1
            .to_owned()
    };
    assert_eq!(made("open", "000", "UTC"), made("closed", "077", "Pacific/Auckland"));
}

#[test]
fn reader_who_stops_after_the_first_line_is_no_mistake() {
    let output = TempDir::new().unwrap();
    // Ends before the command writes anything.
    let script = "\"$0\" release create \"$1\" --output \"$2\" | :; echo \"${PIPESTATUS[0]}\"";
    let stack = format!("{STACKS}/v1");
    let arguments = [
        script,
        env!("CARGO_BIN_EXE_kubectl-stacks"),
        &stack,
        path(output.path()),
    ];
    for what in ["a release is made", "nothing changed"] {
        let told = Command::new("bash").arg("-c").args(arguments).output().unwrap();
        assert_eq!((text(&told.stdout), text(&told.stderr)), ("0\n", ""), "{what}");
        assert!(output.path().join("docker-harbor-1-34-v1/metadata.yaml").is_file());
    }
}

#[test]
fn full_standard_output_after_a_release_was_made_or_nothing_changed_is_status_3_and_said() {
    let output = TempDir::new().unwrap();
    let stack = format!("{STACKS}/v1");
    let release = output.path().join("docker-harbor-1-34-v1");
    for done in [
        format!("the release is in {}", release.display()),
        "nothing changed since docker-harbor-1-34-v1, so no release was made".to_owned(),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let made = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"))
            .args(["release", "create", &stack, "--output", path(output.path())])
            .stdout(full)
            .output()
            .unwrap();
        let message = text(&made.stderr);
        assert_eq!(made.status.code(), Some(3), "{message}");
        assert!(release.join("metadata.yaml").is_file());
        let told = format!("error: {done}, but standard output cannot be written: No space left on device");
        assert!(message.starts_with(&told), "{message}");
    }
}

#[test]
fn full_standard_error_changes_neither_what_is_done_nor_the_status() {
    for (template, status) in [("a: {{ mustToYaml .Values }}\n", 0), ("a: {{ nosuch }}\n", 1)] {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let file = stack.path().join("cluster-addon/network/templates/more.yaml");
        fs::write(file, template).unwrap();
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let made = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"))
            .args(["release", "create", path(stack.path()), "--output", path(output.path())])
            .stderr(full)
            .output()
            .unwrap();
        assert_eq!(made.status.code(), Some(status), "{template}");
        assert_eq!(output.path().join("docker-harbor-1-34-v1").is_dir(), status == 0);
    }
}

#[test]
fn mistake_in_the_stack_is_one_line_on_stderr_and_status_1() {
    let stack = TempDir::new().unwrap();
    let made = create(&[path(stack.path()), "--output", path(&stack.path().join("out"))]);
    assert_eq!(made.status.code(), Some(1));
    assert_eq!(text(&made.stdout), "");
    let message = text(&made.stderr);
    assert!(
        message.starts_with(&format!("error: {}/csctl.yaml: missing", stack.path().display())),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn wrong_usage_is_status_2() {
    for arguments in [
        &["."][..],
        &[".", "--output", "out", "--version", "2"],
        &[".", "--output", "out", "--version", "v2", "--next-after", "x"],
        &[".", "--output", "out", "--chart-registry", "https://charts.example.com"],
        &[".", "--output", "out", "--plain-http"],
    ] {
        assert_eq!(create(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn help_shows_an_example() {
    let help = create(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = text(&help.stdout);
    assert!(help.contains("$ kubectl stacks release create harbor --output"));
    assert!(help.contains("$ helm registry login registry.example.com"), "{help}");
}
