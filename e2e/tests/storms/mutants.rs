//! Bugs can be planted in an operator that was built for it, and in no other. That the storm finds them: `cargo xtask storm --mutant NAME`, and
//! docs/track-record.md.

use std::process::Command;

use anyhow::Result;
use e2e::built::Program;

#[test]
fn the_operator_that_ships_takes_no_bugs() -> Result<()> {
    let answer = Command::new(Program::CoreOperator.path()?)
        .arg("--mutant=late-inventory")
        .output()?;
    let said = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(2), "{said}");
    assert!(said.contains("unexpected argument '--mutant'"), "{said}");
    Ok(())
}
