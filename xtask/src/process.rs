//! A command as a person would type it. Starts nothing.

use std::{borrow::Cow, ffi::OsStr, path::Path, process::Command};

/// The line for a shell that repeats `command`: folder, variables set on purpose, program, arguments.
pub(crate) fn command_line(command: &Command) -> String {
    let folder = command
        .get_current_dir()
        .map(|folder| format!("cd {} &&", quoted(folder.as_os_str())));
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(value))));
    let program = program(command.get_program()).into_owned();
    let arguments = command.get_args().map(|argument| quoted(argument).into_owned());
    folder
        .into_iter()
        .chain(variables)
        .chain([program])
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Cargo hands its children the absolute path of one toolchain's binary; a person types `cargo`.
fn program(program: &OsStr) -> Cow<'_, str> {
    if Path::new(program).file_stem() == Some(OsStr::new("cargo")) {
        "cargo".into()
    } else {
        quoted(program)
    }
}

fn quoted(word: &OsStr) -> Cow<'_, str> {
    let word = word.to_string_lossy();
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,@+%".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("/opt/toolchain/bin/cargo");
        command
            .current_dir("/a checkout")
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(["doc", "it's"]);
        assert_eq!(
            command_line(&command),
            r"cd '/a checkout' && RUSTDOCFLAGS='-D warnings' cargo doc 'it'\''s'"
        );
    }
}
