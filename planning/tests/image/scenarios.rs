//! Golden scenarios: `tests/image/scenarios/*.txt` are scripts, and the `.golden` beside each says what was done after every command.
//!
//! `STACKWRIGHT_REGENERATE=1 cargo test -p planning --test image` writes the golden files anew; the diff is what a reviewer reads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::World;
use crate::world::object::Spec;

/// Without the looks that change nothing: what is waited for is said once.
fn without_repetition(told: &[String]) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut looks = Vec::new();
    let mut waits_for = "";
    for line in told {
        let (_, what) = line.trim_start().split_once(": ").unwrap_or_default();
        match what {
            "looks" => looks.push(line.as_str()),
            "notes Looked" => {}
            _ if line == waits_for => looks.clear(),
            _ => {
                lines.append(&mut looks);
                lines.push(line);
                let is_idle = ["waits", "rests", "holds"].iter().any(|word| what.starts_with(word));
                waits_for = if is_idle { line } else { "" };
            }
        }
    }
    lines.append(&mut looks);
    lines
}

fn play(script: &str) -> String {
    let mut world: Option<World> = None;
    let mut text = String::new();
    for line in script.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            text.extend([line, "\n"]);
            continue;
        }
        if let Some(spec) = line.strip_prefix("object") {
            text.extend(["> ", line, "\n"]);
            let (spec, silent) = match spec.strip_suffix("in a cloud without sha512") {
                Some(spec) => (spec, true),
                None => (spec, false),
            };
            world = Some(World::new(Spec::of(spec), !silent));
            continue;
        }
        let world = world.as_mut().expect("an object first");
        world.command(line);
        let told: Vec<String> = world.log.drain(..).collect();
        for line in without_repetition(&told) {
            text.extend([line, "\n"]);
        }
        assert_eq!(world.violations, Vec::<String>::new(), "after\n{text}");
    }
    text
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/image/scenarios")
}

fn scripts() -> Vec<PathBuf> {
    let mut scripts: Vec<PathBuf> = fs::read_dir(folder())
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
    let scripts = scripts();
    let golden = scripts
        .iter()
        .filter(|script| script.with_extension("golden").exists())
        .count();
    let files = fs::read_dir(folder()).expect("the folder of scenarios").count();
    assert_eq!((golden * 2, golden), (files, scripts.len()));
}
