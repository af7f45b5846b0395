//! The act in which a Job builds a node image: by a script in a container, which leaves it to the container that sends it.

use anyhow::{Context, Result, ensure};
use crds::names::ReleaseTag;
use e2e::{eventually, kubelet::Kind};
use serde_json::json;

use super::{image_acts::SOON, picture::Picture, play::Play, text::short};

/// The container of the Pod in which the script runs.
const CONTAINER: &str = "build";
/// Of a processor, where people watch: what takes less than a second otherwise can be seen so.
const SLOW: &str = "50m";

impl Play<'_> {
    /// A release whose node image nobody has.
    pub(super) async fn build(&mut self, tag: &ReleaseTag) -> Result<()> {
        let images = self.images().context("the demo has no node images")?;
        let disk = images.built.as_ref().context("the demo builds no node image")?;
        let newest = self.cast.newest();
        self.screen.say(&format!(
            "The release {tag} is published. Nobody has its node image: its node-images.yaml says how it is made."
        ));
        self.screen.quote(&images.told(disk)?);
        self.screen
            .say("Nothing of that runs in the operator. It makes a Job, whose Pod runs the script, and then sends what it left.");
        self.slow_down().await?;
        self.linger().await?;
        self.cast.publish(tag)?;
        let mut stack = self.stack(&[newest, tag]);
        stack["spec"]["autoSubscribe"] = false.into();
        let since = self.apply(&stack).await?;
        let has_built = |picture: &Picture| picture.pod_that_built(tag).is_some();
        let took = self.until("the script to end", since, has_built).await?;
        let pod = self.picture.pod_that_built(tag).context("a Pod has built")?;
        let log = self.log_of(&pod).await?;
        self.screen.good(&format!(
            "The script is done {} after the release was wanted:",
            short(took)
        ));
        let command = format!("kubectl logs -n {} {pod} -c {CONTAINER}", self.stage.namespace());
        self.screen.quote(&format!("{command}\n{}", log.trim_end()));
        let took = self.until_usable(tag, &[newest, tag], since).await?;
        images.there_is_only(&[&images.first, disk]).await?;
        self.images_played.built += 1;
        self.screen.good(&format!(
            "The other container of the Pod sent the {} MiB, and verified them: {} has the image.",
            disk.mebibytes(),
            images.place()
        ));
        self.screen.good(&format!(
            "Then came the class: {} was usable after {}.",
            tag.version(),
            short(took)
        ));
        Ok(())
    }

    /// What the script has written. It may be a moment until the node gives it.
    async fn log_of(&self, pod: &str) -> Result<String> {
        let kubelet = self.stage.kubelet().context("no Pods run here")?;
        let namespace = self.stage.namespace();
        eventually(SOON, "the log of the script", async || {
            let log = kubelet.logs(namespace, pod, CONTAINER).await?;
            ensure!(!log.is_empty(), "it is empty");
            Ok::<_, anyhow::Error>(log)
        })
        .await
    }

    /// Has containers of the demo take their time, where somebody watches them. The stand-in cannot hold them back.
    async fn slow_down(&mut self) -> Result<()> {
        let is_real = self.stage.kubelet().is_some_and(|kubelet| kubelet.kind() == Kind::Real);
        if !is_real || !self.screen.is_live() {
            return Ok(());
        }
        let limits = json!({
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": { "name": "slow", "namespace": self.stage.namespace() },
            "spec": { "limits": [{ "type": "Container", "default": { "cpu": SLOW }, "defaultRequest": { "cpu": "10m" } }] },
        });
        self.apply_object(&limits).await?;
        self.screen.say(&format!(
            "A LimitRange gives its containers {SLOW} of a processor, so that there is something to see."
        ));
        Ok(())
    }
}
