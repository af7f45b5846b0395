//! A search beside a program that is no Helm: what it is for must come out.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

/// Searches beside a shell script until there is one difference. Gives what was found and the rows that were kept.
fn search_beside(script: &str) -> (Found, Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    let wanted = wanted(folder.path(), script, 1);
    let found = search(&wanted, |difference| {
        told.push(difference.template.clone());
        Ok(())
    });
    (found.unwrap(), told, std::fs::read_to_string(wanted.rows).unwrap())
}

fn wanted(folder: &Path, script: &str, enough: usize) -> Search {
    let binary = folder.join("helm");
    std::fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o700)).unwrap();
    Search {
        time: Duration::from_mins(10),
        oracles: vec![Oracle {
            profile: Profile::V3_19,
            binary,
        }],
        enough,
        seed: 7,
        rows: folder.join("rows.txt"),
    }
}

#[test]
fn a_search_that_nobody_hears_ends_before_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = wanted(folder.path(), "echo 'Error: no such chart' >&2; exit 1", usize::MAX);
    let begin = Instant::now();
    let found = search(&wanted, |_| anyhow::bail!("the pipe is broken"));
    assert_eq!(found.unwrap_err().to_string(), "the pipe is broken");
    assert!(begin.elapsed() < wanted.time);
}

#[test]
fn a_difference_is_found_told_and_kept_as_a_row() {
    let (found, told, rows) = search_beside("echo 'Error: no such chart' >&2; exit 1");
    assert!(!found.differences.is_empty(), "{}", found.summary());
    assert_eq!(rows.matches("> ").count(), found.differences.len(), "{rows}");
    let templates: Vec<&String> = found
        .differences
        .iter()
        .map(|difference| &difference.template)
        .collect();
    assert_eq!(told.iter().collect::<Vec<_>>(), templates);
    for difference in &found.differences {
        let Difference {
            template,
            profile,
            theirs,
            ours,
        } = difference;
        assert!(
            rows.contains(&template.replace('\n', "\n| ")),
            "{template} is not in {rows}"
        );
        assert_eq!((*profile, theirs.as_str()), ("v3.19", "! Error: no such chart"));
        assert_ne!(ours, theirs);
    }
}

#[test]
fn errors_of_one_kind_have_one_shape() {
    let shape = |error: &str| duel::Answer::Failed(error.to_owned()).shape();
    let error = r#"template: a/_case0000.tpl:1:4: executing "a" at <atoi "\"x">: error calling atoi: strconv.Atoi: parsing "x": invalid syntax"#;
    let other = r#"template: a/_case0000.tpl:7:12: executing "b" at <atoi .Values.s>: error calling atoi: strconv.Atoi: parsing "\"": invalid syntax"#;
    assert_eq!(shape(error), shape(other));
    assert_ne!(
        shape(error),
        shape(&error.replace("invalid syntax", "value out of range"))
    );
}
