//! The reference of an operator's flags, as a file of the documentation: their help. For the tests of operators; nothing that ships has it.

use std::path::Path;
use std::{env, fs, io};

use clap::Command;

/// Columns of the help: more than a terminal may have, fewer than a page of the documentation.
const WIDTH: usize = 100;

/// The reference is not the help.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// It cannot be read.
    #[error("failed to read the reference")]
    Read(#[source] io::Error),
    /// It cannot be written.
    #[error("failed to write the reference")]
    Write(#[source] io::Error),
    /// It says something else.
    #[error("not as generated\nrun: STACKWRIGHT_REGENERATE=1 cargo test -p {program} the_reference\n{generated}")]
    Compare {
        /// Whose flags they are; its room has the same name.
        program: String,
        /// What it is to say.
        generated: String,
    },
}

/// Whether a file is the reference of a command's flags. With `STACKWRIGHT_REGENERATE=1` in the environment it is written first.
pub fn check_reference(command: Command, file: &Path) -> Result<(), ReferenceError> {
    let program = command.get_name().to_owned();
    let generated = reference(command);
    if env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|value| value == "1") {
        fs::write(file, &generated).map_err(ReferenceError::Write)?;
    }
    let written = fs::read_to_string(file).map_err(ReferenceError::Read)?;
    if written == generated {
        Ok(())
    } else {
        Err(ReferenceError::Compare { program, generated })
    }
}

fn reference(command: Command) -> String {
    let program = command.get_name().to_owned();
    let help = command.term_width(WIDTH).render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!(
        "# Flags of {program}\n\n<!-- Generated from `{program} --help`; do not edit. -->\n\n```text\n{}\n```\n",
        lines.join("\n").trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_that_says_something_else_is_told_with_what_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("operator.md");
        let command = || Command::new("operator").about("Operates.");
        assert!(matches!(
            check_reference(command(), &file),
            Err(ReferenceError::Read(_))
        ));
        fs::write(&file, reference(command())).unwrap();
        assert!(check_reference(command(), &file).is_ok());
        let error = check_reference(command().about("Rests."), &file)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cargo test -p operator") && error.contains("Rests."),
            "{error}"
        );
    }
}
