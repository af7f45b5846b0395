//! What happens, one act after the other: each tells what is done, does it, waits for the operator and proves what it claims.

use std::{collections::BTreeSet, time::Instant};

use anyhow::{Context, Result, bail, ensure};
use crds::{ClusterStack, labels, names::ReleaseTag, resource::Resource};
use e2e::traces;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{
    picture::{Id, Picture},
    play::Play,
    text::{count, short},
};

/// The name of the stack.
pub(super) const STACK: &str = "demo";
/// Field manager of those who own the stack.
pub(super) const OWNER: &str = "platform-team";
/// Field manager of the one who damages objects.
pub(super) const INTRUDER: &str = "somebody";
/// What the intruder makes a class refer to.
const NOWHERE: &str = "nowhere";

impl Play<'_> {
    /// All acts but the last, after which nothing is left to look at.
    pub(super) async fn all_but_the_last(&mut self) -> Result<()> {
        self.act("Subscribe", Self::subscribe).await?;
        if let Some(second) = self.cast.second.clone() {
            self.act("A new release appears", async |play: &mut Self| {
                play.upgrade(&second).await
            })
            .await?;
            self.act("Somebody deletes a template and edits a class", Self::damage)
                .await?;
            self.act("An old release is dropped", async |play: &mut Self| {
                play.drop_first(&second).await
            })
            .await?;
        } else {
            self.act("Somebody deletes a template and edits a class", Self::damage)
                .await?;
        }
        self.act("A broken release appears", Self::break_one).await?;
        if let Some(unwanted) = self.cast.unwanted.clone() {
            let give_up = async |play: &mut Self| play.give_up(&unwanted).await;
            self.act("A node image is given up on its way", give_up).await?;
        }
        if let Some(built) = self.cast.built.clone() {
            let build = async |play: &mut Self| play.build(&built).await;
            self.act("A node image is built by a Job", build).await?;
        }
        Ok(())
    }

    /// The last act.
    pub(super) async fn the_last(&mut self) -> Result<()> {
        self.act("The stack is deleted", Self::delete).await
    }

    async fn subscribe(&mut self) -> Result<()> {
        if let Some(images) = self.images() {
            return self.subscribe_with(&images).await;
        }
        let first = &self.cast.first;
        self.cast.publish(first)?;
        let stack = self.stack(&[first]);
        self.screen.say("The platform team applies one object:");
        self.screen
            .quote(&serde_yaml::to_string(&stack).context("failed to write the stack as YAML")?);
        self.screen.say(&format!(
            "The operator finds the release {first}, renders its chart and applies the objects: watch their states.",
        ));
        self.linger().await?;
        let since = self.apply(&stack).await?;
        let took = self.until_usable(first, &[first], since).await?;
        let objects = count(self.picture.inventory(first).len(), "object");
        self.screen.good(&format!(
            "{} is usable after {}: {objects} from the one that was applied.",
            first.version(),
            short(took)
        ));
        Ok(())
    }

    async fn upgrade(&mut self, second: &ReleaseTag) -> Result<()> {
        let first = &self.cast.first;
        let follows = self.cast.is_ordered();
        self.screen.say(&if follows {
            format!("The release {second} is published. The stack follows its channel, so nobody tells the operator.")
        } else {
            format!("The release {second} is published. Hashes have no order, so the stack has to list it.")
        });
        self.linger().await?;
        let asked = self.images().map_or(0, |images| images.asked());
        self.cast.publish(second)?;
        let since = if follows {
            Instant::now()
        } else {
            self.apply(&self.stack(&[first, second])).await?
        };
        let took = self.until_usable(second, &[first, second], since).await?;
        self.screen.good(&format!(
            "{} is usable after {}. {} stays, because the stack lists it.",
            second.version(),
            short(took),
            first.version()
        ));
        self.nothing_was_sent(asked).await
    }

    async fn damage(&mut self) -> Result<()> {
        let newest = self.cast.newest();
        let of_kind = |what: &str| {
            let found = self
                .picture
                .inventory(newest)
                .iter()
                .find(|row| row.kind.ends_with(what))
                .cloned();
            found.with_context(|| format!("{newest} has no object of a kind that ends with {what}"))
        };
        let (template, class) = (of_kind("Template")?, of_kind("ClusterClass")?);
        self.screen.say(&format!(
            "Somebody with too many rights deletes a template and, at the same moment, makes the class refer to one that is \
             {NOWHERE}:"
        ));
        self.screen.quote(&format!(
            "kubectl delete {} {}\nkubectl edit {} {}",
            template.kind.to_lowercase(),
            template.name,
            class.kind.to_lowercase(),
            class.name
        ));
        self.screen
            .say("Watch both: one comes back, the other is changed back.");
        self.linger().await?;
        let damaged = [&template, &class].map(|row| (row.kind.clone(), row.name.clone()));
        for id in &damaged {
            self.picture.expect_damage(id);
        }
        let since = Instant::now();
        let (template, class) = (self.delete_object(&template), self.edit_class(&class));
        tokio::try_join!(template, class)?;
        self.until_repaired(newest, &damaged, since).await?;
        let after = |id: &Id| self.picture.repaired_after(id).map(short).unwrap_or_default();
        let [template, class] = damaged.each_ref().map(after);
        self.screen.good(&format!(
            "The template was back after {template}, the fields of the class after {class}."
        ));
        Ok(())
    }

    async fn drop_first(&mut self, second: &ReleaseTag) -> Result<()> {
        let first = &self.cast.first;
        let going = self.picture.versions_of(first).len();
        let untouched = self.picture.versions_of(second);
        self.screen.say(&format!(
            "The stack lists the new release and no longer {}. No cluster uses that one, so it goes, and its {} with it.",
            first.version(),
            count(going, "object")
        ));
        // Who follows the channel did not have to list the second one until now.
        let listed: &[&ReleaseTag] = if self.cast.is_ordered() {
            &[first]
        } else {
            &[first, second]
        };
        let listed: Vec<_> = listed.iter().map(|tag| tag.version().to_string()).collect();
        self.screen
            .quote(&format!("versions: [{}]  →  [{}]", listed.join(", "), second.version()));
        self.linger().await?;
        let since = self.apply(&self.stack(&[second])).await?;
        let gone = |picture: &Picture| picture.is_gone(first) && picture.usable_are(&[second]);
        let took = self
            .until(&format!("{} to be gone", first.version()), since, gone)
            .await?;
        ensure!(
            self.picture.versions_of(second) == untouched,
            "objects of {second} were changed"
        );
        self.screen.good(&format!(
            "{} and its {} are gone after {}; nothing of {} was changed.",
            first.version(),
            count(going, "object"),
            short(took),
            second.version()
        ));
        self.the_image_stays_for(second).await
    }

    async fn break_one(&mut self) -> Result<()> {
        let (broken, newest) = (&self.cast.broken, self.cast.newest());
        let untouched = self.picture.versions_of(newest);
        self.screen.say(&format!(
            "The release {broken} is published, but its {}.",
            self.cast.breakage()
        ));
        self.linger().await?;
        self.cast.publish_broken()?;
        let since = if self.cast.is_ordered() {
            Instant::now()
        } else {
            self.apply(&self.stack(&[newest, broken])).await?
        };
        let explained = |picture: &Picture| picture.complaint(broken).is_some();
        let took = self.until("an explanation", since, explained).await?;
        let passed_on = |picture: &Picture| picture.is_ready_beside(broken) && picture.usable_are(&[newest]);
        self.until("the stack to pass it on", Instant::now(), passed_on).await?;
        ensure!(self.picture.is_ready(newest), "{newest} is no longer ready");
        ensure!(
            self.picture.versions_of(newest) == untouched,
            "objects of {newest} were changed"
        );
        let complaint = self.picture.complaint(broken).unwrap_or_default().to_owned();
        self.screen
            .good(&format!("After {} its status says why it cannot be used:", short(took)));
        self.screen.quote(&complaint);
        self.screen.good(&format!(
            "The rest goes on: the stack stays ready, {} is usable as before, and who looks at the stack is told of {}.",
            newest.version(),
            broken.version()
        ));
        Ok(())
    }

    async fn delete(&mut self) -> Result<()> {
        self.screen.say(
            "The releases belong to it: Kubernetes deletes them too, and the operator removes what they are made of.",
        );
        self.screen.quote(&format!("kubectl delete clusterstack {STACK}"));
        self.linger().await?;
        let since = Instant::now();
        let stacks: Api<ClusterStack> = Api::namespaced(self.client.clone(), self.stage.namespace());
        stacks
            .delete(STACK, &DeleteParams::default())
            .await
            .context("failed to delete the stack")?;
        let took = self.until("everything to be gone", since, Picture::is_empty).await?;
        let left = self.left().await?;
        ensure!(left.is_empty(), "these objects are left: {}", left.join(", "));
        self.screen.good(&format!(
            "Nothing is left after {}: the API server has no object of these releases, of whatever kind.",
            short(took)
        ));
        self.no_image_is_left().await
    }

    /// The stack as its owners want it: it lists these releases and, where that means something, follows newer ones.
    pub(super) fn stack(&self, releases: &[&ReleaseTag]) -> Value {
        let first = &self.cast.first;
        let versions: Vec<_> = releases.iter().map(|tag| tag.version().to_string()).collect();
        let mut stack = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1",
            "kind": "ClusterStack",
            "metadata": { "name": STACK, "namespace": self.stage.namespace() },
            "spec": {
                "provider": first.provider(),
                "name": first.name(),
                "kubernetesVersion": first.kubernetes_minor().to_string(),
                "channel": first.version().channel().as_str(),
                "autoSubscribe": self.cast.is_ordered(),
                "versions": versions,
            },
        });
        match self.images() {
            Some(images) => stack["spec"]["providerRef"] = images.reference(),
            None => stack["spec"]["noProvider"] = true.into(),
        }
        stack
    }

    /// The answer is the moment of the asking.
    pub(super) async fn apply(&self, stack: &Value) -> Result<Instant> {
        let since = Instant::now();
        let stacks: Api<ClusterStack> = Api::namespaced(self.client.clone(), self.stage.namespace());
        let applied = stacks
            .patch(STACK, &PatchParams::apply(OWNER), &Patch::Apply(stack))
            .await;
        applied.context("failed to apply the stack")?;
        Ok(since)
    }

    async fn delete_object(&self, row: &Resource) -> Result<()> {
        let deleted = self.objects_like(row).delete(&row.name, &DeleteParams::default()).await;
        deleted
            .map(drop)
            .with_context(|| format!("failed to delete {}", row.name))
    }

    async fn edit_class(&self, row: &Resource) -> Result<()> {
        let classes = self.objects_like(row);
        let class = classes
            .get(&row.name)
            .await
            .with_context(|| format!("failed to read {}", row.name))?;
        // The two spellings of Cluster API's versions.
        let reference = ["ref", "templateRef"];
        let infrastructure = &class.data["spec"]["infrastructure"];
        let Some(reference) = reference
            .into_iter()
            .find(|field| infrastructure[field]["name"].is_string())
        else {
            bail!("the class {} refers to no template of its infrastructure", row.name)
        };
        let edit = json!({ "spec": { "infrastructure": { reference: { "name": NOWHERE } } } });
        let intruder = PatchParams {
            field_manager: Some(INTRUDER.to_owned()),
            ..PatchParams::default()
        };
        let edited = classes.patch(&row.name, &intruder, &Patch::Merge(edit)).await;
        edited.map(drop).with_context(|| format!("failed to edit {}", row.name))
    }

    fn objects_like(&self, row: &Resource) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&row.group, &row.version, &row.kind));
        Api::namespaced_with(self.client.clone(), self.stage.namespace(), &resource)
    }

    /// What the API server still has of any release that was there.
    async fn left(&self) -> Result<Vec<String>> {
        let tags = [
            Some(&self.cast.first),
            self.cast.second.as_ref(),
            Some(&self.cast.broken),
            self.cast.unwanted.as_ref(),
            self.cast.built.as_ref(),
        ];
        let mark = |tag: &ReleaseTag| labels::part_of("ClusterStackRelease", self.stage.namespace(), &tag.to_string());
        let marks: BTreeSet<_> = tags.into_iter().flatten().map(mark).collect();
        let marks = marks.into_iter().collect::<Vec<_>>().join(",");
        traces::with_labels(&self.client, &format!("{} in ({marks})", labels::PART_OF)).await
    }
}
