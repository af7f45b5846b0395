//! `release create`: hands the work to the rooms `release` and `rendering` and prints what came out.

use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
};

use crds::{conditions::one_line, names::ReleaseTag};
use release::{
    FileRef,
    pack::{self, Packed, Packing, Preparation, Supplied, Supply, Versioning},
};

use crate::{
    addons,
    arguments::CreateRelease,
    class::{self, Class},
    heard, registries, tell,
};

/// What was to be done is done, and then standard output could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untold {
    /// A release was made.
    #[error("the release is in {}, but standard output cannot be written", directory.display())]
    Made {
        directory: PathBuf,
        #[source]
        source: io::Error,
    },
    /// There was none to be made.
    #[error("nothing changed since {since}, so no release was made, but standard output cannot be written")]
    Unchanged {
        since: ReleaseTag,
        #[source]
        source: io::Error,
    },
}

pub(crate) fn run(arguments: &CreateRelease, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let CreateRelease {
        stack,
        output,
        version,
        next_after,
        charts,
        registries,
    } = arguments;
    let versioning = match version {
        Some(version) => Versioning::Given(version.clone()),
        None => Versioning::NextAfter(next_after.as_ref().unwrap_or(output).clone()),
    };
    let registries = registries::read(registries)?;
    let is_supplied = charts.is_some() || registries.is_some();
    let supply = is_supplied.then_some(Supply {
        charts: charts.as_deref(),
        registries: registries.as_ref(),
        newest: rendering::newest_in_range,
    });
    match pack::prepare(stack, output, &versioning, supply)? {
        Preparation::Prepared(prepared) => {
            for Supplied {
                into,
                from,
                name,
                version,
            } in prepared.supplied()
            {
                let into = into.display();
                tell(&format!("note: {into}: takes {name} {version} from {from}"));
            }
            let class = class::render(&prepared)?;
            for note in addons::check(&prepared)? {
                tell(&format!("note: {}", one_line(&note, usize::MAX)));
            }
            let packed = prepared.write()?;
            heard(print(&packed, &class, out)).map_err(|source| {
                let directory = packed.directory.clone();
                Untold::Made { directory, source }
            })?;
        }
        Preparation::Unchanged { since } => {
            let printed = writeln!(
                out,
                "nothing changed since {since}, so no release was made; give a --version to make one nevertheless"
            );
            heard(printed).map_err(|source| Untold::Unchanged { since, source })?;
        }
    }
    Ok(())
}

fn print(packed: &Packed, class: &Class, out: &mut impl Write) -> io::Result<()> {
    let Class { objects, warnings } = class;
    for warning in warnings {
        tell(&format!("warning: {}", one_line(warning, usize::MAX)));
    }
    let Packed {
        tag,
        directory,
        digest,
        files,
        packing,
        notes,
    } = packed;
    for note in notes {
        tell(&format!("note: {}", one_line(note, usize::MAX)));
    }
    let done = match packing {
        Packing::Created => "created",
        Packing::AlreadyThere => "is there already, with the same content",
    };
    let class = match objects {
        Some(1) => "class of 1 object".to_owned(),
        Some(number) => format!("class of {number} objects"),
        None => "class not tried out".to_owned(),
    };
    writeln!(out, "{tag} ({class}) {done}: {}", directory.display())?;
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
    writeln!(out, "{:width$}  {:>9}  SHA256", "FILE", "SIZE")?;
    for FileRef { name, size, sha256 } in files {
        writeln!(out, "{name:width$}  {size:>9}  {}", sha256.hex())?;
    }
    let all = files.iter().map(|file| file.size).sum::<u64>();
    writeln!(
        out,
        "{all} bytes in all; the digest of the release is sha256:{}",
        digest.hex()
    )
}
