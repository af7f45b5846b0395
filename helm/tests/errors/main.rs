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
            for profile in Profile::all() {
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
