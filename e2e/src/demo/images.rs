//! Node images of the demo: where they come from, where they go to, and what is there. Waits for nothing, and shows nothing.

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use crds::{providers::Provider, release_files::NODE_IMAGES};
use e2e::{
    cloud::Cloud,
    image_server::{ImageServer, Pace},
    provider_operator,
    releases::StackSource,
    web::sha256,
    workers::SHELL,
};
use openstack_lab::{
    Site, disk,
    real::{Installed, Real, RealOptions},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use crate::arguments::DemoProvider;

/// Large enough to be watched at the rates below, and small enough to be made at once.
const BYTES: usize = 48 << 20;
/// For those who watch: an image takes some eight seconds.
const WATCHED: u32 = 6 << 20;
/// For those who only want to know that it works.
const UNWATCHED: u32 = 32 << 20;
/// What a disk begins with that can be booted from, so that nobody takes it for something else.
const BOOT: [u8; 3] = [0xEB, 0x63, 0x90];
const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1alpha1";
/// The Secret with the login for the cloud.
const SECRET: &str = "cloud";
/// The template that the stack refers to.
const TEMPLATE: &str = "images";

/// What is built, in a container that has a shell and `cat`: sixteen bytes with the boot sector's first ones, four times as many with each step.
const SCRIPT: &str = r"cd /artifact
echo 'a disk for harbor: first its boot code'
printf '\353\143\220%13s' 'harbor node' > image
for step in 1 2 3 4 5 6 7 8 9 10 11; do
  cat image image > twice
  cat twice twice > image
done
: > twice
echo 'done: a raw disk of 64 MiB'
";
/// How often the script has four times as many.
const STEPS: u32 = 11;
/// The image and what it is made from.
const SIZE_LIMIT: &str = "128Mi";

/// One of the images.
pub(super) struct Disk {
    /// Its name in the cloud.
    pub(super) name: &'static str,
    origin: Origin,
    bytes: Bytes,
}

/// Where an image comes from.
enum Origin {
    /// The source has it at this path.
    Source(&'static str),
    /// A Job builds it.
    Build,
}

impl Disk {
    fn of(name: &'static str, path: &'static str, seed: u64) -> Self {
        let mut bytes = disk::raw(seed, BYTES);
        bytes[..BOOT.len()].copy_from_slice(&BOOT);
        Self {
            name,
            origin: Origin::Source(path),
            bytes: bytes.into(),
        }
    }

    /// What the script builds.
    fn built(name: &'static str) -> Self {
        let sector = [&BOOT[..], format!("{:>13}", "harbor node").as_bytes()].concat();
        Self {
            name,
            origin: Origin::Build,
            bytes: sector.repeat(4_usize.pow(STEPS)).into(),
        }
    }

    /// How large it is.
    pub(super) fn mebibytes(&self) -> usize {
        self.bytes.len() >> 20
    }
}

/// The images, their source, and the place that they are brought to.
pub(super) struct Images {
    /// What the first releases need.
    pub(super) first: Disk,
    /// What a later release needs.
    pub(super) next: Disk,
    /// What a Job has to build, where Jobs can be had.
    pub(super) built: Option<Disk>,
    source: ImageServer,
    rate: u32,
    place: Place,
}

/// Where images go to.
enum Place {
    Directory(PathBuf),
    Cloud(Box<OwnCloud>),
}

struct OwnCloud {
    site: Site,
    eyes: Cloud,
    _real: Real,
}

impl Images {
    /// Makes the images, and starts what gives and what takes them; `pods` is the address by which Pods reach this machine, where there are Pods.
    /// `None` where the demo goes without images.
    pub(super) async fn make(
        provider: DemoProvider,
        folder: &Path,
        watched: bool,
        pods: Option<Ipv4Addr>,
    ) -> Result<Option<Self>> {
        let place = match provider {
            DemoProvider::None => return Ok(None),
            DemoProvider::Filestore => Place::Directory(folder.join("images")),
            DemoProvider::Openstack => {
                let cloud = OwnCloud::start(pods.unwrap_or(Ipv4Addr::LOCALHOST)).await?;
                Place::Cloud(Box::new(cloud))
            }
        };
        let (first, next) = (
            Disk::of("harbor-node", "/first.raw", 1),
            Disk::of("harbor-node-next", "/next.raw", 2),
        );
        let served = [&first, &next].into_iter().filter_map(|disk| match disk.origin {
            Origin::Source(path) => Some((path.to_owned(), disk.bytes.clone())),
            Origin::Build => None,
        });
        let images = Self {
            source: ImageServer::start(served).await?,
            built: pods.map(|_| Disk::built("harbor-node-built")),
            rate: if watched { WATCHED } else { UNWATCHED },
            first,
            next,
            place,
        };
        Ok(Some(images))
    }

    /// Whose kinds the objects are of.
    pub(super) fn provider(&self) -> Provider {
        match &self.place {
            Place::Directory(_) => Provider::FileStore,
            Place::Cloud(_) => Provider::OpenStack,
        }
    }

    /// Where images go to; completes the sentence "… has it".
    pub(super) fn place(&self) -> &'static str {
        match &self.place {
            Place::Directory(_) => "the directory",
            Place::Cloud(_) => "Glance",
        }
    }

    /// The directory that images go to, if it is one.
    pub(super) fn directory(&self) -> Option<&Path> {
        match &self.place {
            Place::Directory(path) => Some(path),
            Place::Cloud(_) => None,
        }
    }

    /// Adds node-images.yaml with this image to a stack.
    pub(super) fn ask_for(&self, disk: &Disk, stack: &StackSource) -> Result<()> {
        let entries = self.entries(disk);
        let file = json!({ "apiVersion": "node-images.clusterstack.x-k8s.io/v1alpha1", self.key(): entries });
        let text = serde_yaml::to_string(&file).context("failed to write the images as YAML")?;
        stack.write(NODE_IMAGES, &text).map(drop)
    }

    /// What its node-images.yaml says of this image, as people read it.
    pub(super) fn told(&self, disk: &Disk) -> Result<String> {
        let part = json!({ self.key(): self.entries(disk) });
        serde_yaml::to_string(&part).context("failed to write the images as YAML")
    }

    fn key(&self) -> &'static str {
        self.provider().definition().images_key
    }

    fn entries(&self, disk: &Disk) -> Value {
        let mut entry = match disk.origin {
            Origin::Source(path) => json!({
                "url": self.source.url(path),
                "digest": format!("sha256:{}", sha256(&disk.bytes)),
            }),
            Origin::Build => json!({
                "build": { "image": SHELL, "args": ["-c", SCRIPT], "sizeLimit": SIZE_LIMIT },
            }),
        };
        match &self.place {
            Place::Directory(_) => entry["name"] = disk.name.into(),
            Place::Cloud(_) => {
                entry["createOpts"] = json!({ "name": disk.name, "disk_format": "raw", "container_format": "bare" });
            }
        }
        json!([entry])
    }

    /// The template for the release objects of the provider.
    pub(super) fn template(&self, namespace: &str) -> Value {
        let spec = match &self.place {
            Place::Directory(_) => json!({ "store": "default" }),
            Place::Cloud(_) => json!({ "identityRef": { "kind": "Secret", "name": SECRET } }),
        };
        json!({
            "apiVersion": API_VERSION,
            "kind": self.template_kind(),
            "metadata": { "name": TEMPLATE, "namespace": namespace },
            "spec": { "template": { "spec": spec } },
        })
    }

    /// How a stack refers to the template.
    pub(super) fn reference(&self) -> Value {
        json!({
            "apiVersion": API_VERSION,
            "kind": self.template_kind(),
            "name": TEMPLATE,
        })
    }

    fn template_kind(&self) -> String {
        format!("{}Template", self.provider().definition().release_kind)
    }

    /// The Secret with the login for the cloud, where there is one.
    pub(super) fn secret(&self) -> Option<Value> {
        match &self.place {
            Place::Directory(_) => None,
            Place::Cloud(cloud) => Some(provider_operator::identity(SECRET, &cloud.site)),
        }
    }

    /// From now on the source gives its bytes slowly, and no more than this part of a hundred of an image.
    pub(super) fn give_at_most(&self, percent: usize) {
        self.source.set_pace(Pace {
            bytes_per_second: Some(self.rate),
            hold_at: Some(BYTES / 100 * percent),
            ..Pace::default()
        });
    }

    /// The source breaks off what it gives, and answers nobody.
    pub(super) fn take_the_source_away(&self) {
        self.source.set_pace(Pace {
            away: true,
            ..Pace::default()
        });
        self.source.cut();
    }

    /// The source is there again, and gives all, slowly.
    pub(super) fn bring_the_source_back(&self) {
        self.source.set_pace(Pace {
            bytes_per_second: Some(self.rate),
            ..Pace::default()
        });
    }

    /// Bodies that the source was asked for since the beginning.
    pub(super) fn asked(&self) -> usize {
        self.source.given().len()
    }

    /// From which byte on the source was asked last.
    pub(super) fn asked_last_from(&self) -> Result<usize> {
        let given = self.source.given();
        Ok(given.last().context("the source was not asked")?.from)
    }

    /// Fails while somebody waits for bytes of the source.
    pub(super) fn source_is_quiet(&self) -> Result<()> {
        let giving = self.source.giving();
        ensure!(giving == 0, "{giving} of its answers are still being read");
        Ok(())
    }

    /// Fails unless there are these, in the order of their names, and nothing else: also no half image, and no trace of one.
    pub(super) async fn there_is_only(&self, wanted: &[&Disk]) -> Result<()> {
        let names: Vec<String> = wanted.iter().map(|disk| disk.name.to_owned()).collect();
        let (found, other) = match &self.place {
            Place::Directory(path) => {
                let seen = published(path)?;
                ensure!(seen == names, "there should be {names:?}, and people see {seen:?}");
                let mut other = None;
                for disk in wanted {
                    other = other.or((!is_whole_in(path, disk)?).then_some(disk.name));
                }
                (records(path)?, other)
            }
            Place::Cloud(cloud) => {
                let images = cloud.eyes.images().await?;
                let found = images.iter().filter_map(|image| image["name"].as_str());
                let other = wanted.iter().find(|disk| !is_whole_among(&images, disk));
                (found.map(str::to_owned).collect(), other.map(|disk| disk.name))
            }
        };
        ensure!(found == names, "there should be {names:?}, and there is {found:?}");
        match other {
            None => Ok(()),
            Some(name) => bail!("the image {name} that is there has other bytes than it should have"),
        }
    }
}

impl OwnCloud {
    async fn start(address: Ipv4Addr) -> Result<Self> {
        let installed = Installed::find()?.context(
            "this machine has no Keystone and Glance, which need Python 3.11; `--provider filestore` shows the same without them",
        )?;
        let options = RealOptions {
            address,
            ..RealOptions::default()
        };
        let real = Real::start(&installed, &options).await?;
        let site = real.project("stackwright-demo").await?;
        Ok(Self {
            eyes: Cloud::log_in(&site).await?,
            site,
            _real: real,
        })
    }
}

/// The names of the images that people see in a directory.
fn published(directory: &Path) -> Result<Vec<String>> {
    let names = files(directory)?.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        (!name.ends_with(".sha256")).then_some(name)
    });
    Ok(names.collect())
}

/// The names of the images that the provider knows of in a directory, half ones too.
fn records(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for path in files(&directory.join(".parts"))? {
        if path.extension().is_some_and(|ending| ending == "json") {
            let text = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            let marks: Value = serde_json::from_slice(&text).context("a record is no JSON")?;
            names.push(marks["name"].as_str().unwrap_or_default().to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The files of a folder, sorted; none where it is not there.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let what = || format!("failed to list {}", folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(what)?,
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.with_context(what)?;
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

fn is_whole_in(directory: &Path, disk: &Disk) -> Result<bool> {
    let file = directory.join(disk.name);
    let bytes = fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
    Ok(bytes == disk.bytes)
}

fn is_whole_among(images: &[Value], disk: &Disk) -> bool {
    let sha512 = format!("{:x}", Sha512::digest(&disk.bytes));
    let image = images.iter().find(|image| image["name"] == disk.name);
    image.is_some_and(|image| image["status"] == "active" && image["os_hash_value"] == sha512.as_str())
}
