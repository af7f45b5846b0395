//! Releases that want the time and the memory of the operator. Each is stopped by a bound that it is told; which is met first may hang on the machine.

use std::{fmt::Write as _, fs, io, path::Path};

use anyhow::{Context, Result};
use crds::conditions::ConditionType;
use e2e::releases::{ADD_ONS, archive, put_into};

use super::releases::{Hostile, STAGES, Wrong, chart, condition, values};

/// Three loops within each other: a thousand million rounds.
const LOOPS: &str = "{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}";
/// A pattern that is looked for again behind each letter, and finds out at the end of the text that it is not there.
const PATTERN: &str = "{{ regexReplaceAll \".*[^A-Z]|[A-Z]\" (repeat 1000000 \"A\") \"\" }}";
/// More objects than a status can list.
const OBJECTS: usize = 10_000;
/// The bytes of a file of values, as many as an archive may unpack to.
const VALUES: u64 = 100 << 20;

/// A list of lists of lists: a kilobyte that unfolds to a billion words.
pub(super) fn laughter() -> String {
    let mut text = "a: &a [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for (before, letter) in ('a'..='h').zip('b'..='i') {
        let again = vec![format!("*{before}"); 10].join(", ");
        let _ = writeln!(text, "{letter}: &{letter} [{again}]");
    }
    text
}

/// In the templates of values, which are executed before anything of the chart is.
pub(super) fn of_values() -> Vec<Hostile> {
    vec![
        values(
            "loop",
            LOOPS.to_owned(),
            &["templates make more than", "takes more than 1000000 steps", "within 4s"],
        ),
        values(
            "recursion",
            "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}".to_owned(),
            &["exceeded maximum template depth", "within 4s"],
        ),
        values(
            "flood",
            "cluster: {{ repeat 1000000000 \"x\" }}\n".to_owned(),
            &["templates make more than", "is larger than"],
        ),
        values(
            "values-without-end",
            "{{ range $key := until 100000 }}k{{ $key }}: {{ repeat 1000 \"x\" }}\n{{ end }}".to_owned(),
            &["templates make more than", "within 4s"],
        ),
        values(
            "pattern",
            format!("cluster: {PATTERN}\n"),
            &["takes more than 1000000 steps", "within 4s"],
        ),
        values("laughter", laughter(), &["overwrite.yaml"]),
    ]
}

/// In charts.
pub(super) fn of_charts() -> Vec<Hostile> {
    vec![
        chart(
            "endless-chart",
            format!("{{{{- define \"a\" }}}}{LOOPS}{{{{ end }}}}{{{{ include \"a\" . }}}}{{{{ include \"a\" . }}}}"),
            &["templates make more than", "takes more than", "did not end within"],
        ),
        chart(
            "chart-within-a-chart",
            "{{- define \"a\" }}{{ tpl \"{{ include `a` . }}\" . }}{{ end }}{{ include \"a\" . }}".to_owned(),
            &["error calling tpl", "did not end within"],
        ),
        chart(
            "laughing-chart",
            laughter(),
            &["note.yaml", "use what the chart renders"],
        ),
        chart(
            "list-of-a-chart",
            "{{ until 1000000000 | toJson }}".to_owned(),
            &["more than 500000 parts"],
        ),
        chart(
            "text-of-a-chart",
            "{{ repeat 1000000000 \"x\" }}".to_owned(),
            &["is larger than"],
        ),
        chart(
            "flood-of-a-chart",
            "{{ range until 100000 }}{{ repeat 100000 \"x\" }}\n{{ end }}".to_owned(),
            &["templates make more than"],
        ),
        chart(
            "pattern-of-a-chart",
            PATTERN.to_owned(),
            &["takes more than", "did not end within"],
        ),
        chart(
            "crowd",
            format!(
                "{{{{ range until {OBJECTS} }}}}---\napiVersion: v1\nkind: ConfigMap\n\
                 metadata:\n  name: {{{{ $.Values.cluster }}}}-{{{{ . }}}}\n{{{{ end }}}}"
            ),
            &["has 10000 objects, whose inventory needs"],
        ),
        chart(
            "mine-of-keys",
            "{{ range until 1000 }}# {{ genPrivateKey \"rsa\" | b64enc }}\n{{ end }}".to_owned(),
            &["takes more than", "did not end within"],
        ),
    ]
}

/// In what is waited for.
pub(super) fn of_stages() -> Vec<Hostile> {
    let numbers = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let all = ('a'..='i').fold("it.metadata.name != \"\"".to_owned(), |within, variable| {
        format!("{numbers}.all({variable}, {within})")
    });
    vec![condition(
        "endless-condition",
        "kind: Namespace, name: kube-system",
        &all,
        &["costs too much"],
    )]
}

/// In what the makers of releases refuse already; whoever writes one by hand does not.
pub(super) fn by_hand() -> Vec<Hostile> {
    let by_hand = |name, harm, words| Hostile {
        name,
        wrong: Wrong::Packed(harm),
        condition: ConditionType::ClusterStackReleaseDownloaded,
        words,
    };
    vec![
        by_hand("bomb-of-stages", unfolding_stages, &["clusteraddon.yaml"]),
        by_hand("file-of-values", endless_file, &["of 104857600 bytes"]),
    ]
}

fn unfolding_stages(release: &Path) -> Result<()> {
    let stages = format!("{}addonStages:\n  AfterControlPlaneInitialized: *i\n", laughter());
    fs::write(release.join(STAGES), stages).context("failed to write the stages")
}

/// It is packed into some hundred kilobytes.
fn endless_file(release: &Path) -> Result<()> {
    let charts = archive(release, ADD_ONS)?;
    put_into(&charts, Path::new("note/values.yaml"), VALUES, io::repeat(b'a'))
}
