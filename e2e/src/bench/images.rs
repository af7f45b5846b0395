//! `lab bench images`: node images into a real Glance of this machine, by a provider operator as it ships: how fast beside `curl`, in how much memory, from
//! a source that breaks, how soon others are answered meanwhile, how soon it is quiet when nobody wants an image any more, and what it does with nothing to do.
//!
//! How long a request took says the server that answered it, for both sides alike; memory says the kernel, and writes the API server.

mod cancel;
mod idle;
mod place;
mod reaction;
mod run;
mod upload;
mod writer;

use anyhow::Result;

use self::place::Place;
pub(super) use self::run::Run;
use crate::{
    arguments::images::{ImagesArguments, ImagesMeasure},
    progress::Progress,
};

/// In this order, where nothing is chosen.
const ALL: [ImagesMeasure; 5] = [
    ImagesMeasure::Upload,
    ImagesMeasure::Many,
    ImagesMeasure::Broken,
    ImagesMeasure::Cancel,
    ImagesMeasure::Idle,
];

/// Measures what is asked for, all of it against the same Glance.
pub(super) async fn measure(arguments: &ImagesArguments) -> Result<Vec<Run>> {
    let chosen = |measure: &ImagesMeasure| arguments.measures.is_empty() || arguments.measures.contains(measure);
    let progress = Progress::start("images".to_owned());
    progress.step("starting a control plane, Keystone and Glance");
    let place = Place::find(arguments.common.kubeconfig.as_deref()).await?;
    let runs = Box::pin(async {
        let mut runs = Vec::new();
        for measure in ALL.into_iter().filter(chosen) {
            runs.extend(match measure {
                ImagesMeasure::Upload => upload::one(&place, arguments, &progress).await?,
                ImagesMeasure::Many => upload::many(&place, arguments, &progress).await?,
                ImagesMeasure::Broken => upload::broken(&place, arguments, &progress).await?,
                ImagesMeasure::Cancel => cancel::measure(&place, arguments, &progress).await?,
                ImagesMeasure::Idle => idle::measure(&place, arguments, &progress).await?,
            });
            place.is_empty().await?;
        }
        Ok::<_, anyhow::Error>(runs)
    })
    .await;
    let cleaned = place.clean_up().await;
    let runs = runs?;
    cleaned.map(|()| runs)
}
