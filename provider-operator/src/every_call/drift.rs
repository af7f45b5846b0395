//! Images that somebody does something to behind the operator's back. Nobody says so: it looks by itself now and then.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{FIRST, IMAGE, LONG, begin, disk, files, operated, release};
use operator_kit::in_memory::Server;
use operator_kit::in_memory::journey::paused;

const NAME: &str = "ubuntu-v1.raw";

/// The object of the image of the release.
fn image(server: &Server) -> Value {
    let named = server.find(super::RELEASE, FIRST);
    let name = named["status"]["images"][0]["name"]
        .as_str()
        .expect("an image")
        .to_owned();
    server.find(IMAGE, &name)
}

fn is_ready(server: &Server) -> bool {
    let release = &server.find(super::RELEASE, FIRST)["status"]["ready"];
    let image = &image(server)["status"]["ready"];
    assert_eq!(release, image, "{:#}", server.find(super::RELEASE, FIRST));
    image == true
}

#[test]
fn an_image_that_is_not_there_any_more_is_noticed_made_again_and_not_called_ready_meanwhile() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let file = store.path().join(NAME);
    operated(&paused(), &server, store.path(), &[], async || {
        server.apply(&release(FIRST));
        sleep(LONG).await;
        assert!(is_ready(&server), "{:#}", image(&server));

        // Gone, and in its place is something that the operator may not touch.
        fs::remove_file(&file).expect("the image");
        fs::write(&file, b"somebody's").expect("a file");
        sleep(LONG).await;
        assert!(!is_ready(&server), "{:#}", image(&server));
        assert_eq!(fs::read(&file).expect("a file"), b"somebody's");

        fs::remove_file(&file).expect("somebody's file");
        sleep(LONG).await;
        assert!(is_ready(&server), "{:#}", image(&server));
        assert_eq!(fs::read(&file).expect("the image"), disk());

        // Gone with all that was known of it.
        for entry in fs::read_dir(store.path()).expect("the store") {
            let path = entry.expect("a file").path();
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.expect("nothing of it");
        }
        sleep(LONG).await;
        assert!(is_ready(&server), "{:#}", image(&server));
        assert_eq!(files(store.path())[0], (NAME.to_owned(), disk().len() as u64));
        assert_eq!(
            image(&server)["metadata"]["annotations"][crds::labels::REQUESTED_AT],
            Value::Null
        );
    });
}
