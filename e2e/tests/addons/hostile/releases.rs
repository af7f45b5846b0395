//! Releases whose add-ons want what is not theirs, or more than anybody has.

use std::path::Path;

use anyhow::{Context, Result};
use crds::conditions::ConditionType;
use e2e::{
    Journey,
    releases::{ADD_ONS, StackSource, archive, put_into},
};

use super::{Attack, bait::Bait, bombs};
use crate::by_hand::stack_of;

pub(super) const STAGES: &str = "clusteraddon.yaml";
pub(super) const TEMPLATE: &str = "cluster-addon/note/templates/note.yaml";
const VALUES: &str = "cluster-addon/note/overwrite.yaml";

/// What every one of them is without what is wrong with it. It says in each cluster whose it is, and where that lies.
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
    ("cluster-addon/note/values.yaml", "cluster: unnamed\nberth: none\n"),
    (
        VALUES,
        "cluster: {{ .Cluster.metadata.name | quote }}\nberth: {{ dig \"metadata\" \"labels\" \"berth\" \"none\" .Cluster | quote }}\n",
    ),
    (
        TEMPLATE,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.cluster }}-note\n\
         data:\n  cluster: {{ .Values.cluster | quote }}\n  berth: {{ .Values.berth | quote }}\n",
    ),
];

/// What is in a Secret of the cluster.
const LOOKED_UP: &str =
    r#"{{ dig "data" "password" "" (lookup "v1" "Secret" "kube-system" "treasure") | b64dec | quote }}"#;

/// The source of one with nothing wrong.
pub(super) fn honest_source() -> Result<StackSource> {
    stack_of(&HONEST)
}

/// A release in which something is otherwise, and how whoever uses it is told.
pub(super) struct Hostile {
    pub(super) name: &'static str,
    pub(super) wrong: Wrong,
    pub(super) condition: ConditionType,
    /// One of these is said: which limit is met first may hang on the machine.
    pub(super) words: &'static [&'static str],
}

/// What is otherwise.
pub(super) enum Wrong {
    /// A file of its source, by its path.
    Source(&'static str, String),
    /// The same in what is packed already: the makers of releases refuse it, and whoever writes one by hand does not.
    Slipped(&'static str, String),
    /// What this does to the files of the release once it is packed.
    Packed(fn(&Path) -> Result<()>),
}

/// Where they are published: the versions of one stack, the honest one first.
pub(super) struct Releases {
    pub(super) honest: String,
    /// It asks politely, and is given nothing.
    pub(super) spy: String,
    /// It looks up a Secret of its own cluster.
    pub(super) looker: String,
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
    let honest = publish(&honest_source()?)?;
    let spies = honest_source()?;
    spies.write(TEMPLATE, &spying(journey, bait))?;
    let spy = publish(&spies)?;
    let lookers = honest_source()?;
    lookers.write(TEMPLATE, &format!("{}  treasure: {LOOKED_UP}\n", HONEST[4].1))?;
    let looker = publish(&lookers)?;
    let mut attacks = Vec::new();
    let gaining = of_values(bait).into_iter().chain(of_charts(bait)).chain(of_stages());
    let bombs = bombs::of_values()
        .into_iter()
        .chain(bombs::of_charts())
        .chain(bombs::of_stages())
        .chain(bombs::by_hand());
    for hostile in gaining.chain(bombs) {
        let source = honest_source()?;
        match &hostile.wrong {
            Wrong::Source(path, text) => source.write(path, text).map(drop)?,
            Wrong::Slipped(path, _) if Path::new(path).extension().is_some_and(|extension| extension == "tera") => {
                source.remove(VALUES)?;
            }
            Wrong::Slipped(..) | Wrong::Packed(_) => {}
        }
        let tag = publish(&source).with_context(|| hostile.name)?;
        let harmed = match &hostile.wrong {
            Wrong::Source(..) => Ok(()),
            Wrong::Slipped(path, text) => journey.releases.edit(&tag, |release| slip(release, path, text)),
            Wrong::Packed(harm) => journey.releases.edit(&tag, harm),
        };
        harmed.with_context(|| hostile.name)?;
        attacks.push(hostile.attack(tag));
    }
    Ok(Releases {
        honest,
        spy,
        looker,
        attacks,
        versions,
    })
}

/// Puts a file of the source into the archive of the add-ons.
fn slip(release: &Path, path: &str, text: &str) -> Result<()> {
    let within = path.strip_prefix("cluster-addon/").context("no file of a chart")?;
    let size = u64::try_from(text.len())?;
    put_into(&archive(release, ADD_ONS)?, Path::new(within), size, text.as_bytes())
}

impl Hostile {
    fn slipped(self) -> Self {
        let wrong = match self.wrong {
            Wrong::Source(path, text) => Wrong::Slipped(path, text),
            other => other,
        };
        Self { wrong, ..self }
    }

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

/// With another template of values.
pub(super) fn values(name: &'static str, text: String, words: &'static [&'static str]) -> Hostile {
    Hostile {
        name,
        wrong: Wrong::Source(VALUES, text),
        condition: ConditionType::HelmChartTemplated,
        words,
    }
}

/// With another template in its chart.
pub(super) fn chart(name: &'static str, text: String, words: &'static [&'static str]) -> Hostile {
    Hostile {
        wrong: Wrong::Source(TEMPLATE, text),
        ..values(name, String::new(), words)
    }
}

/// With a stage that waits for something of an object.
pub(super) fn condition(name: &'static str, object: &str, expression: &str, words: &'static [&'static str]) -> Hostile {
    Hostile {
        name,
        wrong: Wrong::Source(STAGES, stages_that_wait(&[("it", object)], expression)),
        condition: ConditionType::EvaluatedCEL,
        words,
    }
}

/// Stages of which the only one waits for something of these objects, each of which has a name in the expression.
pub(super) fn stages_that_wait(objects: &[(&str, &str)], expression: &str) -> String {
    let objects = objects.iter();
    let objects: Vec<String> = objects
        .map(|(key, object)| format!("      - {{key: {key}, apiVersion: v1, {object}}}\n"))
        .collect();
    let objects = objects.concat();
    format!(
        "{}    waitForPreCondition:\n      objects:\n{objects}      conditions: '{expression}'\n",
        HONEST[0].1
    )
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
    let variable = super::VARIABLE;
    let wrong = vec![
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
        Hostile {
            wrong: Wrong::Source(
                "cluster-addon/note/overwrite.yaml.tera",
                format!("cluster: {{{{ get_env(name={variable:?}) }}}}\n"),
            ),
            ..values("environment-of-tera", String::new(), &["get_env"])
        },
    ];
    wrong.into_iter().map(Hostile::slipped).collect()
}

fn of_charts(bait: &Bait) -> Vec<Hostile> {
    let variable = super::VARIABLE;
    let secret = "lookup \"v1\" \"Secret\" \"kube-system\" \"treasure\"";
    vec![
        chart(
            "environment-of-a-chart",
            format!("{{{{ env {variable:?} }}}}\n"),
            &["function \"env\" not defined"],
        )
        .slipped(),
        chart(
            "program-of-a-chart",
            format!("{{{{ exec {:?} }}}}\n", bait.file("run.sh")),
            &["function \"exec\" not defined"],
        )
        .slipped(),
        // It may look up Secrets of its own cluster; whoever reads a status may not.
        chart(
            "teller",
            format!("{{{{ with ({secret}) }}}}{{{{ fail (.data.password | b64dec | upper) }}}}{{{{ end }}}}\n"),
            &["what is wrong there is not told"],
        ),
    ]
}

fn of_stages() -> Vec<Hostile> {
    vec![condition(
        "condition-on-a-secret",
        "kind: Secret, name: treasure, namespace: kube-system",
        "it.data.password == \"c2VzYW1l\"",
        &["is false"],
    )]
}
