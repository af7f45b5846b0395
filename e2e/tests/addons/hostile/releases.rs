//! Releases whose add-ons want what is not theirs, or more than anybody has.

use std::fmt::Write;

use anyhow::{Context, Result};
use crds::conditions::ConditionType;
use e2e::{Journey, releases::StackSource};

use super::{Attack, bait::Bait};
use crate::by_hand::stack_of;

const STAGES: &str = "clusteraddon.yaml";
const TEMPLATE: &str = "cluster-addon/note/templates/note.yaml";
const VALUES: &str = "cluster-addon/note/overwrite.yaml";

/// What every one of them is without what is wrong with it. It says in each cluster whose it is.
const HONEST: [(&str, &str); 5] = [
    (
        STAGES,
        "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\n\
         clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1\n\
         addonStages:\n  AfterControlPlaneInitialized:\n  - name: note\n    action: apply\n",
    ),
    (
        "cluster-addon/note/Chart.yaml",
        "apiVersion: v2\nname: note\ndescription: Says whose cluster it is\ntype: application\nversion: 0.1.0\n",
    ),
    ("cluster-addon/note/values.yaml", "cluster: unnamed\n"),
    (VALUES, "cluster: {{ .Cluster.metadata.name | quote }}\n"),
    (
        TEMPLATE,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.cluster }}-note\n\
         data:\n  cluster: {{ .Values.cluster | quote }}\n",
    ),
];

/// A release with one file that is otherwise, and how whoever uses it is told.
struct Hostile {
    name: &'static str,
    path: &'static str,
    text: String,
    condition: ConditionType,
    /// One of these is said: which limit is met first may hang on the machine.
    words: &'static [&'static str],
}

/// Where they are published: the versions of one stack, the honest one first.
pub(super) struct Releases {
    pub(super) honest: String,
    /// It asks politely, and is given nothing.
    pub(super) spy: String,
    pub(super) attacks: Vec<Attack>,
    pub(super) versions: Vec<String>,
}

/// Publishes all of them. Who has a Cluster of a class is not asked whether it is a good one.
pub(super) fn publish(journey: &Journey, bait: &Bait) -> Result<Releases> {
    let mut versions = Vec::new();
    let mut publish = |source: &StackSource| {
        let version = format!("v{}", versions.len() + 1);
        let tag = journey.releases.publish_stack(&source.path(), &version)?;
        versions.push(version);
        anyhow::Ok(tag)
    };
    let honest = publish(&stack_of(&HONEST)?)?;
    let spies = stack_of(&HONEST)?;
    spies.write(TEMPLATE, &spying(journey, bait))?;
    let spy = publish(&spies)?;
    let mut attacks = Vec::new();
    for hostile in of_values(bait).into_iter().chain(of_charts(bait)).chain(of_stages()) {
        let source = stack_of(&HONEST)?;
        source.write(hostile.path, &hostile.text)?;
        if hostile.path.ends_with(".tera") {
            source.remove(VALUES)?;
        }
        let tag = publish(&source).with_context(|| hostile.name)?;
        attacks.push(hostile.attack(tag));
    }
    attacks.push(bomb_of_stages(journey, publish(&stack_of(&HONEST)?)?)?);
    Ok(Releases {
        honest,
        spy,
        attacks,
        versions,
    })
}

impl Hostile {
    fn attack(self, class: String) -> Attack {
        Attack {
            cluster: self.name.to_owned(),
            class: Some(class),
            condition: self.condition,
            words: self.words.iter().map(|words| (*words).to_owned()).collect(),
            ..Attack::default()
        }
    }
}

/// The makers of releases refuse such a file already; whoever writes one by hand does not.
fn bomb_of_stages(journey: &Journey, tag: String) -> Result<Attack> {
    journey.releases.edit(&tag, |folder| {
        let stages = format!("{}addonStages:\n  AfterControlPlaneInitialized: *i\n", laughter());
        std::fs::write(folder.join(STAGES), stages).context("failed to write the stages")
    })?;
    let hostile = Hostile {
        name: "bomb-of-stages",
        path: STAGES,
        text: String::new(),
        condition: ConditionType::ClusterStackReleaseDownloaded,
        words: &["clusteraddon.yaml"],
    };
    Ok(hostile.attack(tag))
}

/// A list of lists of lists: a kilobyte that unfolds to a billion words.
pub(super) fn laughter() -> String {
    let mut text = "a: &a [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for (before, letter) in ('a'..='h').zip('b'..='i') {
        let again = vec![format!("*{before}"); 10].join(", ");
        let _ = writeln!(text, "{letter}: &{letter} [{again}]");
    }
    text
}

/// Everything by which a chart can ask; what it is given stands in the cluster afterwards.
fn spying(journey: &Journey, bait: &Bait) -> String {
    let (namespace, file) = (&journey.namespace, bait.file("canary.txt"));
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Values.cluster }}}}-spoils\ndata:\n  \
           file: {{{{ .Files.Get {file:?} | quote }}}}\n  \
           above: {{{{ .Files.Get \"../../../../../../../../../..{file}\" | quote }}}}\n  \
           files: {{{{ (.Files.Glob \"/**\").AsConfig | quote }}}}\n  \
           secret: {{{{ lookup \"v1\" \"Secret\" {namespace:?} \"treasure\" | toJson | quote }}}}\n  \
           kubeconfigs: {{{{ (lookup \"v1\" \"Secret\" {namespace:?} \"\").items | toJson | quote }}}}\n  \
           stacks: {{{{ lookup \"clusterstack.x-k8s.io/v1alpha1\" \"ClusterStack\" {namespace:?} \"\" | toJson | quote }}}}\n  \
           address: {{{{ getHostByName \"localhost\" | quote }}}}\n"
    )
}

/// Values are made before anything of the chart is.
fn of_values(bait: &Bait) -> Vec<Hostile> {
    let values = |name, text: String, words| Hostile {
        name,
        path: VALUES,
        text,
        condition: ConditionType::HelmChartTemplated,
        words,
    };
    let variable = super::VARIABLE;
    let deep = "{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}";
    vec![
        values(
            "environment",
            format!("cluster: {{{{ env {variable:?} | quote }}}}\n"),
            &["env"],
        ),
        values(
            "expanded",
            format!("cluster: {{{{ expandenv \"${variable}\" | quote }}}}\n"),
            &["expandenv"],
        ),
        values(
            "name-of-a-host",
            "cluster: {{ getHostByName \"canary.example.com\" | quote }}\n".to_owned(),
            &["getHostByName"],
        ),
        values(
            "program",
            format!("cluster: {{{{ exec {:?} }}}}\n", bait.file("run.sh")),
            &["function \"exec\" not defined"],
        ),
        values(
            "loop",
            deep.to_owned(),
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
        values("laughter", laughter(), &["overwrite.yaml"]),
        Hostile {
            path: "cluster-addon/note/overwrite.yaml.tera",
            ..values(
                "environment-of-tera",
                format!("cluster: {{{{ get_env(name={variable:?}) }}}}\n"),
                &["get_env"],
            )
        },
    ]
}

fn of_charts(bait: &Bait) -> Vec<Hostile> {
    let chart = |name, text: String, words| Hostile {
        name,
        path: TEMPLATE,
        text,
        condition: ConditionType::HelmChartTemplated,
        words,
    };
    let variable = super::VARIABLE;
    let secret = "lookup \"v1\" \"Secret\" \"kube-system\" \"treasure\"";
    vec![
        chart(
            "environment-of-a-chart",
            format!("{{{{ env {variable:?} }}}}\n"),
            &["function \"env\" not defined"],
        ),
        chart(
            "program-of-a-chart",
            format!("{{{{ exec {:?} }}}}\n", bait.file("run.sh")),
            &["function \"exec\" not defined"],
        ),
        chart(
            "endless-chart",
            "{{- define \"a\" }}{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}{{ end }}\
             {{ include \"a\" . }}{{ include \"a\" . }}"
                .to_owned(),
            &["templates make more than", "takes more than", "did not end within"],
        ),
        chart(
            "chart-within-a-chart",
            "{{- define \"a\" }}{{ tpl \"{{ include `a` . }}\" . }}{{ end }}{{ include \"a\" . }}".to_owned(),
            &["error calling tpl", "did not end within"],
        ),
        chart("laughing-chart", laughter(), &["note.yaml", "use what the chart renders"]),
        // It may look up Secrets of its own cluster; whoever reads a status may not.
        chart(
            "teller",
            format!("{{{{ with ({secret}) }}}}{{{{ fail (.data.password | b64dec | upper) }}}}{{{{ end }}}}\n"),
            &["what is wrong there is not told"],
        ),
    ]
}

fn of_stages() -> Vec<Hostile> {
    let stages = |name, object: &str, expression: &str, words| Hostile {
        name,
        path: STAGES,
        text: format!(
            "{}    waitForPreCondition:\n      objects:\n      - {{key: it, apiVersion: v1, {object}}}\n      conditions: '{expression}'\n",
            HONEST[0].1
        ),
        condition: ConditionType::EvaluatedCEL,
        words,
    };
    let numbers = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let all = ('a'..='i').fold("it.metadata.name != \"\"".to_owned(), |within, variable| {
        format!("{numbers}.all({variable}, {within})")
    });
    vec![
        stages(
            "condition-on-a-secret",
            "kind: Secret, name: treasure, namespace: kube-system",
            "it.data.password == \"c2VzYW1l\"",
            &["is false"],
        ),
        stages(
            "endless-condition",
            "kind: Namespace, name: kube-system",
            &all,
            &["costs too much"],
        ),
    ]
}
