//! What the sources of the room may not touch.

use std::{fs, path::Path};

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn clouds_yaml_reads_no_file_and_no_environment() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 10, "{}", found.len());
    for (path, text) in found {
        for word in [
            "std::fs",
            "tokio::fs",
            "std::env",
            "env::var",
            "File::open",
            "read_to_string",
        ] {
            assert!(!text.contains(word), "{path} uses {word}");
        }
    }
}

#[test]
fn only_the_transport_speaks_http() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    for (path, text) in found {
        assert!(
            path.ends_with("src/transport.rs") || !text.contains("reqwest"),
            "{path} names reqwest"
        );
    }
}
