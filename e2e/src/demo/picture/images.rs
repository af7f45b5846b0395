//! Node images in the picture: their rows, and answers to what an act waits for.

use crds::{
    names::ReleaseTag,
    providers::image_status::{ImagePhase, NodeImageStatus, TransferStatus},
};

use super::{
    super::{text::count, watches::Image},
    Picture, Row, Tone,
};

impl Picture {
    pub(super) fn take_image(&mut self, image: Image) {
        self.images.insert(image.name.clone(), image);
    }

    /// The rows of the images that a release needs.
    pub(super) fn image_rows(&self, release: &str) -> Vec<Row> {
        let images = self.images.values();
        images
            .filter(|image| image.owners.contains(release))
            .flat_map(|image| self.rows_of_image(image))
            .collect()
    }

    /// The rows of the images whose releases are gone.
    pub(super) fn rows_of_left_images(&self) -> Vec<Row> {
        let is_left = |image: &&Image| image.owners.iter().all(|owner| !self.releases.contains_key(owner));
        let left = self.images.values().filter(is_left);
        let rows = left.flat_map(|image| self.rows_of_image(image));
        rows.map(|row| Row { depth: 1, ..row }).collect()
    }

    /// The image, and the Jobs that work on it.
    fn rows_of_image(&self, image: &Image) -> Vec<Row> {
        let mut rows = vec![self.image_row(image)];
        rows.extend(self.job_rows(image));
        rows
    }

    /// How much of the image of a release was sent, in percent; absent while nothing is on its way.
    pub(in super::super) fn percent_sent(&self, tag: &ReleaseTag) -> Option<u8> {
        self.transfer_of(tag).and_then(percent)
    }

    /// Whether there is no image that this release and no other needs.
    pub(in super::super) fn has_no_image_for(&self, tag: &ReleaseTag) -> bool {
        let tag = tag.to_string();
        let only = |image: &Image| image.owners.iter().all(|owner| *owner == tag);
        !self.images.values().any(only)
    }

    /// What a release waits for, where it is a node image: the row of the image says all the rest, and newer.
    pub(super) fn waits_for_image(&self, release: &str) -> bool {
        let mut images = self.images.values();
        images.any(|image| image.owners.contains(release) && !image.status.ready && !image.deleting)
    }

    fn image_row(&self, image: &Image) -> Row {
        let status = &image.status;
        let (tone, state, note, percent) = if image.deleting {
            (Tone::Busy, "going", String::new(), None)
        } else {
            match status.phase {
                _ if status.ready => (Tone::Good, "ready", self.whole(image), None),
                Some(ImagePhase::Failed) => (Tone::Bad, "failed", status.message.clone().unwrap_or_default(), None),
                Some(ImagePhase::Transferring) => {
                    let (note, percent) = under_way(status);
                    (Tone::Busy, "sending", note, percent)
                }
                phase => (Tone::Busy, word(phase), retry(status), None),
            }
        };
        Row {
            depth: 2,
            id: (image.kind.to_owned(), image.name.clone()),
            tone,
            state: state.to_owned(),
            note,
            is_image: true,
            percent,
        }
    }

    /// What an image has that can be used.
    fn whole(&self, image: &Image) -> String {
        let size = image.status.image.as_ref().and_then(|image| image.size_bytes);
        let size = size.map(|bytes| format!("{} MiB, verified", bytes >> 20));
        let here = image.owners.iter().filter(|owner| self.releases.contains_key(*owner));
        let releases = here.count();
        let shared = (releases > 1).then(|| format!("shared by {}", count(releases, "release")));
        size.into_iter().chain(shared).collect::<Vec<_>>().join(", ")
    }

    fn transfer_of(&self, tag: &ReleaseTag) -> Option<&TransferStatus> {
        let tag = tag.to_string();
        let image = self.images.values().find(|image| image.owners.contains(&tag))?;
        image.status.transfer.as_ref()
    }
}

fn word(phase: Option<ImagePhase>) -> &'static str {
    match phase {
        Some(ImagePhase::Preparing) => "preparing",
        Some(ImagePhase::Building) => "building",
        Some(ImagePhase::Importing) => "importing",
        Some(ImagePhase::Verifying) => "verifying",
        Some(ImagePhase::Deleting) => "going",
        _ => "new",
    }
}

/// How far the attempt is that is under way.
fn under_way(status: &NodeImageStatus) -> (String, Option<u8>) {
    let transfer = status.transfer.as_ref();
    let Some(transfer) = transfer.filter(|transfer| status.attempt == Some(transfer.attempt)) else {
        return (String::new(), None);
    };
    let mut words = vec![transfer.summary.clone()];
    if transfer.resumes > 0 {
        words.push("resumed".to_owned());
    }
    words.retain(|word| !word.is_empty());
    (words.join(", "), percent(transfer))
}

/// Never 100 before it is so.
fn percent(transfer: &TransferStatus) -> Option<u8> {
    let total = transfer.total_bytes.filter(|total| *total > 0)?;
    u8::try_from(transfer.sent_bytes.clamp(0, total) * 100 / total).ok()
}

fn retry(status: &NodeImageStatus) -> String {
    status
        .retry
        .as_ref()
        .map(|retry| retry.message.clone())
        .unwrap_or_default()
}
