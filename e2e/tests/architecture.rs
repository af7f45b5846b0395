//! The rules of the house that a compiler does not know: who may depend on whom, what a room may touch, how manifests and files look.
//!
//! Arrows and manifests are read with `cargo metadata`. What a room brings along is read with `cargo tree`, because metadata has the features
//! of all rooms mixed: there, `crds` would seem to bring the Kubernetes client that `operator-kit` asks for.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What one room may depend on and what it may not bring along.
struct Room {
    name: &'static str,
    /// Other rooms that it may name; everything else of ours is refused.
    rooms: &'static [&'static str],
    /// Crates that must not be among its dependencies, however deep.
    without: &'static [&'static str],
    /// Nothing but computing: see [`IMPURE`]. Only a program in `src/bin` may touch the world, and what it needs for that comes with a
    /// default feature, which rooms that use the library leave out.
    pure: bool,
}

/// An async runtime, a network stack, a Kubernetes client.
const WORLD: &[&str] = &[
    "tokio",
    "hyper",
    "reqwest",
    "kube-client",
    "kube-runtime",
    "rand",
    "getrandom",
];
/// The same, and the Kubernetes types too: a library of its own worth.
const WORLD_AND_KUBE: &[&str] = &[
    "tokio",
    "hyper",
    "reqwest",
    "kube-client",
    "kube-runtime",
    "kube-core",
    "kube",
    "k8s-openapi",
    "rand",
    "getrandom",
];

/// From the bottom up. A member of the workspace that is not here fails the first test.
const ROOMS: &[Room] = &[
    Room {
        name: "crds",
        rooms: &[],
        without: WORLD,
        pure: true,
    },
    Room {
        name: "planning",
        rooms: &["crds"],
        without: WORLD,
        pure: true,
    },
    Room {
        name: "expressions",
        rooms: &[],
        without: WORLD_AND_KUBE,
        pure: true,
    },
    Room {
        name: "helm",
        rooms: &[],
        without: WORLD_AND_KUBE,
        pure: true,
    },
    // Compares with the real Helm and measures; nothing ships that depends on it.
    Room {
        name: "helm-oracle",
        rooms: &["helm", "rendering"],
        without: &["tokio", "hyper"],
        pure: false,
    },
    // Starts and bounds processes; what they do is not its business.
    Room {
        name: "isolation",
        rooms: &[],
        without: &["tokio", "hyper", "tera", "kube-core", "k8s-openapi"],
        pure: false,
    },
    Room {
        name: "rendering",
        rooms: &["crds", "helm", "isolation"],
        without: WORLD,
        pure: true,
    },
    // Files and threads; what is in the files is not its business.
    Room {
        name: "storage",
        rooms: &[],
        without: &["hyper", "kube-core", "k8s-openapi"],
        pure: false,
    },
    Room {
        name: "release",
        rooms: &["crds", "expressions", "storage"],
        without: &["kube-client", "kube-runtime"],
        pure: false,
    },
    Room {
        name: "operator-kit",
        rooms: &["crds", "planning", "storage"],
        without: &["tera", "libyaml-safer"],
        pure: false,
    },
    // Makes what can be asked; asks nothing of it by itself.
    Room {
        name: "sourcing",
        rooms: &["crds", "storage", "release", "operator-kit"],
        without: &["tera", "libyaml-safer"],
        pure: false,
    },
    Room {
        name: "core-operator",
        rooms: &[
            "crds",
            "planning",
            "expressions",
            "rendering",
            "release",
            "operator-kit",
            "sourcing",
        ],
        without: &[],
        pure: false,
    },
    // What every provider of node images is asked for: no cloud, no network of its own.
    Room {
        name: "provider-plugin",
        rooms: &[],
        without: &["hyper", "reqwest", "rustls", "kube-core", "kube-client", "k8s-openapi"],
        pure: false,
    },
    Room {
        name: "provider-filestore",
        rooms: &["provider-plugin", "storage"],
        without: &["hyper", "reqwest", "kube-core", "k8s-openapi"],
        pure: false,
    },
    // Says what is asked of a registry; how one is asked is the operator's part.
    Room {
        name: "provider-docker",
        rooms: &["provider-plugin"],
        without: &["hyper", "reqwest", "rustls", "kube-core", "k8s-openapi"],
        pure: false,
    },
    Room {
        name: "provider-openstack",
        rooms: &["provider-plugin"],
        without: &["kube-core", "kube-client", "k8s-openapi", "octocrab"],
        pure: false,
    },
    Room {
        name: "provider-operator",
        rooms: &[
            "crds",
            "planning",
            "storage",
            "release",
            "operator-kit",
            "sourcing",
            "provider-plugin",
            "provider-docker",
            "provider-filestore",
            "provider-openstack",
        ],
        without: &["tera", "libyaml-safer"],
        pure: false,
    },
    Room {
        name: "cli",
        rooms: &["crds", "planning", "rendering", "release", "operator-kit"],
        without: &[],
        pure: false,
    },
    // Drives the built binaries from outside; their code would let a test reach what a user cannot.
    Room {
        name: "e2e",
        rooms: &["crds", "openstack-lab"],
        without: &[],
        pure: false,
    },
    // A cloud to test against, and what holds for it; its own client, because a mistake that is shared is not seen.
    Room {
        name: "openstack-lab",
        rooms: &[],
        without: &["reqwest", "kube-core", "k8s-openapi"],
        pure: false,
    },
    // Compiled before anything else happens on a new machine.
    Room {
        name: "xtask",
        rooms: &[],
        without: &["tokio", "hyper", "kube-core", "k8s-openapi"],
        pure: false,
    },
];

/// Arrows that only tests have: recorded decisions are made again by the pure room that made them, and whoever works on a cloud is held against one.
const ARROWS_OF_TESTS: &[(&str, &str)] = &[
    ("e2e", "planning"),
    ("e2e", "openstack-lab"),
    ("provider-openstack", "openstack-lab"),
    ("provider-operator", "openstack-lab"),
];

/// Paths by which code reaches files, environment, network, processes, the clock, or waits.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "async fn",
    ".await",
];

/// Names that say nothing about what lies behind them.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "manager", "misc", "base", "handler",
];

const LONGEST_FILE: usize = 500;

/// Lines of code between the braces.
const LONGEST_FUNCTION: usize = 60;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the room lies in the workspace")
        .to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata")
}

fn room(package: &Package) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == package.name.as_str())
}

#[test]
fn every_member_of_the_workspace_is_a_room_with_rules() {
    let members: BTreeSet<_> = metadata()
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let rooms: BTreeSet<_> = ROOMS.iter().map(|room| room.name.to_owned()).collect();
    assert_eq!(
        members, rooms,
        "left: members of the workspace, right: rooms with rules in this file"
    );
}

#[test]
fn arrows_between_rooms_do_not_turn_round() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(room) = room(package) else { continue };
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some())
        {
            let arrow = (room.name, dependency.name.as_str());
            let of_tests = dependency.kind == DependencyKind::Development && ARROWS_OF_TESTS.contains(&arrow);
            if !of_tests && !room.rooms.contains(&dependency.name.as_str()) {
                wrong.push(format!("{} depends on {}", room.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rooms_do_not_bring_what_they_may_not_touch() {
    let wrong: Vec<_> = ROOMS
        .iter()
        .flat_map(|room| {
            let brought = brought_along(room.name, room.pure);
            assert!(
                brought.contains(room.name),
                "cargo tree says nothing about {}",
                room.name
            );
            room.without
                .iter()
                .filter(move |name| brought.contains(**name))
                .map(|name| {
                    format!(
                        "{} brings {name}: cargo tree -p {} -e normal -i {name}",
                        room.name, room.name
                    )
                })
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What says whether a signature is good must not be able to ask somebody.
#[test]
fn verification_of_signatures_brings_no_network() {
    let brought = brought_along("sigstore-verify", false);
    assert!(brought.contains("sigstore-crypto"), "{brought:?}");
    let network: Vec<_> = ["tokio", "mio", "socket2", "hyper", "reqwest", "ureq", "rustls", "tough"]
        .into_iter()
        .filter(|name| brought.contains(*name))
        .collect();
    assert!(
        network.is_empty(),
        "sigstore-verify brings {network:?}; leave out its features tuf and rustls"
    );
}

/// The names of all crates that are linked into a package when it is built alone; into the library without its program, when that is asked for.
fn brought_along(package: &str, is_library: bool) -> BTreeSet<String> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root())
        .args([
            "tree",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            package,
        ])
        .args(is_library.then_some("--no-default-features"))
        .output()
        .expect("cargo tree");
    assert!(
        output.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("cargo tree writes UTF-8");
    text.lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn users_of_pure_rooms_leave_out_what_their_programs_need() {
    let metadata = metadata();
    let members = metadata.workspace_packages();
    let has_programs = |name: &str| {
        let mut pure = members
            .iter()
            .filter(|package| room(package).is_some_and(|room| room.pure));
        pure.any(|package| package.name.as_str() == name && package.features.contains_key("default"))
    };
    let wrong: Vec<_> = members
        .iter()
        .flat_map(|package| package.dependencies.iter().map(move |dependency| (package, dependency)))
        .filter(|(_, dependency)| has_programs(&dependency.name) && dependency.uses_default_features)
        .map(|(package, dependency)| format!("{} takes {} with default features", package.name, dependency.name))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rendering_is_the_only_caller_of_helm_that_ships() {
    let metadata = metadata();
    let callers: BTreeSet<_> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| package.dependencies.iter().any(|dependency| dependency.name == "helm"))
        .map(|package| package.name.as_str())
        .collect();
    assert_eq!(callers, BTreeSet::from(["helm-oracle", "rendering"]));
}

#[test]
fn kubernetes_types_of_one_version_for_all_rooms() {
    let metadata = metadata();
    let chosen: Vec<_> = metadata
        .workspace_packages()
        .into_iter()
        .flat_map(|package| package.dependencies.iter().map(move |dependency| (package, dependency)))
        .filter(|(_, dependency)| dependency.name == "k8s-openapi" && dependency.kind == DependencyKind::Normal)
        .map(|(package, dependency)| {
            let versions: Vec<_> = dependency
                .features
                .iter()
                .filter(|feature| feature.starts_with("v1_"))
                .collect();
            assert_eq!(versions.len(), 1, "{} asks for {versions:?}", package.name);
            versions[0].clone()
        })
        .collect();
    assert!(chosen.windows(2).all(|pair| pair[0] == pair[1]), "{chosen:?}");
}

#[test]
fn every_manifest_takes_lints_and_dependencies_from_the_workspace() {
    let mut wrong = Vec::new();
    for package in metadata().workspace_packages() {
        let manifest = fs::read_to_string(&package.manifest_path).expect("the manifest of a member");
        let mut section = "";
        let mut lints = false;
        for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
            } else if section == "[lints]" {
                lints |= line == "workspace = true";
            } else if let Some((name, value)) = line.split_once('=').filter(|_| section.ends_with("dependencies]")) {
                let (name, value) = (name.trim(), value.trim());
                if !(name.ends_with(".workspace") && value == "true" || value.starts_with("{ workspace = true")) {
                    wrong.push(format!("{}: {line}", package.manifest_path));
                }
            }
        }
        if !lints {
            wrong.push(format!("{}: no [lints] workspace = true", package.manifest_path));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Its code is not even compiled without the feature, so that it is enough to know who asks for that.
#[test]
fn nothing_enables_the_bugs_that_can_be_planted() {
    const FEATURE: &str = "mutants";
    let mut wrong = Vec::new();
    for package in metadata().workspace_packages() {
        for (name, brought) in &package.features {
            let brings = brought
                .iter()
                .any(|feature| feature == FEATURE || feature.ends_with("/mutants"));
            if name != FEATURE && brings {
                wrong.push(format!("{}: the feature {name}", package.name));
            }
        }
        let asked = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.features.iter().any(|name| name == FEATURE));
        wrong.extend(asked.map(|dependency| format!("{}: the dependency {}", package.name, dependency.name)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pure_rooms_touch_no_file_no_clock_no_environment_and_no_network() {
    let mut wrong = Vec::new();
    for package in metadata().workspace_packages() {
        if !room(package).is_some_and(|room| room.pure) {
            continue;
        }
        for source in sources(package).iter().filter(|source| !source.is_program()) {
            for (number, line) in source.code() {
                wrong.extend(
                    IMPURE
                        .iter()
                        .filter(|word| line.contains(**word))
                        .map(|word| source.at(number, &format!("uses {word}"))),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// No shell, no helm, no git: what a release says can start nothing but the operator itself, in a process of its own.
#[test]
fn f41_only_isolation_starts_a_process() {
    let mut wrong = Vec::new();
    for package in metadata().workspace_packages() {
        if ["isolation", "helm-oracle", "e2e", "openstack-lab", "xtask"].contains(&package.name.as_str()) {
            continue;
        }
        for source in sources(package) {
            for (number, line) in source.code() {
                if ["process::Command", "Command::new", "fork(", "execve"]
                    .iter()
                    .any(|word| line.contains(word))
                {
                    wrong.push(source.at(number, "starts a process"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_are_short_enough_to_be_read_at_once() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        let length = source.without_tests().count();
        if length > LONGEST_FILE {
            wrong.push(format!(
                "{}: {length} lines without tests, split it by decision",
                source.path.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn functions_are_short_enough_to_be_read_at_once() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        for (line, length) in source.functions() {
            if length > LONGEST_FUNCTION {
                wrong.push(source.at(line, &format!("a function of {length} lines, split it by decision")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn modules_say_what_they_are_for_and_have_names_that_say_something() {
    let mut wrong = Vec::new();
    for source in all_sources() {
        if !source.is_test() && !source.text.starts_with("//!") {
            wrong.push(source.at(1, "does not begin with //!"));
        }
        let names = source
            .path
            .iter()
            .map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned());
        wrong.extend(
            names
                .filter(|name| EMPTY_NAMES.contains(&name.as_str()))
                .map(|name| source.at(1, &format!("{name} says nothing"))),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A file of Rust below the `src` of a room.
struct Source {
    /// Seen from the root of the workspace.
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.iter().any(|part| part == "tests")
    }

    /// Part of a program beside the library of its room.
    fn is_program(&self) -> bool {
        self.path
            .iter()
            .zip(self.path.iter().skip(1))
            .any(|parts| parts == ("src".as_ref(), "bin".as_ref()))
    }

    /// Lines without items that are compiled for tests only; a file of tests has none.
    fn without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = self.is_test();
        let mut of_tests = false;
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(move |(_, line)| {
            of_tests |= line.starts_with("#[cfg(test)]");
            let is_counted = !is_test && !of_tests;
            of_tests &= !ends_item(line);
            is_counted
        })
    }

    /// The same without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.without_tests()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The first line of every function, and how many lines its body has. Formatted code closes a body at the depth where it was begun.
    fn functions(&self) -> impl Iterator<Item = (usize, usize)> {
        let lines: Vec<_> = self.code().filter(|(_, line)| !line.trim().is_empty()).collect();
        let starts = (0..lines.len()).filter({
            let lines = lines.clone();
            move |start| {
                let code = lines[*start].1.trim_start();
                code.starts_with("fn ")
                    || (code.starts_with("pub") || code.starts_with("async ") || code.starts_with("const "))
                        && code.contains(" fn ")
            }
        });
        starts.filter_map(move |start| {
            let (number, line) = lines[start];
            let closing = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let rest = &lines[start..];
            let opened = rest.iter().position(|(_, line)| line.ends_with(['{', '}', ';']))?;
            let length = rest[opened..].iter().position(|(_, line)| *line == closing)?;
            rest[opened].1.ends_with('{').then(|| (number, length - 1))
        })
    }

    fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path.display())
    }
}

/// Whether an item at the beginning of a line ends with this one. Formatted code closes it there.
fn ends_item(line: &str) -> bool {
    let is_first = line.starts_with(['}', ')', ']']) || line.starts_with(char::is_alphabetic);
    is_first && line.ends_with(['}', ';'])
}

#[test]
fn only_items_for_tests_are_left_out_whatever_follows_them() {
    let source = Source {
        path: PathBuf::from("core-operator/src/one.rs"),
        text: "//! One.\n\n#[cfg(test)]\nmod tests;\nmod two;\n#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod three;\n\n#[cfg(test)]\n\
               mod four {\n    fn five() {\n    }\n}\n\nfn six(\n    seven: u8,\n) {\n    eight();\n}\n#[cfg(test)]\nfn nine(\n    ten: u8,\n) {\n    \
               eleven();\n}\n#[cfg(test)]\nimpl Twelve {}\n#[cfg(test)]\nconst THIRTEEN: [u8; 1] = [\n    1,\n];\nconst FOURTEEN: u8 = 1;\n"
            .to_owned(),
    };
    let left: Vec<&str> = source.without_tests().map(|(_, line)| line).collect();
    let expected = "//! One.\n\nmod two;\n\n\nfn six(\n    seven: u8,\n) {\n    eight();\n}\nconst FOURTEEN: u8 = 1;";
    assert_eq!(left.join("\n"), expected);
    assert_eq!(source.functions().collect::<Vec<_>>(), [(16, 1)]);
}

fn all_sources() -> Vec<Source> {
    metadata().workspace_packages().into_iter().flat_map(sources).collect()
}

fn sources(package: &Package) -> Vec<Source> {
    let workspace = root();
    let mut found = Vec::new();
    let mut folders = vec![package.manifest_path.with_file_name("src").into_std_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry of a folder of sources").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a file of sources");
                found.push(Source {
                    path: path.strip_prefix(&workspace).expect("below the root").to_owned(),
                    text,
                });
            }
        }
    }
    assert!(!found.is_empty(), "{} has no sources", package.name);
    found
}
