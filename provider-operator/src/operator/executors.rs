//! The executor of the operator: its forms, and by what they wake drivers. Decides nothing.

use std::sync::Arc;

use crds::providers::image_status::NodeImageStatus;
use kube::Client;

use super::wakes::wakes_images;
use crate::args::Args;
use crate::clock::Steady;
use crate::context::Served;
use crate::executor::jobs::{Jobs, Sent};
use crate::executor::{Bounds, Executors, InProcess};
use crate::kinds::status_of;
use crate::objects::ObjectId;
use crate::progress::Ledgers;
use crate::worker::document::NetworkOfDocument;

/// Both forms of the executor, the second where flags ask for it.
pub(super) fn executors(
    args: &Args,
    client: &Client,
    steady: Steady,
    served: &[Arc<Served>],
) -> anyhow::Result<Executors> {
    let bounds = Bounds {
        transfers: usize::from(args.clouds.max_transfers),
        transfers_total: usize::from(args.clouds.max_transfers_total),
        ..Bounds::default()
    };
    let ledgers = Ledgers::new(client.clone(), operator_kit::process::host());
    let (download, clouds) = (&args.download, &args.clouds.allow_cloud_network);
    let network = NetworkOfDocument::new(download.allow_plain_http, &download.allow_source_network, clouds);
    let options = args.jobs.options(network).map_err(anyhow::Error::msg)?;
    let jobs = options.map(|options| {
        let wakes = wakes_images(served);
        Jobs::new(client.clone(), options, bounds, steady, wakes, sent(served))
    });
    Ok(Executors {
        in_process: InProcess::new(bounds, steady, ledgers, wakes_images(served)),
        jobs,
    })
}

/// How far the transfers of Jobs are, which they write themselves.
fn sent(served: &[Arc<Served>]) -> Sent {
    let served = served.to_vec();
    Arc::new(move |id: &ObjectId| {
        let of_provider = served.iter().find(|served| served.kind.provider() == id.provider)?;
        let object = of_provider.images.get(&id.namespace, &id.name)?;
        status_of::<NodeImageStatus>(&object).transfer
    })
}
