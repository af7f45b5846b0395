//! Golden scenarios: `tests/scenarios/*.txt` are scripts of changes, and the `.golden` beside each says what the plans did after every step.
//!
//! `STACKWRIGHT_REGENERATE=1 cargo test -p planning` writes the golden files anew; the diff is what a reviewer reads.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;

use crate::world::World;

/// Long enough for retries that are seconds apart, too short for those that wait for minutes: a scenario says `wait` for them.
const STEP: SignedDuration = SignedDuration::from_secs(20);

/// Scenarios write `$` for the part that nearly all names begin with.
const STEM: &str = "docker-harbor-1-34-";

fn play(script: &str) -> String {
    let mut world = World::with_kinds();
    let mut text = String::new();
    for line in script.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        let silent = line.strip_suffix('&');
        world.command(&silent.unwrap_or(line).trim().replace('$', STEM));
        text.extend(["> ", line, "\n"]);
        if silent.is_some() {
            // The next change comes before anybody has looked.
            continue;
        }
        world.settle(STEP);
        let lines = world.journal.take();
        for line in &lines {
            text.extend(["    ", &line.replace(STEM, "$"), "\n"]);
        }
        if lines.is_empty() {
            text.push_str("    nothing\n");
        }
    }
    assert_eq!(world.journal.violations, Vec::<String>::new(), "after\n{text}");
    text
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut scripts: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    scripts.sort();
    scripts
}

#[test]
fn every_scenario_goes_as_written() {
    let regenerate = std::env::var_os("STACKWRIGHT_REGENERATE").is_some();
    let mut different = Vec::new();
    for script in scripts() {
        let played = play(&fs::read_to_string(&script).expect("a script"));
        let golden = script.with_extension("golden");
        if regenerate {
            fs::write(&golden, &played).expect("the golden file");
        } else if fs::read_to_string(&golden).unwrap_or_default() != played {
            different.push(format!("{}:\n{played}", script.display()));
        }
    }
    assert!(
        different.is_empty(),
        "STACKWRIGHT_REGENERATE=1 accepts what is right:\n{}",
        different.join("\n")
    );
}

#[test]
fn every_golden_file_has_its_script() {
    let golden = scripts()
        .iter()
        .filter(|script| script.with_extension("golden").exists())
        .count();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files = fs::read_dir(folder).expect("the folder of scenarios").count();
    assert_eq!((golden * 2, golden), (files, scripts().len()));
}
