//! A stage between others that does not come to its end in time: what comes after it waits or goes on without it, as its release says, and the next release mends it
//! (A10, F44, F46).

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{StagePhase, StageProgress, name_for},
    conditions::{ConditionStatus, ConditionType, Reason, find},
    resource::SyncStatus,
};
use e2e::{Journey, releases::StackSource, shim::cluster};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::json;

use crate::{
    ground::{CLUSTER, Ground, ask, on_the_newest, phases, release_of, set_topology, status, until_addon},
    reshaped::{STAGES, add_chart},
    stack::{self, Expected},
};

const KUBERNETES: &str = "v1.35.0";
const BUOY: &str = "cluster-addon-buoy";
/// What an API server refuses.
const BEACON: &str = "---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-beacon
spec:
  ports:
  - port: 70000
";
/// What is waited for after the stage in the middle.
const LIT: &str = "    waitForPostCondition:
      objects:
      - {key: buoy, apiVersion: v1, kind: ConfigMap, name: cluster-addon-buoy, namespace: kube-system}
      conditions: buoy.data.lit == \"yes\"
";
/// How long that stage may take.
const TIMEOUT: SignedDuration = SignedDuration::from_secs(5);

/// The stack with a buoy between the network and the lighthouse.
struct Middle<'a> {
    /// Whether the buoy is what it is waited for.
    is_lit: bool,
    /// What the stage says besides.
    stage: &'a [&'a str],
    /// What its chart has besides.
    besides: &'a str,
}

impl Middle<'_> {
    const MENDED: Self = Self {
        is_lit: true,
        stage: &[LIT],
        besides: "",
    };

    /// Publishes it as a class; the answer is its name.
    async fn class(&self, journey: &Journey, version: &str) -> Result<String> {
        let source = StackSource::quay("v2")?;
        add_chart(&source, "buoy")?;
        let lit = if self.is_lit { "yes" } else { "no" };
        let buoy = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Release.Name }}}}-buoy\ndata:\n  lit: \"{lit}\"\n{}",
            self.besides
        );
        source.write("cluster-addon/buoy/templates/buoy.yaml", &buoy)?;
        let stage = |name: &str| format!("  - name: {name}\n    action: apply\n");
        let stages = [
            "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\n\
             clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1\n\
             addonStages:\n  AfterControlPlaneInitialized:\n",
            &stage("network"),
            &stage("buoy"),
            "    timeout: 5s\n",
            &self.stage.concat(),
            &stage("lighthouse"),
        ];
        source.write(STAGES, &stages.concat())?;
        let tag = journey.releases.publish_stack(&source.path(), version)?;
        release_of(journey, &tag, "v2", version).await?;
        Ok(tag)
    }
}

/// What a version brings up to the stage in the middle.
fn until_the_middle(version: &str, lit: &str) -> Vec<Expected> {
    let mut objects = stack::expected(version);
    objects.retain(|object| object.is_of("network"));
    objects.push(Expected::new(
        ("v1", "ConfigMap"),
        ("kube-system", BUOY),
        "buoy",
        json!({ "data": { "lit": lit } }),
    ));
    objects
}

/// All that a version brings.
fn all(version: &str, lit: &str) -> Vec<Expected> {
    let mut objects = until_the_middle(version, lit);
    objects.extend(
        stack::expected(version)
            .into_iter()
            .filter(|object| object.is_of("lighthouse")),
    );
    objects
}

/// Waits until the stages of this target are so, the one in the middle too late.
async fn until_late(journey: &Journey, version: &str, wanted: [StagePhase; 3]) -> Result<ClusterAddonStatus> {
    let addon = until_addon(
        journey,
        &format!("the stages of {version} to be {wanted:?}"),
        |status| {
            let target = status.target.as_ref().map(|target| target.version.as_str());
            let middle = status.stages.get(1).and_then(|stage| stage.reason.as_deref());
            target == Some(version)
                && phases(status).into_iter().map(|(_, phase)| phase).eq(wanted)
                && middle == Some(Reason::StageDeadlineExceeded.as_str())
        },
    )
    .await?;
    Ok(status(&addon))
}

/// The row of the stage in the middle says that it is late, and whether all else goes on; so do the conditions, with these words.
fn is_told(told: &ClusterAddonStatus, is_passed_over: bool, words: &[&str]) -> Result<()> {
    let StageProgress {
        since,
        deadline,
        message,
        passed_over,
        ..
    } = told.stages[1].clone();
    let (since, deadline) = (since.context("since when")?.0, deadline.context("until when")?.0);
    let message = message.unwrap_or_default();
    ensure!(passed_over == is_passed_over, "{told:#?}");
    // It was opened before it came to this phase, and was given as long as its release says.
    ensure!(since <= deadline && deadline <= since + TIMEOUT, "{since} {deadline}");
    ensure!(deadline <= Timestamp::now(), "it is not late");
    ensure!(!told.ready && told.applied != told.target, "{told:#?}");
    let applied = find(&told.conditions, ConditionType::HelmChartApplied).context("a condition")?;
    ensure!(
        applied.status == ConditionStatus::False
            && applied.reason.as_deref() == Some(Reason::StageDeadlineExceeded.as_str()),
        "{applied:#?}"
    );
    let applied = applied.message.clone().unwrap_or_default();
    ensure!(
        applied.contains("takes longer than the release gives it: stage buoy (apply)"),
        "{applied}"
    );
    for word in words {
        ensure!(
            message.contains(word) && applied.contains(word),
            "{word}: {message} {applied}"
        );
    }
    let stalled = find(&told.conditions, ConditionType::Stalled).and_then(|stalled| stalled.reason.as_deref());
    let is_stalled = stalled == Some(Reason::StageDeadlineExceeded.as_str());
    ensure!(is_stalled != is_passed_over, "{:#?}", told.conditions);
    Ok(())
}

/// Time goes on, and since when it waits stays the same.
async fn is_told_the_same_again(journey: &Journey, told: &ClusterAddonStatus, word: &str) -> Result<()> {
    ask(journey, word).await?;
    let again = status(&journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?);
    ensure!(
        again.stages == told.stages,
        "{:#?} instead of {:#?}",
        again.stages,
        told.stages
    );
    Ok(())
}

const HELD: [&str; 1] = ["`buoy.data.lit == \"yes\"` is false: buoy.data.lit is \"no\""];

/// Without a word in the release what comes after waits; with `onFailure: continue` it goes on. Either way nobody has to do anything but publish the next one.
#[test]
fn a10_f44_f46_a_condition_that_never_holds_holds_up_what_comes_after_unless_its_stage_may_fail_and_the_next_release_mends_it()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let unlit = |stage| Middle {
            is_lit: false,
            stage,
            besides: "",
        };
        let stopping = unlit(&[LIT]).class(journey, "v4").await?;
        let going_on = unlit(&["    onFailure: continue\n", LIT]).class(journey, "v5").await?;
        let mended = Middle::MENDED.class(journey, "v6").await?;
        let client = ground.workload.client();

        journey.apply(cluster(CLUSTER, &stopping, KUBERNETES, 1)).await?;
        let phases = [
            StagePhase::Done,
            StagePhase::WaitingForPostCondition,
            StagePhase::Pending,
        ];
        let told = until_late(journey, "v4", phases).await?;
        is_told(&told, false, &HELD)?;
        is_told_the_same_again(journey, &told, "stopped").await?;
        stands(&client, ground, &until_the_middle("v4", "no")).await?;
        let first = uids(&client, &until_the_middle("v4", "no")).await?;

        set_topology(journey, &going_on, KUBERNETES).await?;
        let phases = [StagePhase::Done, StagePhase::WaitingForPostCondition, StagePhase::Done];
        let told = until_late(journey, "v5", phases).await?;
        is_told(&told, true, &HELD)?;
        is_told_the_same_again(journey, &told, "passed-over").await?;
        stands(&client, ground, &all("v5", "no")).await?;

        set_topology(journey, &mended, KUBERNETES).await?;
        let objects = all("v6", "yes");
        ground.complete_with(journey, &mended, "v6", &objects).await?;
        stack::are_the_same(&first, &uids(&client, &objects).await?)?;
        ground.looks_write_nothing(journey, "mended").await
    })
}

#[test]
fn a10_f44_a_stage_between_others_of_which_an_object_is_refused_is_passed_over_where_it_may_fail_and_the_next_release_mends_it()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let refused = Middle {
            is_lit: true,
            stage: &["    onFailure: continue\n", LIT],
            besides: BEACON,
        };
        let refused = refused.class(journey, "v4").await?;
        let mended = Middle::MENDED.class(journey, "v5").await?;
        let client = ground.workload.client();

        journey.apply(cluster(CLUSTER, &refused, KUBERNETES, 1)).await?;
        let phases = [StagePhase::Done, StagePhase::ApplyingOrDeleting, StagePhase::Done];
        let told = until_late(journey, "v4", phases).await?;
        is_told(&told, true, &["Service cluster-addon-beacon", "70000"])?;
        let row = told
            .resources
            .iter()
            .find(|row| row.kind == "Service" && row.name == "cluster-addon-beacon");
        ensure!(
            row.is_some_and(|row| row.status == Some(SyncStatus::NotSynced) && row.error.contains("70000")),
            "{row:#?}"
        );
        is_told_the_same_again(journey, &told, "refused").await?;
        stands(&client, ground, &all("v4", "yes")).await?;
        let first = uids(&client, &all("v4", "yes")).await?;

        set_topology(journey, &mended, KUBERNETES).await?;
        let objects = all("v5", "yes");
        ground.complete_with(journey, &mended, "v5", &objects).await?;
        stack::are_the_same(&first, &uids(&client, &objects).await?)?;
        ground.looks_write_nothing(journey, "mended").await
    })
}

async fn stands(client: &Client, ground: &Ground, objects: &[Expected]) -> Result<()> {
    stack::stands(client, &ground.home, objects).await
}

async fn uids(client: &Client, objects: &[Expected]) -> Result<std::collections::BTreeMap<String, String>> {
    Ok(stack::uids_of(stack::forms(client, objects).await?))
}
