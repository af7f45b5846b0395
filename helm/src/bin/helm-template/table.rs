//! The flags of `helm template`: which Helm versions have them, and what they do here.

use helm::Profile;
use helm::chart::ArchiveLimits;

use crate::Failure;
use crate::flags::{Flag, Given, Kind};

/// What a flag does here.
#[derive(Clone, Copy)]
enum Does {
    /// What it does in Helm.
    Same,
    /// Nothing but to be checked, because in Helm it touches neither output nor error of a render without a cluster.
    Nothing,
    /// It ends the program: for this reason there can be no equal output.
    Refused(&'static str),
}

/// Which Helm versions know a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    All,
    V3,
    V4,
}

struct Row {
    flag: Flag,
    known: In,
    does: Does,
}

const fn row(name: &'static str, kind: Kind, does: Does) -> Row {
    Row {
        flag: Flag {
            name,
            short: None,
            kind,
            deprecated: None,
        },
        known: In::All,
        does,
    }
}

const fn short(letter: char, name: &'static str, kind: Kind, does: Does) -> Row {
    let mut row = row(name, kind, does);
    row.flag.short = Some(letter);
    row
}

const fn only(known: In, name: &'static str, kind: Kind) -> Row {
    let mut row = row(name, kind, Nothing);
    row.known = known;
    row
}

use Does::{Nothing, Refused, Same};
use Kind::{Duration, Float, Integer, List, Pairs, Switch, Text, TextOr, Texts, Wait};

const CLUSTER: Does =
    Refused("asks a cluster, which is never done here: say what it knows with --kube-version and --api-versions");

/// What Helm 4 says of flags that it still takes; the last ones from v4.2 on.
const DEPRECATED: [(&str, &str); 5] = [
    ("atomic", "use --rollback-on-failure instead"),
    ("force", "use --force-replace instead"),
    ("validate", "use '--dry-run=server' instead"),
    ("hide-notes", NO_NOTES),
    ("render-subchart-notes", NO_NOTES),
];

const NO_NOTES: &str = "this flag has no effect for 'helm template' and will be removed in Helm 5";

const ROWS: &[Row] = &[
    short('a', "api-versions", List, Same),
    short('f', "values", List, Same),
    short('g', "generate-name", Switch, Same),
    short('h', "help", Switch, Same),
    short('l', "labels", Pairs, Nothing),
    short('n', "namespace", Text, Same),
    short('s', "show-only", Texts, Same),
    row("debug", Switch, Same),
    row("dry-run", TextOr("unset"), Same),
    row("include-crds", Switch, Same),
    row("is-upgrade", Switch, Same),
    row("kube-version", Text, Same),
    row("name-template", Text, Same),
    row("no-hooks", Switch, Same),
    row("output-dir", Text, Same),
    row("release-name", Switch, Same),
    row("set", Texts, Same),
    row("set-file", Texts, Same),
    row("set-json", Texts, Same),
    row("set-literal", Texts, Same),
    row("set-string", Texts, Same),
    row("skip-schema-validation", Switch, Same),
    row("skip-tests", Switch, Same),
    // Ours.
    row("now", Text, Same),
    row("profile", Text, Same),
    row("seed", Text, Same),
    // What cannot be done without reaching out.
    row(
        "dependency-update",
        Switch,
        Refused("downloads, which is never done here: run `helm dependency update CHART` first"),
    ),
    row(
        "enable-dns",
        Switch,
        Refused("asks name servers, which is never done here: without it getHostByName gives \"\", as in Helm"),
    ),
    row(
        "post-renderer",
        Text,
        Refused("starts another program, which is never done here: pipe the output"),
    ),
    row(
        "repo",
        Text,
        Refused("downloads, which is never done here: run `helm pull CHART --repo URL` first and give the .tgz"),
    ),
    row("validate", Switch, CLUSTER),
    row(
        "verify",
        Switch,
        Refused("checks signatures, which is never done here: run `helm verify CHART` first"),
    ),
    // About installing, downloading and clusters.
    row("atomic", Switch, Nothing),
    row("burst-limit", Integer, Nothing),
    row("ca-file", Text, Same),
    row("cert-file", Text, Nothing),
    row("create-namespace", Switch, Nothing),
    row("description", Text, Nothing),
    row("devel", Switch, Nothing),
    row("disable-openapi-validation", Switch, Nothing),
    row("force", Switch, Nothing),
    row("hide-notes", Switch, Nothing),
    row("insecure-skip-tls-verify", Switch, Nothing),
    row("key-file", Text, Nothing),
    row("keyring", Text, Nothing),
    row("kube-apiserver", Text, Nothing),
    row("kube-as-group", Texts, Nothing),
    row("kube-as-user", Text, Nothing),
    row("kube-ca-file", Text, Nothing),
    row("kube-context", Text, Nothing),
    row("kube-insecure-skip-tls-verify", Switch, Nothing),
    row("kube-tls-server-name", Text, Nothing),
    row("kube-token", Text, Nothing),
    row("kubeconfig", Text, Nothing),
    row("pass-credentials", Switch, Nothing),
    row("password", Text, Nothing),
    row("plain-http", Switch, Nothing),
    row("post-renderer-args", Texts, Nothing),
    row("qps", Float, Nothing),
    row("registry-config", Text, Nothing),
    row("render-subchart-notes", Switch, Nothing),
    row("replace", Switch, Nothing),
    row("repository-cache", Text, Nothing),
    row("repository-config", Text, Nothing),
    row("skip-crds", Switch, Nothing),
    row("take-ownership", Switch, Nothing),
    row("timeout", Duration, Nothing),
    row("username", Text, Nothing),
    row("version", Text, Nothing),
    row("wait-for-jobs", Switch, Nothing),
    only(In::V3, "wait", Switch),
    only(In::V4, "wait", Wait),
    only(In::V4, "color", Text),
    only(In::V4, "colour", Text),
    only(In::V4, "content-cache", Text),
    only(In::V4, "force-conflicts", Switch),
    only(In::V4, "force-replace", Switch),
    only(In::V4, "rollback-on-failure", Switch),
    only(In::V4, "server-side", Switch),
];

/// Whether a profile is one of Helm 3.
pub(crate) fn is_helm_3(profile: &Profile) -> bool {
    profile.name.starts_with("v3.")
}

/// Profiles of the Helm versions that bound each file of a chart. Later ones bound the chart alone.
const BOUND_FILES: [&str; 3] = ["v3.19", "v4.1", "v4.2"];

/// How large a chart may be.
pub(crate) fn chart_limits(profile: &Profile) -> ArchiveLimits {
    let limits = ArchiveLimits::default();
    let file_bytes = if BOUND_FILES.contains(&profile.name) {
        limits.file_bytes
    } else {
        limits.total_bytes
    };
    ArchiveLimits { file_bytes, ..limits }
}

/// Reads words by the flags of the profile that they name.
pub(crate) fn read(words: Vec<String>) -> Result<(Given, &'static Profile), Failure> {
    let profile = profile(&words)?;
    let era = if is_helm_3(profile) { In::V3 } else { In::V4 };
    let rows = ROWS.iter().filter(|row| row.known == In::All || row.known == era);
    let flags: Vec<Flag> = rows.map(|row| flag(row, profile)).collect();
    let given = Given::read(&flags, words).map_err(Failure)?;
    Ok((given, profile))
}

/// The flag of a row as a profile has it.
fn flag(row: &Row, profile: &Profile) -> Flag {
    let says = |(name, instead): &(&str, &'static str)| {
        let is_early = *instead != NO_NOTES || profile.name != "v4.1";
        (*name == row.flag.name && is_early && !is_helm_3(profile)).then_some(*instead)
    };
    Flag {
        deprecated: DEPRECATED.iter().find_map(says),
        ..row.flag
    }
}

/// Refuses what can have no equal output.
pub(crate) fn refuse(given: &Given) -> Result<(), Failure> {
    for row in ROWS {
        let name = row.flag.name;
        if let Refused(reason) = row.does
            && given.has(name)
            && given.text(name) != Some("false")
        {
            return Err(Failure(format!("--{name} {reason}")));
        }
    }
    Ok(())
}

/// The profile decides which flags there are, so it is looked for before they are read.
fn profile(words: &[String]) -> Result<&'static Profile, Failure> {
    let flags = words.iter().take_while(|word| *word != "--");
    let named = flags
        .zip(words.iter().skip(1).map(Some).chain([None]))
        .filter_map(|(word, next)| {
            word.strip_prefix("--profile=")
                .or_else(|| next.filter(|_| word == "--profile").map(String::as_str))
        });
    let Some(name) = named.last() else {
        return Ok(Profile::V3_19);
    };
    Profile::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = Profile::all().iter().map(|profile| profile.name).collect();
        Failure(format!("there is no profile {name:?}, only {}", known.join(", ")))
    })
}
