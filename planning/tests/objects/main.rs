//! Objects of the API server, ours and those of others, changed in many ways: a moment of what `cargo xtask fuzz coverage` does for long.

#[cfg(test)]
#[path = "../../../fuzz/src/brief.rs"]
mod brief;
#[cfg(test)]
#[path = "../../../fuzz/src/objects.rs"]
mod targets;

use std::path::Path;

/// How many changes of seeds are tried with each target.
const CHANGES: usize = 3000;

#[cfg(test)]
fn hold(name: &str, target: fn(&[u8]) -> bool) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let seeds = brief::seeds(&fuzz.join("seeds").join(name));
    for (seed, bytes) in &seeds {
        assert_eq!(target(bytes), seed.starts_with("good"), "{name}/{seed}");
    }
    let found = fuzz.join("found").join(name);
    if found.is_dir() {
        for (found, bytes) in brief::seeds(&found) {
            eprintln!("{name}/{found}");
            target(&bytes);
        }
    }
    let mut numbers = brief::Numbers::of(1);
    for _ in 0..CHANGES {
        let input = brief::changed(&seeds, &mut numbers);
        let held = std::panic::catch_unwind(|| target(&input)).is_ok();
        assert!(held, "{name} does not hold for {:?}", String::from_utf8_lossy(&input));
    }
}

#[test]
fn resources_of_ours_are_what_they_were_after_they_were_written() {
    hold("resources", targets::resources);
}

#[test]
fn objects_of_others_are_judged_whatever_is_in_them() {
    hold("strangers", targets::strangers);
}

#[test]
fn reviews_of_anybody_are_judged_by_their_outlines_as_they_would_be_whole() {
    hold("reviews", targets::reviews);
}
