//! `docs/reference/api.md` is what the generated CRDs say, as tables for people; `docs/reference/reasons.md` is `crds::guide`,
//! `docs/reference/rights.md` the table of the operator's rights.

use std::fmt::Write as _;
use std::{collections::BTreeSet, env, fmt::Display, fs, path::PathBuf};

use crds::{
    cluster_stack::ReleasePhase,
    conditions::{ConditionType, Reason},
    events::Happening,
    guide::{
        CONDITIONS, Entry, HAPPENINGS, HEALTH, IMAGE_CONDITIONS, IMAGE_HAPPENINGS, IMAGE_REASONS, PHASES, REASONS,
        REASONS_OF_LATER_VERSIONS, SYNC,
    },
    manifests::{
        OPERATOR_RIGHTS, OperatorRight, OperatorRole, PROVIDER_OPERATOR_RIGHTS, ProviderOperatorRole, VERBS_OF_OBJECTS,
        custom_resource_definitions, provider_definitions,
    },
    providers::{DEFINITIONS, Provider},
    resource::{Health, SyncStatus},
};
use serde_json::Value;
use strum::IntoEnumIterator;

/// It is among the objects that the API server has to accept.
const EXAMPLE: &str = include_str!("objects/good/stack-example.yaml");

#[test]
fn the_reference_of_the_api_is_the_generated_one() {
    is_the_committed_one("api.md", &reference());
}

#[test]
fn the_reference_of_reasons_is_the_generated_one() {
    is_the_committed_one("reasons.md", &page_of_reasons());
}

#[test]
fn the_reference_of_rights_is_the_generated_one() {
    is_the_committed_one("rights.md", &page_of_rights());
}

fn is_the_committed_one(page: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/reference")
        .join(page);
    if env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|value| value == "1") {
        fs::write(&path, text).expect("the file can be written");
    }
    assert_eq!(
        fs::read_to_string(&path).ok().as_deref(),
        Some(text),
        "not as generated\nrun: STACKWRIGHT_REGENERATE=1 cargo test -p crds --test reference"
    );
}

#[test]
fn every_word_is_explained_once_or_named_as_one_of_later_versions() {
    all_are_in(&[CONDITIONS, IMAGE_CONDITIONS], &[], ConditionType::iter());
    all_are_in(&[REASONS, IMAGE_REASONS], REASONS_OF_LATER_VERSIONS, Reason::iter());
    all_are_in(&[HAPPENINGS, IMAGE_HAPPENINGS], &[], Happening::iter());
    all_are_in(&[SYNC], &[], SyncStatus::iter());
    all_are_in(&[HEALTH], &[], Health::iter());
    all_are_in(&[PHASES], &[], ReleasePhase::iter());
}

fn all_are_in<W: Display + Copy>(entries: &[&[Entry<W>]], later: &[W], words: impl Iterator<Item = W>) {
    let entries: Vec<Entry<W>> = entries.concat();
    let sorted = |words: &mut dyn Iterator<Item = String>| {
        let mut words: Vec<String> = words.collect();
        words.sort();
        words
    };
    let there = entries.iter().map(|entry| entry.word).chain(later.iter().copied());
    assert_eq!(
        sorted(&mut there.map(|word| word.to_string())),
        sorted(&mut words.map(|word| word.to_string()))
    );
    for Entry {
        word,
        means,
        reader,
        operator,
    } in entries
    {
        for text in [means, reader, operator] {
            assert!(text.ends_with('.') && !text.contains("  "), "{word}: {text}");
        }
    }
}

/// What is explained is written somewhere, and what is left for later versions is not: the page promises neither too much nor too little.
#[test]
fn words_that_are_explained_are_those_that_the_operator_writes() {
    let mut written = written_words();
    // Which one a provider's releases have is said by the table of providers.
    written.extend(
        DEFINITIONS
            .iter()
            .map(|definition| format!("ConditionType::{}", definition.images_ready)),
    );
    let all = Reason::iter()
        .map(|word| format!("Reason::{word}"))
        .chain(ConditionType::iter().map(|word| format!("ConditionType::{word}")))
        .chain(Happening::iter().map(|word| format!("Happening::{word}")));
    let explained = REASONS
        .iter()
        .map(|entry| format!("Reason::{}", entry.word))
        .chain(CONDITIONS.iter().map(|entry| format!("ConditionType::{}", entry.word)))
        .chain(HAPPENINGS.iter().map(|entry| format!("Happening::{}", entry.word)))
        .chain(IMAGE_REASONS.iter().map(|entry| format!("Reason::{}", entry.word)))
        .chain(
            IMAGE_CONDITIONS
                .iter()
                .map(|entry| format!("ConditionType::{}", entry.word)),
        )
        .chain(
            IMAGE_HAPPENINGS
                .iter()
                .map(|entry| format!("Happening::{}", entry.word)),
        );
    let is_written = |word: &String| written.contains(word);
    assert_eq!(
        all.filter(is_written).collect::<BTreeSet<_>>(),
        explained.collect::<BTreeSet<_>>()
    );
}

/// `Reason::Drifted` and the like in the code of the rooms that decide and act, without their tests.
fn written_words() -> BTreeSet<String> {
    let word = regex::Regex::new(r"\b(?:Reason|ConditionType|Happening)::[A-Z]\w*").expect("a pattern");
    let mut folders: Vec<PathBuf> = [
        "crds/src/conditions",
        "planning/src",
        "core-operator/src",
        "provider-operator/src",
    ]
    .map(|folder| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(folder))
    .into();
    let mut words = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("the file can be read");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                words.extend(word.find_iter(code).map(|found| found.as_str().to_owned()));
            }
        }
    }
    words
}

fn page_of_rights() -> String {
    let mut text = format!(
        "# What the operators may do\n\n<!-- Generated from the crate crds; do not edit. -->\n\n\
         `kubectl apply -f crds/yaml` brings `ClusterRole`s, which do nothing until they are bound to the operator's service account:\n\n\
         - `{work}` everywhere (a ClusterRoleBinding); with `--namespace` in that namespace alone (a RoleBinding): of others the operator then \
         asks only what the next role says\n\
         - `{everywhere}` everywhere, also with `--namespace`: without the kinds that are served, and the Clusters of all namespaces that use a \
         class, nothing could be deleted safely; and without the names of the releases of all namespaces an object that has no namespace, and that a \
         release left behind, could not be told from one that belongs to a release elsewhere\n\
         - `{leases}` in the namespace of the operator, and `{secrets}` in each namespace whose stacks name Secrets (RoleBindings)\n\
         - `{addons}` where the first one is bound, unless the operator has `--cluster-addons=false`. It names the control planes and infrastructure clusters that are \
         usual; for others the operator needs `get`, `list` and `watch` by a role of its own\n\
         - `{clusters}` in each namespace with Clusters whose add-ons it looks after (RoleBindings): their kubeconfigs are Secrets there, and it asks for Secrets of no other \
         namespace. Who binds it for all namespaces lets the operator read every Secret\n\n\
         In the clusters themselves no role of ours bounds it: there it may what the kubeconfig of Cluster API allows, \
         [usually everything](../how-to/cluster-addons.md#what-the-operator-may-do-in-a-cluster).\n\n\
         They name the kinds that class charts usually have. For each further one, whoever runs the operator gives it a role of \
         its own with the verbs {objects} and `create`; a kind without that is told in the log, and its release does not become ready. \
         With it a release can write such objects in the namespace of its stack, and such as have no namespace: [security.md](../security.md).\n\n\
         Tests hold this against what the operator asks the API server for. It asks for nothing else; what it never asks for although it is \
         here has its reason beside it.\n",
        work = OperatorRole::Work.name(),
        everywhere = OperatorRole::Everywhere.name(),
        leases = OperatorRole::Leases.name(),
        secrets = OperatorRole::Secrets.name(),
        addons = OperatorRole::ClusterAddons.name(),
        clusters = OperatorRole::Clusters.name(),
        objects = in_code(VERBS_OF_OBJECTS),
    );
    for role in OperatorRole::iter() {
        table_of_rights(&mut text, role.name(), OPERATOR_RIGHTS, role);
    }
    write!(
        text,
        "\n## The operator of the providers\n\n\
         `kubectl apply -f crds/providers` brings the `ClusterRole`s of the operator that brings node images, to be bound to its service account in \
         the same way: `{work}` everywhere or in its one namespace, `{everywhere}` everywhere, `{leases}` in its own namespace, and `{secrets}` in \
         each namespace whose images name Secrets. With `--jobs` also `{sight}` everywhere or in its one namespace, and `{jobs}` in each namespace whose \
         images are built or sent by Jobs: whoever may make Jobs reads with them every Secret of the namespace ([security.md](../security.md)). It may work on the kinds of the providers that it knows, and on no other provider's.\n",
        work = ProviderOperatorRole::Work.name(),
        everywhere = ProviderOperatorRole::Everywhere.name(),
        leases = ProviderOperatorRole::Leases.name(),
        secrets = ProviderOperatorRole::Secrets.name(),
        sight = ProviderOperatorRole::SightOfJobs.name(),
        jobs = ProviderOperatorRole::Jobs.name(),
    )
    .expect("a String takes text");
    for role in ProviderOperatorRole::iter() {
        table_of_rights(&mut text, role.name(), PROVIDER_OPERATOR_RIGHTS, role);
    }
    text
}

fn table_of_rights<Role: Copy + PartialEq>(text: &mut String, name: &str, rights: &[OperatorRight<Role>], role: Role) {
    writeln!(
        text,
        "\n## {name}\n\n| group | resources | verbs | what for |\n|---|---|---|---|"
    )
    .expect("a String takes text");
    for right in rights.iter().filter(|right| right.role == role) {
        writeln!(text, "{}", row_of_right(right)).expect("a String takes text");
    }
}

fn row_of_right<Role>(right: &OperatorRight<Role>) -> String {
    let group = if right.group.is_empty() {
        "(core)".to_owned()
    } else {
        format!("`{}`", right.group)
    };
    let mut verbs: Vec<&str> = right.verbs.to_vec();
    verbs.extend(right.unseen.iter().map(|(verb, _)| *verb));
    verbs.sort_unstable();
    let reasons = right
        .unseen
        .iter()
        .map(|(verb, reason)| format!("; `{verb}`: {reason}"));
    format!(
        "| {group} | {} | {} | {}{} |",
        in_code(right.resources),
        in_code(&verbs),
        right.purpose,
        reasons.collect::<String>()
    )
}

fn in_code(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn page_of_reasons() -> String {
    let mut text = "# What the words of a status mean\n\n<!-- Generated from the crate crds; do not edit. -->\n\n\
         Every type and reason of a condition, every reason of an event, and every word in the rows of a status: what it means, what you do, \
         and what the operator does next by itself. [operating.md](operating.md) says where they are seen. Each has an anchor, such as \
         `#reason-drifted`, `#condition-ready`, `#event-driftcorrected`. Messages say besides which object it is about, in the words of \
         whoever refused it.\n\n\
         A condition that does not hold has a severity: `Error` needs somebody, `Warning` may need somebody, `Info` passes by itself.\n"
        .to_owned();
    section(&mut text, "Conditions", "Condition", CONDITIONS, &[]);
    section(&mut text, "Reasons", "Reason", REASONS, REASONS_OF_LATER_VERSIONS);
    text.push_str(
        "\n## Events\n\nWhat conditions say and waiting does not mend is told once more as an event of type Warning with the same reason; of its \
         releases a stack tells only the beginning. Besides:\n",
    );
    entries(&mut text, "Event", HAPPENINGS);
    section(&mut text, "Objects of a release", "Row", SYNC, &[]);
    entries(&mut text, "Health", HEALTH);
    section(&mut text, "Releases of a stack", "Phase", PHASES, &[]);
    text.push_str(
        "\n## Node images\n\nWords on the objects by which a provider brings node images into a cloud. They are written by the [provider operator](provider-operator.md), and by operators of others that keep [the contract](../contract/provider.md).\n",
    );
    entries(&mut text, "Condition", IMAGE_CONDITIONS);
    entries(&mut text, "Reason", IMAGE_REASONS);
    entries(&mut text, "Event", IMAGE_HAPPENINGS);
    text
}

fn section<W: Display>(text: &mut String, title: &str, kind: &str, of_now: &[Entry<W>], later: &[W]) {
    writeln!(text, "\n## {title}").expect("a String takes text");
    entries(text, kind, of_now);
    if !later.is_empty() {
        let words: Vec<String> = later.iter().map(|word| format!("`{word}`")).collect();
        writeln!(text, "\nNot in this version: {}.", words.join(", ")).expect("a String takes text");
    }
}

fn entries<W: Display>(text: &mut String, kind: &str, entries: &[Entry<W>]) {
    for entry in entries {
        let word = entry.word.to_string();
        let word = if word.is_empty() { "empty" } else { &word };
        writeln!(
            text,
            "\n### {kind} {word}\n\n{}\n\n- **You:** {}\n- **The operator:** {}",
            entry.means, entry.reader, entry.operator
        )
        .expect("a String takes text");
    }
}

fn reference() -> String {
    let mut text = format!(
        "# Reference of the API\n\n<!-- Generated from the crate crds; do not edit. -->\n\n\
         What a provider of clusters writes:\n\n```yaml\n{EXAMPLE}```\n\n\
         `kubectl get clusterstacks,clusterstackreleases` shows what comes of it; [reasons.md](reasons.md) says what the words there mean, and \
         what to do. A ClusterAddon is written by the operator alone: [cluster-addons.md](../how-to/cluster-addons.md).\n\n\
         Fields marked * are required. A path ending in `[]` is an item of a list.\n"
    );
    let of_providers = Provider::iter().flat_map(provider_definitions);
    for crd in custom_resource_definitions().into_iter().chain(of_providers) {
        let crd = serde_json::to_value(crd).expect("a CRD is JSON");
        let version = &crd["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let names = &crd["spec"]["names"];
        writeln!(text, "\n## {}\n", word(&names["kind"])).expect("a String takes text");
        writeln!(text, "{}\n", word(&schema["description"])).expect("a String takes text");
        writeln!(
            text,
            "`{}/{}`, short name `{}`.\n",
            word(&crd["spec"]["group"]),
            word(&version["name"]),
            word(&names["shortNames"][0])
        )
        .expect("a String takes text");
        for part in ["spec", "status"] {
            // Templates have no status.
            if schema["properties"].get(part).is_none() {
                continue;
            }
            let mut rows = Vec::new();
            rows_of(&schema["properties"][part], part, false, &mut rows);
            writeln!(text, "| field | type | default | meaning |\n|---|---|---|---|").expect("a String takes text");
            // The first row is the part itself.
            for row in rows.iter().skip(1) {
                writeln!(text, "{row}").expect("a String takes text");
            }
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn rows_of(schema: &Value, path: &str, required: bool, rows: &mut Vec<String>) {
    let star = if required { "*" } else { "" };
    let default = schema
        .get("default")
        .map(|default| format!("`{default}`"))
        .unwrap_or_default();
    let meaning = word(&schema["description"]).replace('\n', " ").replace('|', "\\|");
    rows.push(format!("| `{path}`{star} | {} | {default} | {meaning} |", kind(schema)));
    // An ObjectReference explains itself in the reference of Kubernetes.
    if schema.get("x-kubernetes-map-type").is_some() {
        return;
    }
    let needed: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        rows_of(field, &format!("{path}.{name}"), needed.contains(&name.as_str()), rows);
    }
    if schema["items"]["properties"].is_object() {
        let needed: Vec<&str> = schema["items"]["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, field) in schema["items"]["properties"].as_object().into_iter().flatten() {
            rows_of(
                field,
                &format!("{path}[].{name}"),
                needed.contains(&name.as_str()),
                rows,
            );
        }
    }
}

fn kind(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "number or text".to_owned();
    }
    match (word(&schema["type"]), word(&schema["items"]["type"])) {
        ("array", items) => format!("list of {items}"),
        (kind, _) => kind.to_owned(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
