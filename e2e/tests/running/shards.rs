//! Several processes share the work. One that dies or hangs is followed by the others, and what it still had under way does no harm.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    AuditEvent, Ended, FaultProxy, Identity, Journey, Metrics, Operator, OperatorOptions,
    audit::Mark,
    eventually,
    fault_proxy::{Late, Write},
    journey::{SOON, journey, status},
    releases::write_small_stack,
    storm::rules,
    world::quiet,
};
use http::{Method, StatusCode};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt, api::DynamicObject};
use planning::election::shard_of;
use serde_json::{Value, json};

use crate::{LONG_LEASE, SHORT_LEASE, end_told, handed_over, log_lines, replicas::candidate};

/// A process that shares shards, with a user of its own in the audit log.
struct Member {
    name: &'static str,
    user: String,
    operator: Operator,
}

impl Member {
    async fn start(journey: &Journey, name: &'static str, shards: u16, proxy: Option<&FaultProxy>) -> Result<Self> {
        Self::with_lease(journey, name, shards, proxy, SHORT_LEASE).await
    }

    /// `proxy`: through which it talks to the API server.
    async fn with_lease(
        journey: &Journey,
        name: &'static str,
        shards: u16,
        proxy: Option<&FaultProxy>,
        lease: &str,
    ) -> Result<Self> {
        let user = format!("{name}-of-{}", journey.namespace);
        let identity = Identity::User {
            name: user.clone(),
            groups: vec!["system:masters".to_owned()],
        };
        let kubeconfig = match proxy {
            Some(proxy) => proxy.kubeconfig_for(&identity).await?,
            None => journey.control_plane().kubeconfig_for(&identity).await?,
        };
        let mut options = candidate(journey, journey.options.clone(), name, lease);
        options.flags.push(format!("--shards={shards}").into());
        let options = OperatorOptions {
            kubeconfig,
            record: Some(journey.folder().join(format!("decisions-of-{name}"))),
            ..options
        };
        let mut operator = Operator::start(journey.lab(), &options)?;
        operator.ready().await?;
        Ok(Self { name, user, operator })
    }

    fn process(&self) -> Result<u32> {
        self.operator
            .process_id()
            .with_context(|| format!("{} does not run", self.name))
    }

    /// The shards whose Leases name it.
    async fn held(&self, journey: &Journey, shards: u16) -> Result<Vec<u16>> {
        let mark = format!("_{}_", self.process()?);
        let mut held = Vec::new();
        for shard in 0..shards {
            if holder(journey, shard, shards).await?.contains(&mark) {
                held.push(shard);
            }
        }
        Ok(held)
    }
}

async fn holder(journey: &Journey, shard: u16, shards: u16) -> Result<String> {
    let leases: Api<Lease> = journey.api();
    let lease = leases
        .get_opt(&format!("clusterstack.x-k8s.io-shard-{shard}-of-{shards}"))
        .await?;
    let spec = lease.and_then(|lease| lease.spec);
    Ok(spec.and_then(|spec| spec.holder_identity).unwrap_or_default())
}

/// Waits until each member holds as many shards as is said, in any order, and all together all of them.
async fn shared(journey: &Journey, members: &[&Member], shards: u16, sizes: &[usize]) -> Result<Vec<Vec<u16>>> {
    eventually(SOON, format!("shares of {sizes:?}"), async || {
        let mut held = Vec::new();
        for member in members {
            held.push(member.held(journey, shards).await?);
        }
        let mut found: Vec<usize> = held.iter().map(Vec::len).collect();
        found.sort_unstable();
        ensure!(found == sizes, "{held:?}");
        Ok(held)
    })
    .await
}

/// Publishes a small stack of this name and asks for it.
async fn install(journey: &Journey, name: &str) -> Result<String> {
    let source = journey.folder().join("sources").join(name);
    write_small_stack(&source, name, 1)?;
    let tag = journey.releases.publish_stack(&source, "v1")?;
    journey.stack(name, json!({ "name": name, "versions": ["v1"] })).await?;
    Ok(tag)
}

/// The identities of all objects that these releases have applied.
async fn identities(journey: &Journey, tags: &[String]) -> Result<BTreeMap<String, String>> {
    let mut identities = BTreeMap::new();
    for tag in tags {
        for (name, object) in journey.inventory(tag).await? {
            let object = object.with_context(|| format!("{name} is lost"))?;
            identities.insert(name, object.uid().unwrap_or_default());
        }
    }
    Ok(identities)
}

/// Asks for a look at every stack, and waits until each has been looked at.
async fn all_handled(journey: &Journey, stacks: &[String], wish: &str) -> Result<()> {
    for stack in stacks {
        journey
            .annotate::<ClusterStack>(stack, labels::REQUESTED_AT, Some(wish))
            .await?;
    }
    for stack in stacks {
        handled(journey, stack, wish).await?;
    }
    Ok(())
}

/// What all processes together did since then, and what came of it, breaks no rule: one process would not have done it otherwise.
async fn as_of_one_process(journey: &Journey, since: Mark) -> Result<()> {
    eventually(SOON, "a world without flaws", async || rules::state(journey).await).await?;
    let members = format!("-of-{}", journey.namespace);
    let events = journey.control_plane().audit_log().since(since).await?;
    let events = events.filter(|event| event.user.ends_with(&members));
    ensure!(
        events.iter().any(AuditEvent::is_write),
        "nothing was written by {members}"
    );
    rules::history(&events)
}

async fn handled(journey: &Journey, stack: &str, wish: &str) -> Result<ClusterStack> {
    let is_handled = |stack: &ClusterStack| {
        let status = stack.status.as_ref();
        status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some(wish)
    };
    journey.until_stack(stack, "looked at", is_handled).await
}

#[test]
fn f32_three_processes_share_thirty_stacks_and_two_go_on_when_one_is_killed() -> Result<()> {
    const SHARDS: u16 = 6;
    journey(async |journey| {
        let begun = journey.mark().await?;
        let first = Member::start(journey, "first", SHARDS, None).await?;
        let mut second = Member::start(journey, "second", SHARDS, None).await?;
        let mut third = Member::start(journey, "third", SHARDS, None).await?;
        let stacks: Vec<String> = (0..30).map(|number| format!("s{number:02}")).collect();
        let mut tags = Vec::new();
        for stack in &stacks {
            tags.push(install(journey, stack).await?);
        }
        shared(journey, &[&first, &second, &third], SHARDS, &[2, 2, 2]).await?;
        for (stack, tag) in stacks.iter().zip(&tags) {
            journey.release_ready(tag).await?;
            journey.usable(stack, "v1").await?;
        }
        for member in [&mut second, &mut third] {
            let metrics = member.operator.metrics().await?;
            ensure!(metrics.sum("stackwright_shard_held", &[]) == Some(2.0), "{metrics:?}");
        }
        let before = identities(journey, &tags).await?;
        first.operator.kill().await?;
        shared(journey, &[&second, &third], SHARDS, &[3, 3]).await?;
        all_handled(journey, &stacks, "after the death of one").await?;
        ensure!(identities(journey, &tags).await? == before, "an object was made anew");
        // Each counts what is in its shards: together they count everything once.
        let urls = [
            second.operator.metrics_url().await?,
            third.operator.metrics_url().await?,
        ];
        eventually(SOON, "every stack to be counted once", async || {
            let mut sum = 0.0;
            for url in &urls {
                let metrics = Metrics::read(url).await?;
                let ready = metrics.sum("stackwright_cluster_stacks", &[("ready", "true")]);
                sum += ready.unwrap_or_default();
            }
            ensure!((sum - 30.0).abs() < 0.5, "{sum} are counted");
            Ok(())
        })
        .await?;
        as_of_one_process(journey, begun).await
    })
}

/// The names of three stacks whose shard is one of these.
fn stacks_in(journey: &Journey, shards: &[u16], count: u16) -> Vec<String> {
    let names = (0..100).map(|number| format!("s{number}"));
    let mine = names.filter(|name| shards.contains(&shard_of(&journey.namespace, &format!("docker-{name}"), count)));
    mine.take(3).collect()
}

/// Whether this is such a write of the control plane's template of a release.
fn of_template(method: Method, stack: &str) -> impl Fn(&Write) -> bool + Send + 'static {
    let end = format!("/kubeadmcontrolplanetemplates/{}", template_of(stack));
    move |write| write.method == method && write.path.ends_with(&end)
}

fn template_of(stack: &str) -> String {
    format!("docker-{stack}-1-34-v1-control-plane")
}

async fn template(journey: &Journey, stack: &str) -> Result<DynamicObject> {
    let templates = journey.objects("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlaneTemplate");
    Ok(templates.get(&template_of(stack)).await?)
}

/// The first name that the control plane's certificate is for.
fn certified(template: &DynamicObject) -> Option<&Value> {
    template
        .data
        .pointer("/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs/0")
}

/// Three writes of a process that was stopped before they arrived: of a status, of an object, of a deletion.
struct LateWrites {
    status: Late,
    apply: Late,
    deletion: Late,
}

/// Makes the process write what is held.
async fn hold_writes(journey: &Journey, proxy: &FaultProxy, [asked, new, deleted]: [&str; 3]) -> Result<LateWrites> {
    let end = format!("/clusterstacks/{asked}/status");
    let status = proxy.delay(move |write| write.method == Method::PUT && write.path.ends_with(&end));
    let apply = proxy.delay(of_template(Method::PATCH, new));
    let deletion = proxy.delay(of_template(Method::DELETE, deleted));
    journey
        .annotate::<ClusterStack>(asked, labels::REQUESTED_AT, Some("now"))
        .await?;
    install(journey, new).await?;
    journey
        .delete::<ClusterStackRelease>(&format!("docker-{deleted}-1-34-v1"))
        .await?;
    Ok(LateWrites {
        status: status.wait(SOON).await?,
        apply: apply.wait(SOON).await?,
        deletion: deletion.wait(SOON).await?,
    })
}

/// Publishes other bytes under the tag of a stack, and accepts them. The answer is the release that has them.
async fn change_bytes(journey: &Journey, stack: &str, tag: &str) -> Result<ClusterStackRelease> {
    let first = journey.release_ready(tag).await?.uid();
    let source = journey.folder().join("sources").join(stack);
    let values = source.join("cluster-class/values.yaml");
    let text = std::fs::read_to_string(&values)?;
    std::fs::write(&values, text.replace("- localhost", "- changed.example.org"))?;
    journey.releases.publish_stack(&source, "v1")?;
    // Who accepts them sooner gets the bytes from before, because nobody has seen others yet.
    let is_seen = |release: &ClusterStackRelease| {
        let conditions = status(release).conditions;
        let mut reasons = conditions.iter().filter_map(|condition| condition.reason.as_deref());
        reasons.any(|reason| reason == "DigestChanged")
    };
    journey.until_release(tag, "told of other bytes", is_seen).await?;
    journey.delete::<ClusterStackRelease>(tag).await?;
    let is_new = |release: &ClusterStackRelease| release.uid() != first && status(release).ready;
    journey.until_release(tag, "made anew and ready", is_new).await
}

#[test]
fn what_a_process_had_under_way_when_it_was_stopped_past_its_lease_does_no_harm() -> Result<()> {
    const SHARDS: u16 = 3;
    journey(async |journey| {
        let begun = journey.mark().await?;
        let proxy = FaultProxy::start(journey.control_plane()).await?;
        let mut paused = Member::start(journey, "paused", SHARDS, Some(&proxy)).await?;
        let second = Member::start(journey, "second", SHARDS, None).await?;
        let third = Member::start(journey, "third", SHARDS, None).await?;
        let held = shared(journey, &[&paused, &second, &third], SHARDS, &[1, 1, 1]).await?;
        let names = stacks_in(journey, &held[0], SHARDS);
        let [asked, new, deleted] = [0, 1, 2].map(|index| names[index].as_str());
        for stack in [asked, deleted] {
            let tag = install(journey, stack).await?;
            journey.release_ready(&tag).await?;
            journey.usable(stack, "v1").await?;
        }
        let first_template = template(journey, deleted).await?.uid();
        let late = hold_writes(journey, &proxy, [asked, new, deleted]).await?;
        // What it was sending besides when it stopped would arrive when it wakes.
        quiet(&proxy).await?;
        paused.operator.pause()?;
        let stopped = journey.mark().await?;

        taken_over(journey, held[0][0], SHARDS, paused.process()?).await?;
        let tags = done_by_others(journey, [asked, new, deleted]).await?;
        ensure!(
            template(journey, deleted).await?.uid() != first_template,
            "it was not deleted"
        );
        arrive(journey, late, new, &tags).await?;

        // And who wrote it finds out that its time is over, before it writes anything else.
        let woken = journey.mark().await?;
        paused.operator.wake()?;
        ensure!(paused.operator.ended(SOON).await? == Ended::Status(1));
        let told = end_told(paused.operator.log())?;
        ensure!(told.contains("lost the Lease"), "{told}");
        let done_since = async |mark| -> Result<_> {
            let events = journey.control_plane().audit_log().since(mark).await?;
            Ok(events.filter(|event| event.user == paused.user && event.code < 300))
        };
        let writes = done_since(woken).await?.filter(AuditEvent::is_write);
        ensure!(writes.is_empty(), "written by a process without a Lease: {writes:#?}");
        let renewals = done_since(stopped).await?.lease_writes();
        ensure!(renewals.is_empty(), "two holders: {renewals:#?}");
        for tag in &tags {
            journey.release_ready(tag).await?;
        }
        shared(journey, &[&second, &third], SHARDS, &[1, 2]).await?;
        as_of_one_process(journey, begun).await
    })
}

/// Waits until the shard's Lease names another process than this.
async fn taken_over(journey: &Journey, shard: u16, shards: u16, process: u32) -> Result<()> {
    let mark = format!("_{process}_");
    eventually(SOON, "another holder of the shard", async || {
        let holder = holder(journey, shard, shards).await?;
        ensure!(!holder.is_empty() && !holder.contains(&mark), "{holder:?}");
        Ok(())
    })
    .await
}

/// Waits until others have done what is held, and more; the answer is the releases of these stacks.
async fn done_by_others(journey: &Journey, stacks: [&str; 3]) -> Result<[String; 3]> {
    let tags = stacks.map(|stack| format!("docker-{stack}-1-34-v1"));
    handled(journey, stacks[0], "now").await?;
    change_bytes(journey, stacks[1], &tags[1]).await?;
    let is_back =
        |release: &ClusterStackRelease| release.metadata.deletion_timestamp.is_none() && status(release).ready;
    journey.until_release(&tags[2], "made anew and ready", is_back).await?;
    Ok(tags)
}

/// Lets what this user has written arrive, and sees what becomes of it.
async fn arrive(journey: &Journey, late: LateWrites, new: &str, tags: &[String; 3]) -> Result<()> {
    let (before, written) = (identities(journey, tags).await?, template(journey, new).await?);
    ensure!(
        certified(&written) == Some(&json!("changed.example.org")),
        "{written:?}"
    );
    ensure!(
        late.status.deliver().await? == StatusCode::CONFLICT,
        "a status from the past"
    );
    ensure!(
        late.deletion.deliver().await? == StatusCode::CONFLICT,
        "a deletion from the past"
    );
    ensure!(
        late.apply.deliver().await? == StatusCode::CONFLICT,
        "an apply from the past, when there was no such object"
    );
    // Nothing has come of it, and whoever looks again finds nothing to do.
    journey.ask_release(&tags[1], "after the late apply").await?;
    let now = template(journey, new).await?;
    ensure!(now.resource_version() == written.resource_version(), "{now:?}");
    ensure!(identities(journey, tags).await? == before, "an object was lost");
    Ok(())
}

#[test]
fn a_process_that_is_to_end_leaves_all_shards_but_that_in_which_a_write_hangs() -> Result<()> {
    const SHARDS: u16 = 3;
    journey(async |journey| {
        let proxy = FaultProxy::start(journey.control_plane()).await?;
        let first = Member::with_lease(journey, "first", SHARDS, Some(&proxy), LONG_LEASE).await?;
        shared(journey, &[&first], SHARDS, &[3]).await?;
        let stack = &stacks_in(journey, &[2], SHARDS)[0];
        let write = proxy.delay(of_template(Method::PATCH, stack));
        install(journey, stack).await?;
        let hung = write.wait(SOON).await?;
        let second = Member::with_lease(journey, "second", SHARDS, None, LONG_LEASE).await?;
        let held = shared(journey, &[&second], SHARDS, &[1]).await?;
        ensure!(held[0] != [2], "given while something runs in it");

        let process = first.process()?;
        ensure!(first.operator.stop().await? == Ended::Status(1), "a write hangs");
        let held = handed_over(shared(journey, &[&second], SHARDS, &[2])).await?;
        ensure!(held[0] == [0, 1], "{held:?}");
        let holder = holder(journey, 2, SHARDS).await?;
        ensure!(
            holder.contains(&format!("_{process}_")),
            "what may still write is left: {holder}"
        );
        drop(hung);
        Ok(())
    })
}

#[test]
fn another_number_of_shards_begins_when_the_last_process_with_the_old_one_has_ended() -> Result<()> {
    journey(async |journey| {
        let start = async |name: &str, shards: u16| -> Result<Operator> {
            let mut options = candidate(journey, journey.options.clone(), name, LONG_LEASE);
            options.flags.push(format!("--shards={shards}").into());
            let mut operator = Operator::start(journey.lab(), &options)?;
            operator.ready().await?;
            Ok(operator)
        };
        let old = start("old", 2).await?;
        let tag = install(journey, "one").await?;
        journey.release_ready(&tag).await?;
        let mut new = start("new", 3).await?;
        let (code, text) = new.health("/readyz").await?;
        ensure!(
            code == StatusCode::OK && text.contains("shards: none is held"),
            "{code} {text}"
        );
        let log = new.log().to_owned();
        eventually(SOON, "the newcomer to say for whom it waits", async || {
            let lines = log_lines(&log)?;
            let told = lines.iter().any(|line| line["holder"] == "2 shards, 90 s");
            ensure!(told, "{lines:#?}");
            Ok(())
        })
        .await?;
        ensure!(holder(journey, 0, 3).await?.is_empty(), "both numbers at once");
        ensure!(old.stop().await? == Ended::Status(0));
        handed_over(all_handled(journey, &["one".to_owned()], "with three shards")).await?;
        ensure!(!holder(journey, 0, 3).await?.is_empty());
        ensure!(new.stop().await? == Ended::Status(0));
        Ok(())
    })
}
