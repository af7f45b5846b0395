//! `release create`: hands the work to the room `release` and prints what came out.

use std::{error::Error, io::Write};

use release::{
    FileRef,
    pack::{self, Creation, Packed, Packing, Versioning},
};

use crate::arguments::CreateRelease;

pub(crate) fn run(arguments: &CreateRelease, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let CreateRelease {
        stack,
        output,
        version,
        next_after,
    } = arguments;
    let versioning = match version {
        Some(version) => Versioning::Given(version.clone()),
        None => Versioning::NextAfter(next_after.as_ref().unwrap_or(output).clone()),
    };
    match pack::create(stack, output, &versioning)? {
        Creation::Packed(packed) => print(&packed, out)?,
        Creation::Unchanged { since } => writeln!(out, "nothing changed since {since}, so no release was made")?,
    }
    Ok(())
}

fn print(packed: &Packed, out: &mut impl Write) -> std::io::Result<()> {
    let Packed {
        tag,
        directory,
        digest,
        files,
        packing,
    } = packed;
    let done = match packing {
        Packing::Created => "created",
        Packing::AlreadyThere => "is there already, with the same content",
    };
    writeln!(out, "{tag} {done}: {}", directory.display())?;
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
    writeln!(out, "{:width$}  {:>9}  SHA256", "FILE", "SIZE")?;
    for FileRef { name, size, sha256 } in files {
        writeln!(out, "{name:width$}  {size:>9}  {}", sha256.hex())?;
    }
    writeln!(
        out,
        "{:width$}  {:>9}  {}",
        "(release)",
        files.iter().map(|file| file.size).sum::<u64>(),
        digest.hex()
    )
}
