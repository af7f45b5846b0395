//! `cargo xtask new-provider NAME`: a crate that passes the suite of all providers, kinds for it, and the lines by which everything else knows it.
//!
//! Works out every file before it writes the first; what cannot be written is undone. What stands where is in [`edits`].

mod edits;
mod name;
mod text;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use self::name::{Name, NameError};
use crate::{regenerate, screen, step::Step, workspace::Workspace};

/// Who is to be made.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The word for it in flags, crates and metrics: small letters and digits, such as opennebula
    name: String,
    /// The same as kinds begin with it, such as `OpenNebula`; without this, the first letter is a capital
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
}

/// Nothing was written, unless it is said otherwise.
#[derive(Debug, thiserror::Error)]
enum NewProviderError {
    #[error("unable to use this name")]
    Name(#[source] NameError),
    #[error("there is a provider {name} already: {path} is there")]
    There { name: String, path: String },
    #[error(
        "these files have changes that are not committed: {files}; commit them or put them back, so that what is added can be seen"
    )]
    Dirty { files: String },
    #[error("unable to ask git whether files have changes: {words}")]
    AskGit { words: String },
    #[error("unable to read {path}")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("{path} is not as it was when this chore was written; nothing was changed")]
    Change {
        path: String,
        #[source]
        source: text::PlaceError,
    },
    #[error("unable to write {path}; all other files are as they were")]
    Write {
        path: String,
        #[source]
        source: io::Error,
    },
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let name = match Name::parse(&arguments.name, arguments.prefix.as_deref()) {
        Ok(name) => name,
        Err(error) => {
            screen::failure(&anyhow::Error::new(NewProviderError::Name(error)));
            return Ok(ExitCode::from(2));
        }
    };
    let written = generate(&workspace.root, &name)?;
    let mut format = workspace.cargo();
    format.args(["fmt", "--all"]);
    Step::new(workspace, "format what is new", format)
        .silent_when_quick()
        .run()?;
    regenerate::manifests(workspace)?;
    screen::say(&next(&name, written.len()));
    Ok(ExitCode::SUCCESS)
}

/// Writes everything that is written by hand otherwise, and nothing when any of it cannot be; the answer is the paths.
fn generate(root: &Path, name: &Name) -> Result<Vec<String>, NewProviderError> {
    for (path, _) in edits::new_files(name) {
        if root.join(&path).exists() {
            let name = name.word.clone();
            return Err(NewProviderError::There { name, path });
        }
    }
    are_clean(root)?;
    let mut files: Vec<(String, String)> = Vec::new();
    for path in edits::changed_files() {
        let text = fs::read_to_string(root.join(path)).map_err(|source| NewProviderError::Read {
            path: path.to_owned(),
            source,
        })?;
        let changed = edits::changed(path, &text, name).map_err(|source| NewProviderError::Change {
            path: path.to_owned(),
            source,
        })?;
        files.push((path.to_owned(), changed));
    }
    files.extend(edits::new_files(name));
    write_all(root, &files)?;
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// What was there before can be had back from git only if git has it.
fn are_clean(root: &Path) -> Result<(), NewProviderError> {
    let mut git = Command::new("git");
    git.current_dir(root)
        .args(["status", "--porcelain", "--"])
        .args(edits::changed_files());
    let words = |words: &dyn std::fmt::Display| NewProviderError::AskGit {
        words: words.to_string(),
    };
    let answer = git.output().map_err(|error| words(&error))?;
    if !answer.status.success() {
        return Err(words(&String::from_utf8_lossy(&answer.stderr).trim()));
    }
    let told = String::from_utf8_lossy(&answer.stdout);
    let files: Vec<&str> = told.lines().filter_map(|line| line.get(3..)).collect();
    if files.is_empty() {
        return Ok(());
    }
    Err(NewProviderError::Dirty {
        files: files.join(", "),
    })
}

/// Writes all, or puts back what was written.
fn write_all(root: &Path, files: &[(String, String)]) -> Result<(), NewProviderError> {
    let mut before: Vec<(PathBuf, Option<Vec<u8>>)> = Vec::new();
    for (path, text) in files {
        let target = root.join(path);
        let there = fs::read(&target).ok();
        let made = target.parent().map_or(Ok(()), fs::create_dir_all);
        before.push((target.clone(), there));
        if let Err(source) = made.and_then(|()| fs::write(&target, text)) {
            put_back(root, &before);
            let path = path.clone();
            return Err(NewProviderError::Write { path, source });
        }
    }
    Ok(())
}

fn put_back(root: &Path, before: &[(PathBuf, Option<Vec<u8>>)]) {
    for (path, bytes) in before {
        // There is nobody to tell of a second failure: git shows what is left.
        let _ = match bytes {
            Some(bytes) => fs::write(path, bytes),
            None => fs::remove_file(path),
        };
        if bytes.is_none() {
            let folders = path.ancestors().skip(1).take_while(|folder| *folder != root);
            // Only those that are empty go.
            for folder in folders {
                if fs::remove_dir(folder).is_err() {
                    break;
                }
            }
        }
    }
}

/// What whoever made it does now.
fn next(name: &Name, files: usize) -> String {
    name.fill(&format!(
        "{{{{Prefix}}}} is there, with its images in memory: {files} files, and what is generated from them.\n\n\
         1. See it:     git status --short && git diff\n\
         2. Test it:    cargo test -p provider-{{{{name}}}}\n\
         3. Run it:     cargo run -p provider-operator -- --providers {{{{name}}}} --local --release-dir ~/releases --leader-elect=false\n\
         4. Make it yours, the suite green all the time:\n   \
            - provider-operator/providers/{{{{name}}}}/src/store.rs: one method after the other, from memory to the cloud\n   \
            - crds/src/providers/{{{{name}}}}.rs: what users write; afterwards cargo xtask regenerate\n   \
            - docs/architecture.md: its row among the rooms\n\
         5. Hold it against the contract: cargo xtask conformance-provider --help\n\n\
         docs/how-to/new-provider.md walks through it.",
    ))
}

#[cfg(test)]
mod tests;
