//! The certificates that the real helms made of `tests/certificates/template.txt`; the library makes them again in a test of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use helm::yaml;

use crate::helms;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates")
}

#[test]
fn every_profile_has_recorded_certificates_of_every_entry() {
    let template = std::fs::read_to_string(folder().join("template.txt")).unwrap();
    let named = template.lines().filter_map(|line| {
        let (_, rest) = line.split_once("set $list \"")?;
        rest.split_once('"').map(|(name, _)| name)
    });
    let named: BTreeSet<&str> = named.collect();
    assert_eq!(named.len(), 12);
    for profile in helms::profiles() {
        let file = folder().join(format!("{}.yaml", profile.name));
        if helms::is_recording("certificates") {
            let written = helms::output(&template, &helms::binary(profile));
            std::fs::write(&file, written).unwrap();
        }
        let recorded = yaml::parse(&std::fs::read(&file).unwrap()).unwrap();
        let entries: BTreeSet<&str> = recorded.as_map().unwrap().keys().map(String::as_str).collect();
        assert_eq!(entries, named, "{}", profile.name);
    }
}
