//! In copies of the workspace: what is made compiles, holds and runs, and what cannot be made leaves nothing.

mod page;

use std::{
    collections::BTreeMap,
    env,
    io::{Write, stderr},
};

use super::*;

/// What only a run of everything sets (`cargo xtask test`).
const EVERYTHING: &str = "STACKWRIGHT_CALLS";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder)
        .args(["-c", "user.name=test", "-c", "user.email=test@example.com"]);
    let answer = git.args(arguments).output().expect("git runs");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8_lossy(&answer.stdout).into_owned()
}

fn workspace() -> PathBuf {
    Workspace::find().expect("a workspace").root
}

/// A folder that goes with the test.
struct Copy(PathBuf);

impl Copy {
    /// A copy of these files of the workspace, in the state in which they lie there, as a repository of its own.
    fn of(name: &str, files: &[String]) -> Self {
        let root = workspace();
        let folder = root.join(".lab").join("new-provider").join(name);
        let _ = fs::remove_dir_all(&folder);
        for file in files {
            let target = folder.join(file);
            // Of a file that was deleted git still knows.
            let Ok(bytes) = fs::read(root.join(file)) else { continue };
            fs::create_dir_all(target.parent().expect("a folder")).expect("a folder is made");
            fs::write(target, bytes).expect("a file is written");
        }
        git(&folder, &["init", "--quiet"]);
        git(&folder, &["add", "--all"]);
        git(&folder, &["commit", "--quiet", "--message", "Begin"]);
        Self(folder)
    }

    /// Of the files that are changed alone.
    fn small(name: &str) -> Self {
        let files: Vec<String> = edits::changed_files().map(str::to_owned).collect();
        Self::of(name, &files)
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let listed = git(&self.0, &["ls-files", "--cached", "--others"]);
        let read = |file: &str| (file.to_owned(), fs::read(self.0.join(file)).expect("a file"));
        listed.lines().map(read).collect()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn acme() -> Name {
    Name::parse("acme", None).expect("a name")
}

#[test]
fn a_second_provider_of_the_name_and_a_dirty_tree_are_refused_with_nothing_written() {
    let copy = Copy::small("refused");
    let before = copy.files();
    fs::create_dir_all(copy.0.join("crds/src/providers")).expect("a folder");
    fs::write(copy.0.join("crds/src/providers/acme.rs"), "").expect("a file");
    let error = generate(&copy.0, &acme()).expect_err("it is there");
    assert!(error.to_string().contains("already"), "{error}");
    fs::remove_file(copy.0.join("crds/src/providers/acme.rs")).expect("it goes");

    let dirty = copy.0.join("provider-operator/src/kinds.rs");
    let clean = fs::read(&dirty).expect("a file");
    fs::write(&dirty, "// mine\n").expect("a file");
    let error = generate(&copy.0, &acme()).expect_err("it is dirty");
    assert!(error.to_string().contains("provider-operator/src/kinds.rs"), "{error}");
    fs::write(&dirty, clean).expect("a file");
    assert_eq!(copy.files(), before);
}

#[test]
fn a_file_that_is_not_as_expected_or_cannot_be_written_changes_none() {
    let copy = Copy::small("changed");
    let rooms = copy.0.join("e2e/tests/architecture.rs");
    let text = fs::read_to_string(&rooms).expect("a file");
    // The last of the files that are changed.
    fs::write(
        &rooms,
        text.replace("name: \"provider-filestore\"", "name: \"provider-files\""),
    )
    .expect("a file");
    git(&copy.0, &["commit", "--quiet", "--all", "--message", "Change"]);
    let before = copy.files();
    let error = generate(&copy.0, &acme()).expect_err("a place is missing");
    assert!(error.to_string().contains("e2e/tests/architecture.rs"), "{error}");
    assert_eq!(copy.files(), before);

    fs::write(&rooms, text).expect("a file");
    git(&copy.0, &["commit", "--quiet", "--all", "--message", "Back"]);
    let before = copy.files();
    // Where a folder is to be there is a file: the new ones come after those that are changed.
    fs::write(copy.0.join("provider-operator/providers"), "").expect("a file");
    let error = generate(&copy.0, &acme()).expect_err("a folder cannot be made");
    assert!(matches!(error, NewProviderError::Write { .. }), "{error}");
    fs::remove_file(copy.0.join("provider-operator/providers")).expect("it goes");
    assert_eq!(copy.files(), before);
}

#[test]
fn two_providers_can_be_made_one_after_the_other() {
    let copy = Copy::small("two");
    generate(&copy.0, &acme()).expect("the first");
    git(&copy.0, &["add", "--all"]);
    git(&copy.0, &["commit", "--quiet", "--message", "Add a provider"]);
    let other = Name::parse("opennebula", Some("OpenNebula")).expect("a name");
    generate(&copy.0, &other).expect("the second");
    let definitions = fs::read_to_string(copy.0.join("crds/src/providers.rs")).expect("a file");
    for line in [
        "Self::Acme => &DEFINITIONS[3],",
        "Self::OpenNebula => &DEFINITIONS[4],",
        "[Definition; 5]",
    ] {
        assert!(definitions.contains(line), "{line} is not in {definitions}");
    }
}

/// The compiled crates of others, in a folder for a build of the copy: the features of all crates are those of the workspace, so that cargo takes them as
/// they are. What is of the workspace cargo knows by the same name in both, and would take that of the copy for its own: it stays where it is.
fn borrow_dependencies(workspace: &Workspace, target: &Path) {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(workspace.root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo knows the workspace");
    let ours: Vec<String> = metadata
        .packages
        .iter()
        .map(|package| format!("{}-", package.name))
        .collect();
    let is_ours = |name: &str| {
        let name = name.strip_prefix("lib").unwrap_or(name).replace('_', "-");
        ours.iter().any(|ours| {
            name.strip_prefix(ours.as_str())
                .is_some_and(|hash| hash.len() >= 16 && !hash[..16].contains('-'))
        })
    };
    let link = |from: &Path, to: &Path| fs::hard_link(from, to).expect("a file is linked");
    // Cargo writes into these files as they lie there.
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).expect("a file is copied");
    };
    for (folder, borrow) in [
        ("deps", &link as &dyn Fn(&Path, &Path)),
        ("build", &link),
        (".fingerprint", &copy),
    ] {
        let (from, to) = (workspace.built("debug").join(folder), target.join("debug").join(folder));
        borrow_folder(&from, &to, &is_ours, borrow);
    }
}

fn borrow_folder(from: &Path, to: &Path, is_ours: &dyn Fn(&str) -> bool, borrow: &dyn Fn(&Path, &Path)) {
    fs::create_dir_all(to).expect("a folder is made");
    for entry in fs::read_dir(from).expect("a folder of cargo") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_ours(&name) {
            continue;
        }
        let target = to.join(&name);
        if path.is_dir() {
            borrow_folder(&path, &target, &|_| false, borrow);
        } else if !path.is_symlink() {
            borrow(&path, &target);
        }
    }
}

#[test]
fn the_page_about_providers_has_the_names_of_what_is_generated() {
    let workspace = Workspace::find().expect("a workspace");
    let page = page::page(&workspace);
    assert_eq!(page::made_up(&page, &workspace), Vec::<String>::new());
    let name = page::name_on(&page);
    let wrong = name.fill("`crds/src/{{name}}.rs` has `{{Prefix}}ImageRelease`");
    let expected = ["crds/src/{{name}}.rs", "{{Prefix}}ImageRelease"].map(|word| name.fill(word));
    assert_eq!(page::made_up(&format!("{page}\n{wrong}\n"), &workspace), expected);
}

/// In a copy of the whole workspace, with what is compiled of others.
#[test]
fn a_generated_provider_compiles_passes_its_suite_and_conforms_as_the_page_has_it_run() {
    if env::var_os(EVERYTHING).is_none() {
        let said = "REDUCED: no provider is generated and compiled: only cargo xtask test of everything does that\n";
        stderr().write_all(said.as_bytes()).expect("standard error");
        return;
    }
    let workspace = Workspace::find().expect("a workspace");
    let listed = git(
        &workspace.root,
        &["ls-files", "--cached", "--others", "--exclude-standard"],
    );
    let copy = Copy::of("whole", &listed.lines().map(str::to_owned).collect::<Vec<_>>());
    generate(&copy.0, &acme()).expect("it is generated");
    let target = copy.0.join("target");
    borrow_dependencies(&workspace, &target);
    let cargo = |arguments: &[&str]| {
        let mut cargo = workspace.cargo();
        cargo.current_dir(&copy.0).env("CARGO_TARGET_DIR", &target);
        cargo
            .env("STACKWRIGHT_REGENERATE", "1")
            .env_remove(EVERYTHING)
            .args(arguments);
        let answer = cargo.output().expect("cargo runs");
        let told = [answer.stdout, answer.stderr].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(answer.status.success(), "{arguments:?}: {told}");
        told
    };
    cargo(&["fmt", "--all"]);
    let tests = [
        "--test",
        "suite_of_acme",
        "--test",
        "generated",
        "--test",
        "providers",
        "--test",
        "objects",
        "--test",
        "architecture",
    ];
    let told = cargo(&[&["test", "--workspace"], &tests[..]].concat());
    assert!(told.contains("test create_is_once ... ok"), "{told}");
    assert!(copy.0.join("crds/providers/acme").is_dir(), "its manifests are there");
    let told = cargo(&["test", "--workspace", "--bin", "provider-operator", "registry"]);
    assert!(
        told.contains("test registry::tests::only_those_are_served_that_are_chosen ... ok"),
        "{told}"
    );
    // With all providers the operator was compiled for its tests: with this one alone it uses nothing of the others. A test is among the targets so that
    // all other features are those of what is compiled already.
    let alone = [
        "--no-default-features",
        "--features",
        "provider-operator/acme,helm/command",
    ];
    let programs = ["--test", "architecture", "--bin", "provider-operator", "--bin", "lab"];
    cargo(&[&["build", "--workspace"], &alone[..], &programs[..]].concat());
    let found = page::type_in(&copy.0, &target.join("debug"), &workspace, &acme());
    let rows = found["rows"].as_array().expect("rows");
    let outcomes = rows.iter().map(|row| (row["id"].as_str(), row["outcome"].as_str()));
    let not_passed: Vec<_> = outcomes.filter(|(_, outcome)| *outcome != Some("passed")).collect();
    // On the page nobody makes an image unusable, and there is no second release.
    let not_shown = ["M7", "S3"].map(|id| (Some(id), Some("notShown")));
    assert_eq!(not_passed, not_shown, "{found:#}");
}
