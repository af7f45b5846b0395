//! Flags and first errors: what people meet before anything works.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use e2e::built::Program;

/// Runs the operator with these arguments as somebody who has no cluster, and returns when it has ended.
fn run(arguments: &[&str]) -> Result<(Option<i32>, String, String)> {
    run_with(arguments, |_| {})
}

fn run_with(arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Result<(Option<i32>, String, String)> {
    let home = tempfile::tempdir()?;
    let mut command = Command::new(Program::CoreOperator.path()?);
    command.args(arguments).env_clear().env("HOME", home.path());
    prepare(&mut command);
    let Output { status, stdout, stderr } = command.output().context("failed to start the operator")?;
    Ok((status.code(), String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

#[test]
fn help_teaches_and_the_version_is_told() -> Result<()> {
    let (status, help, _) = run(&["--help"])?;
    ensure!(status == Some(0), "{status:?}");
    for words in ["--release-dir", "--lease-duration", "[default: 15s]", "EXAMPLES"] {
        ensure!(help.contains(words), "{words} is not in:\n{help}");
    }
    let (status, version, _) = run(&["--version"])?;
    ensure!(
        status == Some(0) && version.starts_with("core-operator "),
        "{status:?} {version}"
    );
    Ok(())
}

#[test]
fn what_is_wrong_with_the_flags_is_said_and_the_status_is_2() -> Result<()> {
    let cases = [
        (&["--relase-dir=/tmp"][..], "--release-dir"),
        (&["--lease-duration=soon"], "15s, 500ms or 1m30s"),
        (&["--metrics-bind-address=eighty"], ":8080 or 127.0.0.1:8080"),
        (&["--concurrency=0"], "1..=1024"),
        (&["--source=tape"], "directory"),
        (&["--log-level=loud=er"], "error, warn, info, debug"),
        (&["--namespace=Fleet"], "\"Fleet\" is no name of a namespace"),
        (&["--watch-filter=blue,x=y"], "\"blue,x=y\" is no value of a label"),
        (&["--leader-elect-namespace=a/b"], "\"a/b\" is no name of a namespace"),
        (&["stray"], "unexpected argument 'stray'"),
    ];
    for (arguments, words) in cases {
        let (status, _, errors) = run(arguments)?;
        ensure!(status == Some(2), "{arguments:?}: {status:?}: {errors}");
        ensure!(errors.contains(words), "{arguments:?}: {errors}");
        ensure!(
            !errors.contains("panicked") && !errors.contains("backtrace"),
            "{arguments:?}: {errors}"
        );
    }
    Ok(())
}

#[test]
fn without_a_cluster_the_operator_says_where_it_looked() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "clusters: yes\n")?;
    let broken = broken.display().to_string();
    let by_flag = format!("--kubeconfig={broken}");
    let cases: [(&[&str], Option<&str>, &[&str]); 4] = [
        (
            &[],
            None,
            &[
                "found neither a kubeconfig nor the service account of a pod",
                "name a kubeconfig file",
            ],
        ),
        (&["--kubeconfig=/nowhere/at/all"], None, &["/nowhere/at/all"]),
        (&[by_flag.as_str()], None, &[&broken]),
        (&[], Some(&broken), &[&broken]),
    ];
    for (arguments, environment, words) in cases {
        let (status, _, errors) = run_with(arguments, |command| {
            if let Some(path) = environment {
                command.env("KUBECONFIG", path);
            }
        })?;
        ensure!(status == Some(1), "{arguments:?}: {status:?}: {errors}");
        for words in words {
            ensure!(
                errors.contains(words),
                "{arguments:?} {environment:?}: {words:?} is not in {errors}"
            );
        }
        ensure!(errors.matches("No such file").count() <= 1, "told twice: {errors}");
        each_line_is_json(&errors)?;
    }
    Ok(())
}

#[test]
fn a_broken_kubeconfig_is_located_and_never_quoted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("config").display().to_string();
    let secret = "ey-very-secret";
    for mistake in [
        format!("token: {secret}\n    token: {secret}"),
        format!("token: {secret}: oops"),
    ] {
        std::fs::write(&path, format!("users:\n- name: u\n  user:\n    {mistake}\n"))?;
        for level in ["--log-level=trace", "--log-level=off"] {
            let (status, output, errors) = run(&[&format!("--kubeconfig={path}"), level])?;
            ensure!(status == Some(1), "{status:?}: {errors}");
            ensure!(errors.contains(&path) && errors.contains(" at line "), "{errors}");
            ensure!(!errors.contains("secret") && !output.contains("secret"), "{errors}");
        }
    }
    Ok(())
}

#[test]
fn an_address_in_use_is_named() -> Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let kubeconfig = r#"{"apiVersion":"v1","kind":"Config","current-context":"x",
        "clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],
        "users":[{"name":"x","user":{}}],"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}"#;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig)?;
    let flags = [
        format!("--kubeconfig={}", path.display()),
        format!("--metrics-bind-address={address}"),
    ];
    let (status, _, errors) = run(&flags.each_ref().map(String::as_str))?;
    ensure!(status == Some(1), "{status:?}: {errors}");
    ensure!(errors.contains(&format!("unable to listen on {address}")), "{errors}");
    each_line_is_json(&errors)
}

/// With JSON logs, the default, a reader of logs gets nothing else, also at the end.
fn each_line_is_json(errors: &str) -> Result<()> {
    for line in errors.lines() {
        serde_json::from_str::<serde_json::Value>(line).with_context(|| format!("not JSON: {line}"))?;
    }
    Ok(())
}
