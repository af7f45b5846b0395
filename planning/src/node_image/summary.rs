//! How the images of a release stand: each in a row, and all of them together.

use crds::conditions::{Reason, Severity, cut};
use crds::providers::image_status::{ImagePhase, ImageRow, Progress, ProviderPhase};

use super::observed::ImageView;

/// One image that the release asks for, or owns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) state: RowState<'a>,
}

/// How it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowState<'a> {
    /// As its object says.
    Image { view: &'a ImageView },
    /// Its object is not there, or not in line, and is about to be.
    Missing,
    /// An object of the name is being deleted, and is made again afterwards.
    Leaving,
    /// `clusterctl` took its object to another management cluster.
    Moved,
    /// Another release has another image under the name.
    Differs { view: &'a ImageView },
    /// The object is somebody else's.
    Foreign,
    /// Its object could not be written.
    Refused { message: String },
}

/// A write that was refused, and is tried again later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// What it was done to.
    pub(super) subject: String,
    /// Whether something should have gone.
    pub(super) deletes: bool,
    /// The API server's words.
    pub(super) message: String,
}

/// Why an image cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) severity: Severity,
    pub(super) reason: Reason,
    /// With the name of the object.
    pub(super) message: String,
    /// Whether nothing will change until somebody acts.
    pub(super) is_final: bool,
}

impl Row<'_> {
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.state, RowState::Image { view } if view.ready && !view.deleting)
    }

    /// Why it is not ready; `None` when it is.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        if self.is_ready() {
            return None;
        }
        let (severity, reason, message, is_final) = match &self.state {
            RowState::Image { view } => of_image(view),
            RowState::Missing => goes_on("its object is being made"),
            RowState::Leaving => goes_on("an object of this name is being deleted; it is made again afterwards"),
            RowState::Moved => goes_on(
                "clusterctl took its object to another management cluster; it is made again if the release does not follow",
            ),
            RowState::Differs { view } => (Severity::Error, Reason::NodeImageDiffers, differs(view), true),
            RowState::Foreign => {
                let message = "an object of this name belongs to somebody else; delete it, or rename the image";
                (Severity::Error, Reason::ForeignOwner, message.to_owned(), true)
            }
            RowState::Refused { message } => (
                Severity::Warning,
                Reason::FailedToCreateOrUpdate,
                message.clone(),
                false,
            ),
        };
        Some(Obstacle {
            severity,
            reason,
            message: format!("{}: {message}", self.name),
            is_final,
        })
    }

    fn phase(&self) -> ProviderPhase {
        match &self.state {
            _ if self.is_ready() => ProviderPhase::Ready,
            RowState::Image { view } => view.phase.map_or(ProviderPhase::Pending, phase_of_image),
            RowState::Missing | RowState::Leaving | RowState::Moved => ProviderPhase::Pending,
            RowState::Differs { .. } | RowState::Foreign | RowState::Refused { .. } => ProviderPhase::Failed,
        }
    }

    /// In words, with what moves all the time.
    pub(super) fn message(&self) -> Option<String> {
        let obstacle = self.obstacle()?;
        let moving = match &self.state {
            RowState::Image { view } => view.message.as_ref(),
            _ => None,
        };
        Some(cut(&match moving {
            Some(message) => format!("{}: {message}", self.name),
            None => obstacle.message,
        }))
    }

    /// As the status has it, where the name stands beside it.
    pub(super) fn row(&self) -> ImageRow {
        let beside = format!("{}: ", self.name);
        let message = self.message();
        ImageRow {
            name: self.name.to_owned(),
            ready: self.is_ready(),
            phase: Some(match self.phase() {
                ProviderPhase::Pending | ProviderPhase::Reading => ImagePhase::Pending,
                ProviderPhase::Preparing => ImagePhase::Preparing,
                ProviderPhase::Building => ImagePhase::Building,
                ProviderPhase::Transferring => ImagePhase::Transferring,
                ProviderPhase::Importing => ImagePhase::Importing,
                ProviderPhase::Verifying => ImagePhase::Verifying,
                ProviderPhase::Ready => ImagePhase::Ready,
                ProviderPhase::Failed => ImagePhase::Failed,
                ProviderPhase::Deleting => ImagePhase::Deleting,
                ProviderPhase::Unknown => ImagePhase::Unknown,
            }),
            message: message.map(|message| message.strip_prefix(&beside).unwrap_or(&message).to_owned()),
        }
    }
}

fn goes_on(message: &str) -> (Severity, Reason, String, bool) {
    (Severity::Info, Reason::ProcessOngoing, message.to_owned(), false)
}

/// What waits for the image to go on is `ProcessOngoing`, as with the Go provider; what needs somebody has the image's own word.
fn of_image(view: &ImageView) -> (Severity, Reason, String, bool) {
    let explanation = view.explanation.as_deref().unwrap_or("nothing is known of it yet");
    let severity = view.severity.unwrap_or(Severity::Info);
    let own = view.reason.as_deref().and_then(|reason| reason.parse().ok());
    let reason = own.filter(|_| severity != Severity::Info);
    (
        severity,
        reason.unwrap_or(Reason::ProcessOngoing),
        explanation.to_owned(),
        view.stalled,
    )
}

fn differs(view: &ImageView) -> String {
    let others: Vec<&str> = view.owners.iter().map(|owner| owner.name.as_str()).collect();
    format!(
        "{} has another image under this name; publish this release with a new version of its images",
        others.join(", ")
    )
}

fn phase_of_image(phase: ImagePhase) -> ProviderPhase {
    match phase {
        ImagePhase::Pending => ProviderPhase::Pending,
        // An image that says it is ready, and of another spec than it has, is looked at again.
        ImagePhase::Preparing | ImagePhase::Ready | ImagePhase::Unknown => ProviderPhase::Preparing,
        ImagePhase::Building => ProviderPhase::Building,
        ImagePhase::Transferring => ProviderPhase::Transferring,
        ImagePhase::Importing => ProviderPhase::Importing,
        ImagePhase::Verifying => ProviderPhase::Verifying,
        ImagePhase::Failed => ProviderPhase::Failed,
        ImagePhase::Deleting => ProviderPhase::Deleting,
    }
}

/// That of the image which is furthest behind; `Failed` as soon as one is.
pub(super) fn phase(rows: &[Row<'_>]) -> ProviderPhase {
    let phases = || rows.iter().map(Row::phase);
    if phases().any(|phase| phase == ProviderPhase::Failed) {
        return ProviderPhase::Failed;
    }
    phases().min().unwrap_or(ProviderPhase::Ready)
}

/// Bytes of all images where they are known of each, else how many images can be used; nothing when all can.
pub(super) fn progress(rows: &[Row<'_>]) -> Option<Progress> {
    if rows.iter().all(Row::is_ready) {
        return None;
    }
    let bytes = rows.iter().map(bytes).collect::<Option<Vec<(i64, i64)>>>();
    let images = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    Some(match bytes {
        Some(bytes) => {
            let sum = |parts: &mut dyn Iterator<Item = i64>| parts.fold(0_i64, i64::saturating_add);
            Progress {
                done: sum(&mut bytes.iter().map(|(done, _)| *done)),
                total: Some(sum(&mut bytes.iter().map(|(_, total)| *total))),
                unit: "bytes".to_owned(),
            }
        }
        None => Progress {
            done: images(rows.iter().filter(|row| row.is_ready()).count()),
            total: Some(images(rows.len())),
            unit: "images".to_owned(),
        },
    })
}

/// Bytes that are done, and of how many.
fn bytes(row: &Row<'_>) -> Option<(i64, i64)> {
    let RowState::Image { view } = row.state else {
        return None;
    };
    if row.is_ready() {
        return view.size.map(|size| (size, size));
    }
    let progress = view.progress.as_ref().filter(|progress| progress.unit == "bytes")?;
    Some((progress.done, progress.total?))
}
