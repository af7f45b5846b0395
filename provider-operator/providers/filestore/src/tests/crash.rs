//! Whatever call to the disk is the last one, the next life makes a whole image of what is there, and takes it away whole.

use std::sync::Arc;

use provider_plugin::ImageStore;

use super::lab::{Lab, disk_image, operate, tidy};
use crate::faults::{Fault, Faults};

const NAME: &str = "node-image-v2";
const FAULTS: [Fault; 4] = [Fault::Fails, Fault::Halves, Fault::Crashes, Fault::Tears];

fn lab() -> Lab {
    Lab::with(disk_image(300_000), 100_000)
}

/// Nobody ever reads half an image under its name.
fn shows_all_or_nothing(lab: &Lab, at: &str) {
    if let Some(published) = lab.published(NAME) {
        assert!(published == lab.bytes, "{at}: half an image is published");
    }
}

fn is_empty(lab: &Lab, at: &str) {
    let left = lab.files();
    assert!(left.is_empty(), "{at}: {left:?} are left");
}

#[tokio::test]
async fn an_image_comes_into_being_whatever_call_fails() {
    for fault in FAULTS {
        let mut call = 1;
        loop {
            let at = format!("{fault:?} at call {call}");
            let lab = lab();
            let (image, source) = (lab.spec(NAME), Arc::new(lab.source()));
            let faults = Arc::<Faults>::default();
            faults.plan(call, fault);
            let store = lab.breaking(&faults);
            let ended = operate(&store, &image, &source).await;
            let is_over = faults.calls() < call;
            shows_all_or_nothing(&lab, &at);
            // A process that only saw a call fail lives on; one that was killed does not.
            let next = if matches!(fault, Fault::Fails | Fault::Halves) {
                store
            } else {
                lab.open()
            };
            let finished = operate(&next, &image, &source).await;
            assert!(finished.is_ok(), "{at}: after {ended:?} {finished:?}");
            lab.has_published(NAME);
            tidy(&lab.open(), &image.subject.owner).await.unwrap();
            is_empty(&lab, &at);
            if is_over {
                break;
            }
            call += 1;
        }
        // Making, sending with what is confirmed on the way, and publishing: a number that says that all of it was tried.
        assert!(call > 30, "{fault:?}: {call} calls");
    }
}

#[tokio::test]
async fn an_image_goes_whatever_call_fails() {
    for fault in FAULTS {
        let mut call = 1;
        loop {
            let at = format!("{fault:?} at call {call}");
            let lab = lab();
            let (image, source) = (lab.spec(NAME), Arc::new(lab.source()));
            operate(&lab.open(), &image, &source).await.unwrap();
            let faults = Arc::<Faults>::default();
            faults.plan(call, fault);
            let ended = tidy(&lab.breaking(&faults), &image.subject.owner).await;
            shows_all_or_nothing(&lab, &at);
            let left = lab.open().owned(&image.subject.owner).await.unwrap();
            assert!(
                !left.is_empty() || ended.is_ok() || lab.files().is_empty(),
                "{at}: {:?} is nobody's",
                lab.files()
            );
            tidy(&lab.open(), &image.subject.owner).await.unwrap();
            is_empty(&lab, &at);
            if faults.calls() < call {
                break;
            }
            call += 1;
        }
        assert!(call > 6, "{fault:?}: {call} calls");
    }
}
