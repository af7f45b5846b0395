//! Jobs that send images, of which few may be there at once: their sources are real, and nobody runs them.

use operator_kit::in_memory::Server;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::images::{PATIENCE, PAUSE, Web, real};
use super::{IMAGE, begin, disk, operated};

const FLAGS: [&str; 6] = [
    "--jobs",
    "--worker-image=here",
    "--job-volume=default=host:/srv",
    "--max-transfers=1",
    "--allow-plain-http",
    "--allow-source-network=127.0.0.0/8",
];

fn image(url: &str, name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
        "metadata": { "name": name, "namespace": "fleet" },
        "spec": { "store": "default", "execution": "Job", "image": { "url": url, "name": format!("{name}.raw"), "format": "raw" } },
    })
}

/// The objects whose images Jobs are to send.
fn sent(server: &Server) -> Vec<String> {
    let jobs = server.objects().into_iter().filter(|(key, _)| key.0 == "Job");
    let owner = |job: &Value| {
        job["metadata"]["ownerReferences"][0]["name"]
            .as_str()
            .map(str::to_owned)
    };
    jobs.filter_map(|(_, job)| owner(&job)).collect()
}

/// The Job that the status names.
fn named(server: &Server, name: &str) -> Value {
    let execution = server.find(IMAGE, name)["status"]["execution"].clone();
    assert_eq!(execution["form"], "Job", "{execution:#}");
    assert_eq!(execution["job"].is_null(), execution["logs"].is_null(), "{execution:#}");
    execution["job"].clone()
}

/// The name of the one that is there.
fn job_of(server: &Server, name: &str) -> Value {
    let jobs = server.objects().into_iter().filter(|(key, _)| key.0 == "Job");
    let mut of_object = jobs.filter(|(_, job)| job["metadata"]["ownerReferences"][0]["name"] == name);
    of_object.next().map_or(Value::Null, |(key, _)| Value::from(key.2))
}

async fn until(server: &Server, is_so: impl Fn(&Server) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so(server) {
        assert!(Instant::now() < end, "not so: {:#?}", server.objects());
        sleep(PAUSE).await;
    }
}

#[test]
fn a_job_that_sends_an_image_is_made_when_there_is_a_place_for_it() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let web = Web::with(disk());
    operated(&real(), &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url, "first"));
        until(&server, |server| sent(server) == ["first"]).await;
        server.apply(&image(&web.url, "second"));
        let is_told = |server: &Server| {
            let status = server.find(IMAGE, "second")["status"].clone();
            status["conditions"].to_string().contains("it is next in line")
        };
        until(&server, is_told).await;
        assert_eq!(sent(&server), ["first"]);
        until(&server, |server| named(server, "first") == job_of(server, "first")).await;
        assert_eq!(named(&server, "second"), Value::Null, "nobody has made it");
        server.delete(IMAGE, "first");
        until(&server, |server| sent(server) == ["second"]).await;
        until(&server, |server| named(server, "second") == job_of(server, "second")).await;
        // Nobody waits for a place whose object goes.
        server.apply(&image(&web.url, "third"));
        until(&server, |server| {
            !server.find(IMAGE, "third")["status"]["attempt"].is_null()
        })
        .await;
        server.delete(IMAGE, "third");
        until(&server, |server| server.find(IMAGE, "third").is_null()).await;
        assert_eq!(sent(&server), ["second"]);
    });
}
