//! What a test does to the services behind everybody's back, and what it may ask them.

use std::sync::atomic::Ordering;

use http::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::Value;

use super::{
    Fake,
    faults::Asked,
    identity::project_id,
    model::{Image, Status},
};

impl Fake {
    /// The id of a project of this name.
    pub fn project_id(&self, project: &str) -> String {
        project_id(project)
    }

    /// The image, as its owner would be shown it; none if it is gone.
    pub fn image(&self, id: &str) -> Option<Value> {
        self.shared.state().images.get(id).map(Image::shown)
    }

    /// The ids of all images of all projects, in the order in which they were made.
    pub fn ids(&self) -> Vec<String> {
        let state = self.shared.state();
        let mut images: Vec<_> = state.images.values().collect();
        images.sort_by_key(|image| image.number);
        images.iter().map(|image| image.id.clone()).collect()
    }

    /// Forbids the use of an image, as an administrator does.
    pub fn deactivate(&self, id: &str) {
        self.set_status(id, Status::Deactivated);
    }

    /// Allows it again.
    pub fn reactivate(&self, id: &str) {
        self.set_status(id, Status::Active);
    }

    /// Gives an image up, as old versions of the service did.
    pub fn kill(&self, id: &str) {
        self.set_status(id, Status::Killed);
    }

    /// Has an image wait for its deletion, as a service does that deletes later.
    pub fn delay_deletion(&self, id: &str) {
        self.set_status(id, Status::PendingDelete);
    }

    /// Has an image be made so much earlier than it was.
    pub fn grow_older(&self, id: &str, by: SignedDuration) {
        if let Some(image) = self.shared.state().images.get_mut(id) {
            image.created = image.created.saturating_sub(by).unwrap_or(image.created);
        }
    }

    fn set_status(&self, id: &str, status: Status) {
        if let Some(image) = self.shared.state().images.get_mut(id) {
            image.status = status;
            image.touch();
        }
    }

    /// Deletes an image without asking anybody; its id stays taken.
    pub fn remove(&self, id: &str) {
        let mut state = self.shared.state();
        state.images.remove(id);
        state.gone.insert(id.to_owned());
    }

    /// Lets imports stand still wherever they are, or go on.
    pub fn hold_imports(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// From now on imports make raw images of what they get, as a service does whose operator had it set up so.
    pub fn convert_imports(&self) {
        self.shared.converts.store(true, Ordering::Relaxed);
    }

    /// The services die and are there again at once: every connection is closed, and what was being sent or imported stays so for ever.
    pub fn crash(&self) {
        self.shared.lives.send_modify(|life| *life += 1);
    }

    /// Makes every token that was given worthless.
    pub fn revoke_tokens(&self) {
        self.shared.state().sessions.clear();
    }

    /// Makes the application credential of the cloud `openstack` or `images-only` worthless, as if it were deleted.
    pub fn revoke_credential(&self, cloud: &str) {
        let name = if cloud == "openstack" { "operator" } else { cloud };
        self.shared.state().revoked.insert(name.to_owned());
    }

    /// So many requests of this method, whose target has this part, get no answer.
    pub fn hang(&self, method: Method, part: &str, times: usize) {
        self.shared.faults.hang(method, part, times);
    }

    /// So many requests are answered so, before anything of their body is read.
    pub fn answer(
        &self,
        method: Method,
        part: &str,
        status: StatusCode,
        headers: &[(&str, &str)],
        body: &str,
        times: usize,
    ) {
        self.shared.faults.answer(method, part, status, headers, body, times);
    }

    /// So many requests are done and their answers lost: the connection closes without one.
    pub fn lose_answer(&self, method: Method, part: &str, times: usize) {
        self.shared.faults.lose(method, part, times);
    }

    /// Nothing is done any more instead of the work. What hangs already hangs on.
    pub fn relent(&self) {
        self.shared.faults.relent();
    }

    /// Every request so far, in the order in which they came, of both services.
    pub fn requests(&self) -> Vec<Asked> {
        self.shared.faults.asked()
    }

    /// How many of them are of this method and have this part in their target.
    pub fn count(&self, method: &Method, part: &str) -> usize {
        let is_meant = |asked: &&Asked| asked.method == *method && asked.target.contains(part);
        self.requests().iter().filter(is_meant).count()
    }
}
