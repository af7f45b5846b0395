//! Small charts: what `helm template` of each profile makes of them, recorded in `small_charts/*.txt`. Its errors are also held as data.
//!
//! A case is its name behind `== `; the files of a chart behind `> ` with their lines behind `| `, or behind `\ ` with the escapes of JSON
//! and no end of their own; the options of the call behind `$ `, the user's values behind `< `; and then for each group of profiles that
//! say the same their names, the lines of the output behind `= `, of the error behind `! `, and the warnings about values behind `~ `.
//! Files before the first case are in the charts of all cases that have no such file. `STACKWRIGHT_REGENERATE=1` asks the real binaries
//! again and rewrites the answers; the name of a file instead of `1` rewrites those of that file alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

mod cases;
mod data;
mod differences;

use cases::Recorded;

#[test]
fn every_profile_says_what_its_helm_says() {
    let (mut differences, mut count) = (String::new(), 0);
    let wanted = std::env::var_os("STACKWRIGHT_REGENERATE");
    for path in cases::files() {
        let mut cases = Recorded::read(&path);
        if wanted
            .as_ref()
            .is_some_and(|wanted| wanted == "1" || path.file_name() == Some(wanted))
        {
            cases.record();
        }
        count += cases.cases.len();
        differences.extend(cases.differences());
    }
    assert!(
        differences.is_empty(),
        "of {count} charts these are answered otherwise:\n{differences}"
    );
    assert!(count >= 600, "only {count} charts were found");
}
