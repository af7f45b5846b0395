//! Commands as text, for scenarios and for properties, and steps as text.

use std::time::Duration;

use planning::image::{
    Algorithm, Deed, DeletionPolicy, Execution, Form, ImagePolicy, Intent, OpState, Settlement, Step, Via,
};

use super::cloud::{Image, Status, id_of};
use super::object::Spec;
use super::{Giving, Mishap, World};

pub(super) fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn digest(word: &str) -> Option<Algorithm> {
    match word {
        "none" => None,
        "sha256" => Some(Algorithm::Sha256),
        "sha512" => Some(Algorithm::Sha512),
        other => panic!("{other} is no digest"),
    }
}

fn policy(word: &str) -> ImagePolicy {
    match word {
        "Create" => ImagePolicy::Create,
        "Adopt" => ImagePolicy::Adopt,
        "IfMissing" => ImagePolicy::IfMissing,
        other => panic!("{other} is no policy"),
    }
}

fn via(word: &str) -> Via {
    match word {
        "Upload" => Via::Upload,
        "ServerSide" => Via::ServerSide,
        "Staged" => Via::Staged,
        other => panic!("{other} is no way"),
    }
}

fn execution(word: &str) -> Execution {
    match word {
        "Auto" => Execution::Auto,
        "Job" => Execution::Job,
        other => panic!("{other} is no form"),
    }
}

impl Spec {
    /// As `digest=sha256 via=ServerSide policy=Adopt` says.
    pub(crate) fn of(text: &str) -> Self {
        let mut spec = Self {
            url: 'a',
            build: false,
            execution: Execution::Auto,
            digest: None,
            option: 0,
            policy: ImagePolicy::Create,
            adopt: None,
            deletion: DeletionPolicy::Delete,
            via: Via::Upload,
            paused: false,
            request: 0,
        };
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            spec.edit(name, value);
        }
        spec
    }

    fn edit(&mut self, name: &str, value: &str) {
        match name {
            "url" => self.url = value.chars().next().unwrap_or('a'),
            "build" => self.build = value == "yes",
            "execution" => self.execution = execution(value),
            "digest" => self.digest = digest(value),
            "option" => self.option = number(value),
            "policy" => self.policy = policy(value),
            "adopt" => self.adopt = (value != "none").then(|| value.to_owned()),
            "deletion" if value == "Retain" => self.deletion = DeletionPolicy::Retain,
            "deletion" => self.deletion = DeletionPolicy::Delete,
            "via" => self.via = via(value),
            other => panic!("{other} is no field"),
        }
    }
}

impl World {
    /// Does what one line says.
    pub(crate) fn command(&mut self, line: &str) {
        self.log.push(format!("> {line}"));
        self.arrive();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["step"] => drop(self.step(Mishap::Nothing)),
            ["step", "and", mishap @ ..] => drop(self.step(mishap_of(mishap))),
            ["run"] => drop(self.run()),
            ["pass", seconds] => self.pass(Duration::from_secs(number(seconds))),
            ["settle", minutes] => self.settle(Duration::from_mins(number(minutes))),
            ["sleep"] => self.sleep(),
            ["wake", steps] => self.wake(number(steps)),
            ["crash"] => self.crash(self.leader),
            ["lag"] => self.operators[self.leader].lags = true,
            ["cloud", rest @ ..] => self.of_cloud(rest),
            ["source", rest @ ..] => self.of_source(rest),
            ["image", rest @ ..] => self.of_image(rest),
            ["stranger", rest @ ..] => self.of_stranger(rest),
            ["jobs" | "builds" | "node" | "pod", ..] => self.of_jobs(&words),
            other => self.of_object(other),
        }
        self.check();
    }

    fn of_cloud(&mut self, words: &[&str]) {
        match words {
            ["down"] => self.cloud.up = false,
            ["up"] => self.cloud.up = true,
            ["dies"] => self.cloud.dies(),
            ["full"] => self.cloud.room = false,
            ["has", "room"] => self.cloud.room = true,
            ["refuses", times] => self.cloud.refuses = number(times),
            ["loses", "imports", times] => self.cloud.loses_imports = number(times),
            ["leaves", "staged", times] => self.cloud.leaves_staged = number(times),
            ["converts"] => self.cloud.converts = true,
            ["converts", "nothing"] => self.cloud.converts = false,
            ["deletes", "late"] => self.cloud.deletes_late = true,
            ["deletes", "at", "once"] => self.cloud.deletes_late = false,
            ["lists", "late"] => self.cloud.listed = Some(self.cloud.images.clone()),
            ["lists", "at", "once"] => self.cloud.listed = None,
            ["loses", "deletions", times] => self.cloud.loses_deletions = number(times),
            other => panic!("{other:?} is no command"),
        }
    }

    fn of_source(&mut self, words: &[&str]) {
        match words {
            ["breaks", times] => self.giving = Giving::Broken(number(times)),
            ["gone"] => self.giving = Giving::Nothing,
            ["html"] => self.giving = Giving::Html,
            ["answers"] => self.giving = Giving::Bytes,
            ["replaced"] => self.replaced = true,
            ["restored"] => self.replaced = false,
            other => panic!("{other:?} is no command"),
        }
    }

    /// What an admin does to every image of ours.
    fn of_image(&mut self, words: &[&str]) {
        let ours = |image: &&mut Image| image.mark.is_some();
        let images = self.cloud.images.values_mut().filter(ours);
        match words {
            ["deactivated"] => images
                .filter(|image| image.status == Status::Active)
                .for_each(|image| image.status = Status::Deactivated),
            ["reactivated"] => images
                .filter(|image| image.status == Status::Deactivated)
                .for_each(|image| image.status = Status::Active),
            ["killed"] => images
                .filter(|image| image.content.is_none() && !image.is_going())
                .for_each(|image| image.status = Status::Killed),
            ["option", option] => {
                let option = number(option);
                images.for_each(|image| image.option = option);
            }
            ["in", "use"] => images.for_each(|image| image.in_use = true),
            ["free"] => images.for_each(|image| image.in_use = false),
            ["deleted"] => {
                let ids = self.cloud.images.iter().filter(|(_, image)| image.mark.is_some());
                let ids: Vec<String> = ids.map(|(id, _)| id.clone()).collect();
                for id in ids {
                    self.cloud.images.remove(&id);
                    self.cloud.tombstones.insert(id);
                }
            }
            other => panic!("{other:?} is no command"),
        }
    }

    fn of_stranger(&mut self, words: &[&str]) {
        let (id, image) = match words {
            ["of", "our", "name", id] => ((*id).to_owned(), Image::stranger(1, true)),
            ["with", "other", "bytes", id] => ((*id).to_owned(), Image::stranger(9, true)),
            ["takes", "the", "next", "id"] => {
                let next = self.object.kept.attempt + 1;
                (id_of(&self.object.spec.key(), next), Image::stranger(9, false))
            }
            ["goes", id] => {
                self.strangers.retain(|(stranger, _)| stranger != id);
                if self.cloud.images.get(*id).is_some_and(|image| image.mark.is_none()) {
                    self.cloud.images.remove(*id);
                }
                return;
            }
            other => panic!("{other:?} is no command"),
        };
        if !self.cloud.images.contains_key(&id) {
            self.strangers.push((id.clone(), image.clone()));
            self.cloud.images.insert(id, image);
        }
    }

    fn of_object(&mut self, words: &[&str]) {
        if self.object.gone {
            return;
        }
        let wall = self.now().wall;
        let object = &mut self.object;
        object.version += 1;
        match words {
            ["edit", edit] => {
                let (name, value) = edit.split_once('=').unwrap_or((edit, ""));
                object.spec.edit(name, value);
                object.generation += 1;
            }
            ["pause"] => object.spec.paused = true,
            ["resume"] => object.spec.paused = false,
            ["request"] => object.spec.request += 1,
            ["delete"] => {
                object.deleting = object.deleting.or(Some(wall));
                object.gone = !object.finalizer;
            }
            ["secret", "rotates"] => object.secret += 1,
            ["secret", "gone"] => object.secret = 0,
            ["secret", "back"] => object.secret = object.secret.max(1),
            ["status", "lost"] => {
                object.kept = planning::image::Kept::default();
                self.attempt_before = 0;
                self.status = crds::providers::image_status::NodeImageStatus::default();
            }
            other => panic!("{other:?} is no command"),
        }
    }

    /// Adds a step to the log.
    pub(super) fn tell(&mut self, who: usize, step: &Step) {
        let text = match step {
            Step::Settle(settlement) => self.settled(who, settlement),
            step => described(step),
        };
        self.log.push(format!("    {}: {text}", ["one", "two"][who]));
    }

    fn settled(&self, who: usize, settlement: &Settlement) -> String {
        let outcome = match self.operators[who].op.as_ref().map(|op| &op.state) {
            Some(OpState::Ended { outcome: Ok(done), .. }) => format!("{done:?}"),
            Some(OpState::Ended {
                outcome: Err(failure), ..
            }) => format!("{:?}", failure.class),
            _ => String::new(),
        };
        let then = match settlement {
            Settlement::Progressed | Settlement::Nothing => String::new(),
            Settlement::Retry(retry) => {
                let delay = retry.until.duration_since(self.now().wall).as_secs();
                format!(", number {}, again in {delay} s", retry.count)
            }
            Settlement::Halt(halted) => format!(", halts: {:?}", halted.reason),
            Settlement::Burned { attempt } => format!(", attempt {attempt} is next"),
            Settlement::ImportRefused => ", bytes are sent".to_owned(),
        };
        format!("notes {outcome}{then}")
    }
}

/// A step in words.
pub(crate) fn described(step: &Step) -> String {
    match step {
        Step::Record(Intent::Attempt { number, key, why }) => format!("writes attempt {number} of {key}: {why:?}"),
        Step::Record(Intent::Publishing { id, .. }) => format!("writes that {id} is to be shown"),
        Step::Record(Intent::Image { image }) if image.adopted => format!("writes that {} is used", image.id),
        Step::Record(Intent::Image { image }) => format!("writes that {} is had", image.id),
        Step::Record(Intent::Forget) => "forgets the other content".to_owned(),
        Step::Record(Intent::Anew) => "begins anew".to_owned(),
        Step::Do {
            deed,
            form: Form::InProcess,
        } => told(deed),
        Step::Do { deed, form: Form::Job } => format!("{} in a Job", told(deed)),
        Step::Stop(why) => format!("stops it: {why:?}"),
        Step::Settle(settlement) => format!("notes {settlement:?}"),
        Step::Claim => "claims the object".to_owned(),
        Step::Finish { left_behind } if left_behind.is_empty() => "lets the object go".to_owned(),
        Step::Finish { left_behind } => format!("lets the object go and leaves {}", left_behind.join(", ")),
        Step::Await(wait) => format!("waits: {:?}, {}", wait.reason, wait.message),
        Step::Rest { .. } => "rests".to_owned(),
        Step::Hold(halt) => format!("holds: {:?}, {}", halt.reason, halt.message),
    }
}

fn told(deed: &Deed) -> String {
    match deed {
        Deed::Look => "looks".to_owned(),
        Deed::Probe => "asks the source".to_owned(),
        Deed::Create { attempt, .. } => format!("creates attempt {attempt}"),
        Deed::Transfer { id, staged: false, .. } => format!("sends {id}"),
        Deed::Transfer { id, staged: true, .. } => format!("sends {id} to a stage"),
        Deed::Import { id, .. } => format!("has {id} fetched"),
        Deed::Build { id, .. } => format!("builds {id}"),
        Deed::ReadBack { id, .. } => format!("reads {id} back"),
        Deed::Publish { id, verified, .. } => {
            let (kind, hex) = verified.split_once(':').unwrap_or(("", verified));
            format!("shows {id}, verified as {kind}:{}", hex.trim_start_matches('0'))
        }
        Deed::Amend { id } => format!("amends {id}"),
        Deed::Discard { id, why, .. } => format!("discards {id}: {why:?}"),
        Deed::Relinquish { id } => format!("takes the marks off {id}"),
    }
}

fn mishap_of(words: &[&str]) -> Mishap {
    match words {
        ["lose", "the", "answer"] => Mishap::AnswerLost,
        ["crash", "before"] => Mishap::CrashBefore,
        ["crash", "after"] => Mishap::CrashAfter,
        ["arrive", "late", commands] => Mishap::Late(number(commands)),
        ["hang"] => Mishap::Hangs,
        other => panic!("{other:?} is no mishap"),
    }
}
