//! Charts and archives for the tests, as no tool would make them.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use helm::chart::ArchiveLimits;
use helm::yaml::Node;
use helm::{Chart, RenderOptions};
use tar::{Builder, EntryType, Header};

pub(crate) const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

pub(crate) type File = (String, Vec<u8>);

pub(crate) fn file(name: impl Into<String>, text: impl AsRef<[u8]>) -> File {
    (name.into(), text.as_ref().to_vec())
}

/// What a chart of some files and `Chart.yaml` prints, or why it does not.
pub(crate) fn render(mut files: Vec<File>) -> Result<String, String> {
    if files.iter().all(|(name, _)| name != "Chart.yaml") {
        files.push(file("Chart.yaml", CHART));
    }
    let chart = Chart::from_files(files, &ArchiveLimits::default()).map_err(|error| error.to_string())?;
    let rendering = chart.render(&Node::Null, &RenderOptions::new("r", "ns"));
    let rendering = rendering.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&rendering.stdout()).into_owned())
}

/// Why a chart does not load or render.
pub(crate) fn error(files: Vec<File>) -> String {
    render(files).unwrap_err()
}

pub(crate) fn repeated(count: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", line(number));
        text
    })
}

/// One entry; the name is written as it is, which the library for archives would not do.
pub(crate) struct Item<'a> {
    name: &'a [u8],
    entry_type: EntryType,
    data: &'a [u8],
    /// What the header says when it does not say the truth.
    claimed_size: Option<u64>,
}

impl<'a> Item<'a> {
    pub(crate) fn file(name: &'a (impl AsRef<[u8]> + ?Sized), data: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            name: name.as_ref(),
            entry_type: EntryType::Regular,
            data: data.as_ref(),
            claimed_size: None,
        }
    }

    pub(crate) fn of_type(self, entry_type: EntryType) -> Self {
        Self { entry_type, ..self }
    }

    pub(crate) fn claiming(self, size: u64) -> Self {
        Self {
            claimed_size: Some(size),
            ..self
        }
    }
}

pub(crate) fn tar(items: &[Item<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for item in items {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..item.name.len()].copy_from_slice(item.name);
        header.set_entry_type(item.entry_type);
        header.set_mode(0o644);
        header.set_size(item.claimed_size.unwrap_or(item.data.len() as u64));
        header.set_cksum();
        builder.append(&header, item.data).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn archive(items: &[Item<'_>]) -> Vec<u8> {
    packed(&tar(items))
}

/// One record of a PAX header, which begins with its own length.
pub(crate) fn pax(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let digits = |length: usize| length.to_string().len();
    let mut length = rest.len() + digits(rest.len());
    length = rest.len() + digits(length);
    format!("{length}{rest}")
}
