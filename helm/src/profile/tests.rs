//! The table of `docs/reference/helm-profiles.md` is what the profiles say. A field or variant that it does not tell does not compile.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::{
    BelowAlias, Build, ChartObjectForm, DocumentRule, EmptyFile, ErrorForm, GoTypes, KubeVersionSuffix, NullRule,
    OpenIndex, Profile, SetJson, ValuesFiles,
};
use crate::render::ErrorWords;
use crate::schema::{Checks, SchemaRules, Urns};
use crate::semver::Library;
use crate::url::HostRule;
use crate::warning::WarningForm;

const START: &str = "<!-- From the profiles in code; do not edit up to the next comment. -->\n";
const END: &str = "<!-- The end of the table. -->\n";
/// What an empty cell says.
const NOTHING: &str = "–";
/// What a cell says that is like the one before it.
const AS_BEFORE: &str = "=";

/// The rows of the table: what it is about, and what one profile says.
fn rows(profile: &'static Profile, before: Option<&'static Profile>) -> Vec<(&'static str, String)> {
    let Profile {
        name: _,
        build,
        kube_version,
        api_versions,
        kind_order,
        functions: _,
        versions,
        chart_api_versions,
        error_form,
        warnings,
        error_words,
        go_types,
        chart_object,
        kube_version_suffix,
        documents,
        nulls,
        values_files,
        set_json,
        open_index,
        lines_of_empty_file,
        below_alias,
        schemas,
    } = *profile;
    let names = |profile: &Profile| profile.functions().names().collect::<BTreeSet<_>>();
    let apis = |profile: &Profile| profile.api_versions.iter().collect::<BTreeSet<_>>();
    let kinds = |profile: &Profile| profile.kind_order.iter().copied().collect::<BTreeSet<_>>();
    let mut rows = built(build);
    rows.extend([
        ("Kubernetes when none is given", code(kube_version)),
        (
            "API versions when none are given",
            changes(api_versions.iter().count(), &apis(profile), before.map(apis)),
        ),
        (
            "functions",
            changes(names(profile).len(), &names(profile), before.map(names)),
        ),
        (
            "kinds in the order of installing",
            changes(kind_order.len(), &kinds(profile), before.map(kinds)),
        ),
        (
            "`apiVersion` of a chart",
            chart_api_versions.map_or("any".to_owned(), |known| code(&known.join("`, `"))),
        ),
        ("errors of templates", form(error_form).to_owned()),
        ("lines of warnings", warnings_told(warnings)),
        ("versions and ranges of versions", versions_told(versions).to_owned()),
    ]);
    rows.extend(words(error_words));
    rows.extend(types(go_types));
    let told = [
        ("`.Chart`", chart_object_told(chart_object)),
        (
            "`.Capabilities.KubeVersion.Version` of `v1.33.4-gke.1`",
            suffix(kube_version_suffix),
        ),
        ("documents of a file", documents_told(documents)),
        ("nulls in values", nulls_told(nulls)),
        ("`values.yaml` and `-f`", files_told(values_files)),
        ("`--set-json`", set_json_told(set_json)),
        (
            "an assignment that ends within an index: `--set a[1`",
            open_index_told(open_index),
        ),
        ("`.Files.Lines` of an empty file", lines_told(lines_of_empty_file)),
        ("charts below an alias", alias_told(below_alias)),
    ];
    rows.extend(told.map(|(row, text)| (row, text.to_owned())));
    rows.extend(schemas_told(schemas).map(|(row, text)| (row, text.to_owned())));
    rows
}

fn code(text: &str) -> String {
    if text.is_empty() {
        NOTHING.to_owned()
    } else {
        format!("`{text}`")
    }
}

/// What there is more and less than before, or how much.
fn changes(count: usize, now: &BTreeSet<&str>, before: Option<BTreeSet<&str>>) -> String {
    let Some(before) = before else {
        return count.to_string();
    };
    let more = now.difference(&before).map(|name| format!("+ `{name}`"));
    let less = before.difference(now).map(|name| format!("− `{name}`"));
    if *now == before {
        return AS_BEFORE.to_owned();
    }
    let all: Vec<String> = std::iter::once(count.to_string()).chain(more).chain(less).collect();
    all.join("<br>")
}

fn built(build: Build) -> Vec<(&'static str, String)> {
    let Build {
        version,
        git_commit,
        git_tree_state,
        go_version,
        kube_client_version,
    } = build;
    let state = [git_commit.get(..8).unwrap_or_default(), git_tree_state].join(" ");
    vec![
        ("Helm", code(version)),
        ("built with", code(go_version)),
        (
            "`GitCommit` and `GitTreeState` of `.Capabilities.HelmVersion`",
            code(state.trim()),
        ),
        ("its `KubeClientVersion`", code(kube_client_version.unwrap_or_default())),
    ]
}

const fn form(form: ErrorForm) -> &'static str {
    match form {
        ErrorForm::OneLine => "one line",
        ErrorForm::Blocks => "a block of lines for each template",
    }
}

fn warnings_told(form: WarningForm) -> String {
    match form {
        WarningForm::FileAndLine => "Go file, line and words",
        WarningForm::KeysAndValues => "keys and values: `level=WARN msg=…`",
    }
    .to_owned()
}

const fn versions_told(library: Library) -> &'static str {
    match library {
        Library::V3_4 => "of any length; a raised number wraps around; errors name a range",
        Library::V3_5 => {
            "up to 256 and 512 bytes and 32 alternatives; a number that cannot be raised is an error; errors quote a range"
        }
    }
}

fn words(words: ErrorWords) -> [(&'static str, String); 6] {
    let ErrorWords {
        release_name,
        missing_dependencies,
        dependencies,
        metadata_package,
        metadata_type,
        manifest_package,
    } = words;
    [
        (
            "step that refuses a release name",
            code(release_name.unwrap_or_default()),
        ),
        ("said of missing dependencies", format!("``{missing_dependencies}``")),
        ("step that refuses dependencies", code(dependencies.unwrap_or_default())),
        (
            "Go package of the types of `Chart.yaml`",
            code(metadata_package.trim_end_matches('.')),
        ),
        ("Go type of `Chart.yaml`", code(metadata_type)),
        ("Go package of manifests", code(manifest_package.trim_end_matches('.'))),
    ]
}

fn types(types: GoTypes) -> [(&'static str, String); 4] {
    let GoTypes {
        values,
        capabilities,
        kube_version,
        version_set,
    } = types;
    [
        ("Go type of `.Values`", code(values)),
        ("of `.Capabilities`", code(capabilities)),
        ("of `.Capabilities.KubeVersion`", code(kube_version)),
        ("of `.Capabilities.APIVersions`", code(version_set)),
    ]
}

const fn chart_object_told(form: ChartObjectForm) -> &'static str {
    match form {
        ChartObjectForm::Struct => "a struct",
        ChartObjectForm::Map => "a map with all Go field names",
    }
}

const fn suffix(suffix: KubeVersionSuffix) -> &'static str {
    match suffix {
        KubeVersionSuffix::Cut => "`v1.33.4`",
        KubeVersionSuffix::Kept => "`v1.33.4-gke.1`",
    }
}

const fn documents_told(rule: DocumentRule) -> &'static str {
    match rule {
        DocumentRule::Trimmed => "all space around them goes",
        DocumentRule::KeepsEndOfFile => "the last one keeps the end of the file",
        DocumentRule::KeepsEnds => "each keeps its end; only `---` at a line's start separates",
    }
}

const fn nulls_told(rule: NullRule) -> &'static str {
    match rule {
        NullRule::Delete => "delete the default; those of defaults stay",
        NullRule::DeleteDefaults => "delete the default unless that is null in a table; those of defaults stay",
        NullRule::DropDefaultNulls => "delete the default; those of defaults are dropped",
    }
}

const fn files_told(files: ValuesFiles) -> &'static str {
    match files {
        ValuesFiles::FirstDocument => "the first document",
        ValuesFiles::AllDocumentsWithoutFullLastLine => {
            "all documents; an unterminated last line of a multiple of 4096 bytes is lost"
        }
        ValuesFiles::AllDocuments => "all documents",
    }
}

const fn set_json_told(form: SetJson) -> &'static str {
    match form {
        SetJson::Assignments => "assignments",
        SetJson::AssignmentsOrObject => "assignments, or one JSON object",
    }
}

const fn open_index_told(rule: OpenIndex) -> &'static str {
    match rule {
        OpenIndex::Refused => "an error",
        OpenIndex::Ends => "the end of the assignments",
    }
}

const fn lines_told(rule: EmptyFile) -> &'static str {
    match rule {
        EmptyFile::Fails => "an error",
        EmptyFile::HasNoLines => "no lines",
    }
}

const fn alias_told(rule: BelowAlias) -> &'static str {
    match rule {
        BelowAlias::Shared => {
            "belong to all aliases of a chart at once: the next one finds what was decided for the one before, and files have the paths of the last one"
        }
        BelowAlias::Copied => "are each alias's own",
    }
}

const fn schemas_told(rules: SchemaRules) -> [(&'static str, &'static str); 5] {
    let SchemaRules { hosts, urns, checks } = rules;
    let (items, names, equality) = match checks {
        Checks::Faulty => (
            "counted from the first of them",
            "none",
            "a number is equal to a string that reads as it does; lists of more than 20 tell them apart",
        ),
        Checks::Mended => ("counted from the start of the list", "that of the object", "never"),
    };
    [
        (
            "hosts of URLs in schemas and of the format `uri`",
            match hosts {
                HostRule::Any => "any",
                HostRule::Addresses => "between brackets only an address of IPv6",
                HostRule::AddressesAndOneColon => "likewise; for the web no colon but that of the port",
            },
        ),
        (
            "`$ref` and `$schema` in a schema that name a `urn:`",
            match urns {
                Urns::Refused => "an error",
                Urns::AllowAll => "allow everything",
            },
        ),
        ("places of items that a schema has no item of its own for", items),
        ("the place of a name that `propertyNames` refuses", names),
        ("`const`, `enum` and `uniqueItems` of a number and a string", equality),
    ]
}

fn table() -> String {
    let profiles = Profile::all();
    let before = std::iter::once(None).chain(profiles.iter().copied().map(Some));
    let columns = profiles.iter().copied().zip(before);
    let columns: Vec<_> = columns.map(|(profile, before)| rows(profile, before)).collect();
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name).collect();
    let mut text = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for (place, (row, _)) in columns[0].iter().enumerate() {
        write!(text, "| {row} |").unwrap();
        let mut last = "";
        for column in &columns {
            let cell = column[place].1.as_str();
            let is_new = cell != last;
            write!(text, " {} |", if is_new { cell } else { AS_BEFORE }).unwrap();
            last = cell;
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_table_for_people_is_what_the_profiles_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/helm-profiles.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(START).expect("the table has a beginning");
    let (_, tail) = rest.split_once(END).expect("the table has an end");
    let generated = [head, START, &table(), END, tail].concat();
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &generated).unwrap();
        return;
    }
    assert!(
        text == generated,
        "not as generated\nrun: STACKWRIGHT_REGENERATE=1 cargo test -p helm --lib the_table_for_people"
    );
}
