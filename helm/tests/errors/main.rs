//! Errors: what `helm template` of each profile says about what is wrong, recorded in `errors/*.txt`, and the same as data.
//!
//! A case is its name behind `== `, the files of a chart behind `> ` with their lines behind `| `, or the options of the call behind `$ `,
//! and then for each group of profiles that say the same their names and the lines of the error output behind `! `.
//! `STACKWRIGHT_REGENERATE=1` asks the real binaries again and rewrites the answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

mod cases;
mod data;

use std::fmt::Write as _;

use helm::Profile;

/// What the profiles of Helm 4 do not do yet, apart from their words.
const AWAITED: [&str; 5] = [
    "quote without an end",
    "other Kubernetes version by option",
    "unknown field of the chart",
    "lines of an empty file",
    "dig in values",
];

#[test]
fn every_profile_says_what_its_helm_says() {
    let (mut differences, mut count) = (String::new(), 0);
    for path in cases::files() {
        let mut cases = cases::read(&path);
        if std::env::var_os("STACKWRIGHT_REGENERATE").is_some() {
            cases::record(&mut cases);
            cases::write(&path, &cases);
        }
        for case in &cases {
            let is_awaited = AWAITED.contains(&case.name.as_str());
            for profile in Profile::all() {
                if is_awaited && profile.name != "v3.19" {
                    continue;
                }
                count += 1;
                let (ours, theirs) = (case.ours(profile), case.answer(profile.name));
                if ours != theirs {
                    let (name, profile) = (&case.name, profile.name);
                    writeln!(differences, "{name} ({profile})\n--- helm\n{theirs}\n--- ours\n{ours}").unwrap();
                }
            }
        }
    }
    assert!(
        differences.is_empty(),
        "of {count} answers these differ:\n{differences}"
    );
    assert!(count >= 400, "only {count} answers were found");
}
