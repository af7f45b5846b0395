//! Imports: taken on at once, done beside the answer, and told by the marks and tasks of the image. One that is deleted goes on fetching, unseen.

use std::sync::{Arc, atomic::Ordering};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::{
    DEFAULT_STORE, STORES, Shared,
    answers::{Answer, Refusal, empty, ok},
    images::{Call, visible},
    model::{Image, Status, Task},
    quota,
    upload::{Place, Received, Receiving},
};
use crate::client::{Client, whole};

/// From where images may be fetched.
const ALLOWED_HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];

/// What every failed import says.
const FAILED: &str = "Task failed due to Internal Error";

enum Source {
    Web(Url),
    Staged(Box<Received>),
}

/// Takes an import on.
pub(super) fn begin(call: &Call<'_>, id: &str, body: &Value) -> Result<Answer, Refusal> {
    let method = body["method"]["name"].as_str().unwrap_or_default();
    if !call.shared.options.methods.iter().any(|known| known == method) {
        return Err(Refusal::bad(format!("Unknown import method name '{method}'.")));
    }
    let web = match method {
        "web-download" => Some(filtered(&body["method"]["uri"])?),
        "glance-direct" => None,
        _ => return Err(Refusal::forbidden("Only admins can make additional image copies.")),
    };
    let stores = chosen_stores(body)?;
    let mut state = call.shared.state();
    may_begin(visible(&state, id, call.project)?, method, web.is_some())?;
    if web.is_some() {
        quota::upload(call.shared, &state, call.project, Place::File, None)?;
    }
    let task = state.id();
    let Some(image) = state.images.get_mut(id) else {
        return Err(Refusal::not_found(id));
    };
    let source = match (web, image.staged.take()) {
        (Some(url), _) => Source::Web(url),
        (None, Some(staged)) => Source::Staged(Box::new(staged)),
        (None, None) => return Err(Refusal::conflict("Image has no staged data yet")),
    };
    image.import = Some(task.clone());
    image.importing_to = Some(stores.join(","));
    image.failed_import = Some(String::new());
    image.tasks.push(Task {
        id: task.clone(),
        status: "pending",
        message: String::new(),
    });
    image.touch();
    drop(state);
    let work = Work {
        shared: Arc::clone(call.shared),
        id: id.to_owned(),
        task,
        life: call.shared.life(),
    };
    tokio::spawn(work.done(source));
    Ok(empty(StatusCode::ACCEPTED))
}

/// Whether an image is in the state for an import from the web, or of what is staged.
fn may_begin(image: &Image, method: &str, is_from_web: bool) -> Result<(), Refusal> {
    let wanted = if is_from_web { Status::Queued } else { Status::Uploading };
    let fields = &image.fields;
    if image.import.is_some() {
        return Err(Refusal::conflict("Image has active task"));
    }
    if fields.disk_format.is_none() || fields.container_format.is_none() {
        let words = "'disk_format' and 'container_format' need to be set before import";
        return Err(Refusal::conflict(words));
    }
    if image.status != wanted {
        let words = format!(
            "Image needs to be in '{}' state to use '{method}' method",
            wanted.word()
        );
        return Err(Refusal::conflict(words));
    }
    Ok(())
}

/// Refuses at once what may not be fetched.
fn filtered(uri: &Value) -> Result<Url, Refusal> {
    let text = uri.as_str().unwrap_or_default();
    let url = Url::parse(text).ok();
    let url = url.filter(|url| url.host_str().is_some_and(|host| ALLOWED_HOSTS.contains(&host)));
    let url = url.filter(|url| ["http", "https"].contains(&url.scheme()));
    url.ok_or_else(|| Refusal::bad(format!("URI for web-download does not pass filtering: {text}")))
}

fn chosen_stores(body: &Value) -> Result<Vec<String>, Refusal> {
    if body["all_stores"] == true {
        return Ok(STORES.map(str::to_owned).to_vec());
    }
    let chosen = body["stores"].as_array().into_iter().flatten();
    let chosen: Vec<String> = chosen.filter_map(|store| Some(store.as_str()?.to_owned())).collect();
    if let Some(unknown) = chosen.iter().find(|store| !STORES.contains(&store.as_str())) {
        return Err(Refusal::conflict(format!("Unknown store: {unknown}")));
    }
    Ok(if chosen.is_empty() {
        vec![DEFAULT_STORE.to_owned()]
    } else {
        chosen
    })
}

/// An import that goes on.
struct Work {
    shared: Arc<Shared>,
    id: String,
    task: String,
    life: u64,
}

impl Work {
    async fn done(self, source: Source) {
        self.shared.until_imports_go_on().await;
        self.change(|image, task| {
            image.status = Status::Importing;
            task.status = "processing";
        });
        let received = match source {
            Source::Staged(received) => Some(*received),
            Source::Web(url) => fetch(&url, self.shared.options.keep).await,
        };
        self.change(|_, task| {
            let mib = received.as_ref().map_or(0, |received| received.sums.size >> 20);
            task.message = format!("Copied {mib} MiB");
        });
        self.shared.until_imports_go_on().await;
        self.change(|image, task| {
            let outcome = received
                .filter(|_| !image.is_spoilt)
                .map(|received| image.store(received));
            image.import = None;
            let stores = image.importing_to.replace(String::new()).unwrap_or_default();
            if let Some(Ok(())) = outcome {
                if self.shared.converts.load(Ordering::Relaxed) {
                    convert(image);
                }
                task.status = "success";
                return;
            }
            // Unlike an upload, this leaves no sums behind.
            image.sums = None;
            image.status = Status::Queued;
            image.failed_import = Some(stores);
            task.status = "failure";
            FAILED.clone_into(&mut task.message);
        });
    }

    /// Changes the image and its task, if it is still there and the service still runs.
    fn change(&self, change: impl FnOnce(&mut Image, &mut Task)) {
        let mut state = self.shared.state();
        if self.shared.life() != self.life {
            return;
        }
        let image = state.images.get_mut(&self.id);
        let Some(image) = image.filter(|image| image.import.as_deref() == Some(&self.task)) else {
            return;
        };
        let Some(place) = image.tasks.iter().position(|task| task.id == self.task) else {
            return;
        };
        let mut task = image.tasks[place].clone();
        change(image, &mut task);
        image.tasks[place] = task;
        image.touch();
    }
}

/// Other bytes, and more of them: which ones is nothing that anybody could check.
fn convert(image: &mut Image) {
    let raw = vec![0; 1 << 20];
    let mut receiving = Receiving::new(raw.len());
    receiving.take(&raw);
    let Received { sums, data, .. } = receiving.done();
    (image.sums, image.data) = (Some(sums), data);
    image.fields.disk_format = Some("raw".to_owned());
}

async fn fetch(url: &Url, keep: usize) -> Option<Received> {
    let client = Client::new(None).ok()?;
    let reply = client.send(Method::GET, url, &[], whole("")).await.ok()?;
    if reply.status != StatusCode::OK {
        return None;
    }
    let mut receiving = Receiving::new(keep);
    receiving.take(&reply.body);
    Some(receiving.done())
}

/// What is told of the imports of an image.
pub(super) fn tasks(call: &Call<'_>, id: &str) -> Result<Answer, Refusal> {
    let state = call.shared.state();
    let image = visible(&state, id, call.project)?;
    let tasks = image.tasks.iter().map(|task| {
        json!({ "id": task.id, "image_id": id, "status": task.status, "message": task.message, "type": "api_image_import" })
    });
    let tasks: Vec<Value> = tasks.collect();
    Ok(ok(&json!({ "tasks": tasks })))
}
