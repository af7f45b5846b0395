//! How soon the first object of the add-ons is in a cluster whose API server answers for the first time.
//!
//! Until then nobody listens at the address in its kubeconfig, so that the operator has tried in vain before, as it does while a control plane comes up.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result};
use e2e::audit::{AuditEvent, AuditEvents};
use jiff::Timestamp;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{
    fleet::{Fleet, Initialized, is_complete, names},
    place::{Operated, Place, Server},
    run::Reaction,
};
use crate::{
    arguments::addons::AddonsArguments,
    bench::report::{median, quantile},
    progress::Progress,
};

/// How the benchmark calls itself.
const OURSELVES: &str = "e2e";
/// From the first look of the operator at a cluster to the first answer of its API server: it has found nobody there more than once.
const PAUSE: Duration = Duration::from_secs(3);

/// Has one cluster after the other come up.
pub(super) async fn measure(
    place: &Place,
    operated: &mut Operated,
    arguments: &AddonsArguments,
    progress: &Progress,
) -> Result<Reaction> {
    let fleet = Fleet::new(&place.ground.client, &place.namespace);
    let class = &place.classes[1];
    let names = names("r", usize::try_from(arguments.samples)?);
    let ours = place.ground.audit.mark().await?;
    let marks = place.marks().await?;
    let mut ways = Vec::new();
    for (number, name) in names.iter().enumerate() {
        progress.tick(&format!("{number} of {} API servers answered", names.len()));
        let server = place.server_of(number);
        let way = Way::to(server).await?;
        fleet.prepare(name, &way.kubeconfig, Initialized::NotYet).await?;
        fleet.create(name, class, Initialized::NotYet).await?;
        let is_seen = |addon: &crds::ClusterAddon| addon.status.is_some();
        fleet.until(name, &mut operated.operator, is_seen).await?;
        sleep(PAUSE).await;
        ways.push(way.open().await?);
        fleet.initialize_control_plane(name).await?;
        fleet.tell(name, Initialized::Yes).await?;
        let is_done = |addon: &crds::ClusterAddon| is_complete(addon, class);
        fleet.until(name, &mut operated.operator, is_done).await?;
    }
    let told = place.ground.audit.since(ours).await?.of_agent(OURSELVES);
    let requests = place.requests_since(marks).await?;
    let milliseconds = names.iter().map(|name| {
        let begin = answer(&told, |event| is_status_of(event, name));
        let begin = begin.with_context(|| format!("the control plane of {name} said nothing"))?;
        let first = requests[1..]
            .iter()
            .filter_map(|events| answer(events, |event| is_object_of(event, name)))
            .min();
        let first = first.with_context(|| format!("nothing was written into {name}"))?;
        Ok(first.duration_since(begin).as_secs_f64() * 1000.0)
    });
    let milliseconds = milliseconds.collect::<Result<Vec<f64>>>()?;
    Ok(Reaction {
        clusters: usize::from(arguments.clusters),
        samples: milliseconds.len(),
        median_ms: median(&milliseconds),
        p99_ms: quantile(&milliseconds, 99),
        longest_ms: quantile(&milliseconds, 100),
    })
}

/// When the first of these requests was answered.
fn answer(events: &AuditEvents, is_it: impl Fn(&AuditEvent) -> bool) -> Option<Timestamp> {
    let answers = events.iter().filter(|event| event.is_write() && is_it(event));
    answers.map(|event| event.answered).min()
}

fn is_status_of(event: &AuditEvent, name: &str) -> bool {
    event.object.as_ref().is_some_and(|object| {
        let of = (object.resource.as_str(), object.subresource.as_str());
        of == ("kubeadmcontrolplanes", "status") && object.name == name
    })
}

fn is_object_of(event: &AuditEvent, name: &str) -> bool {
    let is_named = |named: &str| named.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let object = event.object.as_ref();
    object.is_some_and(|object| is_named(&object.name)) && (200..300).contains(&event.code)
}

/// An address of its own for an API server, at which nobody listens yet.
struct Way {
    address: SocketAddr,
    server: SocketAddr,
    kubeconfig: String,
}

/// The same when somebody does. Dropped, the connections are closed.
struct Open(AbortHandle);

impl Way {
    async fn to(server: &Server) -> Result<Self> {
        let url = server.control_plane.access().server();
        let port = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port: u16 = port.with_context(|| format!("{url} has no port"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        // It is free again when this is over, and the system takes others first.
        let address = listener.and_then(|listener| listener.local_addr());
        let address = address.context("failed to find a port")?;
        Ok(Self {
            address,
            server: (Ipv4Addr::LOCALHOST, port).into(),
            kubeconfig: server.kubeconfig.replace(url, &format!("https://{address}")),
        })
    }

    async fn open(self) -> Result<Open> {
        let listener = TcpListener::bind(self.address).await;
        let listener = listener.with_context(|| format!("somebody else has taken {}", self.address))?;
        let passing = async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                connections.spawn(pass(stream, self.server));
            }
        };
        Ok(Open(tokio::spawn(passing).abort_handle()))
    }
}

async fn pass(mut stream: TcpStream, server: SocketAddr) {
    let Ok(mut there) = TcpStream::connect(server).await else {
        return;
    };
    for end in [&stream, &there] {
        // What is small is not held back for what may follow.
        let _ = end.set_nodelay(true);
    }
    // Whoever hangs up ends it.
    let _ = copy_bidirectional(&mut stream, &mut there).await;
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.abort();
    }
}
