//! Images of containers from files of this machine, without a container engine: one layer that is not compressed, in an archive of the OCI image
//! layout. The same files make the same digest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::web::sha256;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Modes of what is in an image; everything belongs to root.
const PROGRAM: u32 = 0o755;
const PLAIN: u32 = 0o644;
const FOR_EVERYBODY: u32 = 0o1777;

/// Files of this machine under the paths that a container sees, and what it runs. Linux for the processor of this machine.
#[derive(Clone, Debug)]
pub struct Image {
    name: String,
    files: BTreeMap<String, PathBuf>,
    programs: Vec<PathBuf>,
    entrypoint: Vec<String>,
}

impl Image {
    /// An empty one; `name` is what Pods call it, with host and tag: `lab.local/sh:1`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            files: BTreeMap::new(),
            programs: Vec::new(),
            entrypoint: Vec::new(),
        }
    }

    /// One with the shell of this machine at `/bin/sh`, which it runs, and `cat` and `sleep` beside it.
    pub fn shell(name: &str) -> Self {
        let tools = ["/bin/sh", "/bin/cat", "/bin/sleep"];
        let image = tools
            .iter()
            .fold(Self::new(name), |image, &tool| image.program(Path::new(tool), tool));
        image.entrypoint(&["/bin/sh"])
    }

    /// With a file of this machine at an absolute path. Everybody may read and run it.
    #[must_use]
    pub fn file(mut self, here: &Path, at: &str) -> Self {
        self.files.insert(at.to_owned(), here.to_owned());
        self
    }

    /// With a program of this machine at an absolute path, and the libraries that it is linked with where it looks for them.
    #[must_use]
    pub fn program(mut self, here: &Path, at: &str) -> Self {
        self.programs.push(here.to_owned());
        self.file(here, at)
    }

    /// What a container runs that names no command.
    #[must_use]
    pub fn entrypoint(mut self, words: &[&str]) -> Self {
        self.entrypoint = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// What Pods call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn command(&self) -> &[String] {
        &self.entrypoint
    }

    /// By the path that a container sees: the file of this machine.
    pub(crate) fn files(&self) -> &BTreeMap<String, PathBuf> {
        &self.files
    }

    /// Writes it to `archive`, which `ctr images import` reads. The layer is in `archive.layer` for the time being.
    pub(crate) fn write(&self, archive: &Path) -> Result<()> {
        let what = || format!("failed to write the image {} to {}", self.name, archive.display());
        let beside = archive.with_extension("layer");
        let layer = self.write_layer(&beside).with_context(what)?;
        self.write_archive(archive, &beside, &layer).with_context(what)?;
        fs::remove_file(&beside).with_context(what)
    }

    /// Returns how the manifest describes the layer.
    fn write_layer(&self, path: &Path) -> Result<Value> {
        let mut files = self.files.clone();
        for program in &self.programs {
            files.extend(libraries(program)?.into_iter().map(|library| {
                let at = library.to_string_lossy().into_owned();
                (at, library)
            }));
        }
        let mut layer = Builder::new(Hashing::new(File::create(path)?));
        let mut folders = BTreeSet::new();
        for (at, here) in &files {
            let at = at.trim_start_matches('/');
            let parents = at.match_indices('/').map(|(end, _)| &at[..end]);
            for folder in parents.filter(|folder| folders.insert((*folder).to_owned())) {
                layer.append(&header(folder, EntryType::Directory, 0, PROGRAM)?, io::empty())?;
            }
            let file = File::open(here).with_context(|| format!("failed to open {}", here.display()))?;
            let size = file.metadata()?.len();
            layer.append(&header(at, EntryType::Regular, size, PROGRAM)?, file)?;
        }
        if folders.insert("tmp".to_owned()) {
            layer.append(&header("tmp", EntryType::Directory, 0, FOR_EVERYBODY)?, io::empty())?;
        }
        let (digest, size) = layer.into_inner()?.finish()?;
        Ok(json!({ "mediaType": LAYER, "digest": digest, "size": size }))
    }

    fn write_archive(&self, archive: &Path, layer_file: &Path, layer: &Value) -> Result<()> {
        let architecture = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        };
        let configuration = json!({
            "architecture": architecture,
            "os": "linux",
            "config": { "Entrypoint": self.entrypoint, "Env": ["PATH=/usr/bin:/bin"], "WorkingDir": "/" },
            "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
        })
        .to_string();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described(CONFIGURATION, &configuration),
            "layers": [layer],
        })
        .to_string();
        let mut described_manifest = described(MANIFEST, &manifest);
        // The importer takes the name from here.
        described_manifest["annotations"] = json!({ "io.containerd.image.name": self.name });
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [described_manifest] }).to_string();
        let blob = |digest: &Value| {
            format!(
                "blobs/sha256/{}",
                digest.as_str().unwrap_or_default().replace("sha256:", "")
            )
        };

        let mut target = Builder::new(File::create(archive)?);
        for folder in ["blobs", "blobs/sha256"] {
            target.append(&header(folder, EntryType::Directory, 0, PROGRAM)?, io::empty())?;
        }
        let texts = [
            ("oci-layout".to_owned(), r#"{"imageLayoutVersion":"1.0.0"}"#),
            ("index.json".to_owned(), &index),
            (
                format!("blobs/sha256/{}", sha256(configuration.as_bytes())),
                &configuration,
            ),
            (format!("blobs/sha256/{}", sha256(manifest.as_bytes())), &manifest),
        ];
        for (name, text) in texts {
            let size = u64::try_from(text.len())?;
            target.append(&header(&name, EntryType::Regular, size, PLAIN)?, text.as_bytes())?;
        }
        let content = File::open(layer_file)?;
        let size = content.metadata()?.len();
        target.append(
            &header(&blob(&layer["digest"]), EntryType::Regular, size, PLAIN)?,
            content,
        )?;
        target.finish()?;
        Ok(())
    }
}

fn described(media_type: &str, text: &str) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", sha256(text.as_bytes())), "size": text.len() })
}

fn header(path: &str, kind: EntryType, size: u64, mode: u32) -> Result<Header> {
    let mut header = Header::new_ustar();
    header
        .set_path(path)
        .with_context(|| format!("{path} is no path in an archive"))?;
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    // Owner and time are always the same, so that the digest is.
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// The libraries of a program, its loader too; none of one that is linked statically.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let said = Command::new("ldd")
        .arg(program)
        .output()
        .with_context(|| format!("failed to ask ldd for the libraries of {}", program.display()))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let is_static = [said.stderr.as_slice(), &said.stdout]
        .iter()
        .any(|said| String::from_utf8_lossy(said).contains("not a dynamic executable"));
    ensure!(
        said.status.success() || is_static,
        "ldd refuses {}: {}",
        program.display(),
        String::from_utf8_lossy(&said.stderr).trim()
    );
    Ok(paths_of_libraries(&text))
}

/// `libc.so.6 => /lib/libc.so.6 (0x7f…)`, and for the loader `/lib64/ld-linux-x86-64.so.2 (0x7f…)`.
fn paths_of_libraries(said: &str) -> Vec<PathBuf> {
    let words = said.lines().filter_map(|line| {
        let (named, _) = line.rsplit_once(" (")?;
        Some(named.rsplit_once("=> ").map_or(named, |(_, path)| path).trim())
    });
    words.filter(|path| path.starts_with('/')).map(PathBuf::from).collect()
}

/// Passes bytes on and knows their digest and their number.
struct Hashing {
    target: File,
    digest: Sha256,
    size: u64,
}

impl Hashing {
    fn new(target: File) -> Self {
        Self {
            target,
            digest: Sha256::new(),
            size: 0,
        }
    }

    fn finish(mut self) -> Result<(String, u64)> {
        self.target.flush()?;
        Ok((format!("sha256:{:x}", self.digest.finalize()), self.size))
    }
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn libraries_and_the_loader_are_found_where_the_program_looks_for_them() {
        let said = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1c)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f1d)\n";
        let paths = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(paths_of_libraries(said), paths.map(PathBuf::from));
        assert!(paths_of_libraries("\tstatically linked\n").is_empty());
    }

    #[test]
    fn the_same_files_make_the_same_image() -> Result<()> {
        let place = tempfile::tempdir()?;
        let file = place.path().join("file");
        fs::write(&file, "content")?;
        let [first, second] = ["first.tar", "second.tar"].map(|name| place.path().join(name));
        for archive in [&first, &second] {
            Image::new("lab.local/one:1")
                .file(&file, "/deep/down/file")
                .write(archive)?;
        }
        assert_eq!(fs::read(&first)?, fs::read(&second)?);
        let mut archive = tar::Archive::new(File::open(&first)?);
        let mut names = Vec::new();
        for entry in archive.entries()? {
            let mut entry = entry?;
            let name = entry.path()?.display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if let Some(digest) = name.strip_prefix("blobs/sha256/").filter(|digest| !digest.is_empty()) {
                assert_eq!(sha256(&content), digest);
            }
            names.push(name);
        }
        assert_eq!(names.len(), 7, "{names:?}");
        Ok(())
    }
}
