//! The reference of limits says what the code does: each constant that is a limit stands there, in the words of its error.

use std::fs;
use std::path::Path;

use helm::Limits;
use helm::chart::ArchiveLimits;

const REFERENCE: &str = include_str!("../../../docs/reference/helm-limits.md");

/// Where a constant is, its name, and what the reference says, with `#` for the number, and `#,` where its digits are grouped.
const FIXED: &[(&str, &str, &str)] = &[
    ("bounds.rs", "MAX_HELD", "values and documents take more than # bytes"),
    ("bounds.rs", "MAX_HELD", "values of the charts take more than # bytes"),
    ("bounds.rs", "MAX_DOCUMENT", "document takes more than # bytes"),
    (
        "bounds.rs",
        "MAX_DEPTH",
        "value nests deeper than # levels, or contains itself",
    ),
    ("bounds.rs", "MAX_ITEMS", "value has more than # parts"),
    ("bounds.rs", "MAX_ITEMS", "template has more than # parts"),
    ("bounds.rs", "MAX_BYTES", "result is larger than # bytes"),
    ("bounds.rs", "MAX_VISITS", "values take more than # steps to compare"),
    (
        "template/parse.rs",
        "MAX_CONTROLS",
        "text nests more than # control structures",
    ),
    (
        "template/parse.rs",
        "MAX_DEFINITIONS",
        "text defines more than # templates",
    ),
    (
        "functions/regexes.rs",
        "MAX_PATTERN",
        "regular expression is longer than # bytes",
    ),
    (
        "functions/automaton/program.rs",
        "MAX_PROGRAM",
        "its program takes more than # bytes",
    ),
    ("glob.rs", "MAX_PATTERN", "glob is longer than # bytes"),
    ("glob.rs", "MAX_DEPTH", "glob nests deeper than # levels"),
    (
        "format/verbs.rs",
        "MAX_NUMBER",
        "printf width or precision is larger than #",
    ),
    (
        "functions/decimals.rs",
        "MAX_DIGITS",
        "decimal number has more than # digits",
    ),
    (
        "keys/private.rs",
        "MAX_RSA_BITS",
        "keys of RSA of more than # bits are not supported",
    ),
    ("chart/ignore.rs", "MAX_RULES", ".helmignore has more than # rules"),
    (
        "chart/ignore.rs",
        "MAX_STEPS",
        "the rules of .helmignore take more than # steps to compare",
    ),
    ("chart/ignore.rs", "MAX_TEXT", ".helmignore is larger than # bytes"),
    (
        "bin/helm-template/inputs.rs",
        "MAX_ARGUMENT",
        "file is larger than # bytes",
    ),
    (
        "bin/helm-template/inputs.rs",
        "MAX_ARGUMENTS",
        "files are larger than # bytes together",
    ),
    ("chart/load.rs", "MAX_DEPTH", "charts nest deeper than # levels"),
    (
        "schema/compile.rs",
        "MAX_SUBSCHEMAS",
        "schema has more than # subschemas",
    ),
    (
        "schema/validate.rs",
        "MAX_STEPS",
        "values and schema take too many steps to compare` (#,)",
    ),
    ("schema/validate.rs", "MAX_DEPTH", "schema nests too deeply` (#,)"),
    ("functions/secrets.rs", "HASH_STEPS", "a hash by bcrypt #,"),
    (
        "functions/secrets.rs",
        "DERIVE_STEPS",
        "a password by `derivePassword` #,",
    ),
];

/// The value of a constant whose expression is a number, perhaps shifted.
fn constant(file: &str, name: &str) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let source = fs::read_to_string(path).unwrap();
    let (_, rest) = source.split_once(&format!("const {name}: ")).unwrap();
    let (_, rest) = rest.split_once("= ").unwrap();
    let (value, _) = rest.split_once(';').unwrap();
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().unwrap();
    match value.split_once("<<") {
        Some((number_of, shift)) => number(number_of) << number(shift),
        None => number(value),
    }
}

fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

#[test]
fn the_reference_has_the_numbers_of_the_code() {
    for (file, name, words) in FIXED {
        let number = constant(file, name);
        let words = words.replace("#,", &grouped(number)).replace('#', &number.to_string());
        assert!(REFERENCE.contains(&words), "{file} {name}: {words}");
    }
}

#[test]
fn the_reference_has_what_the_caller_sets() {
    let (limits, archive) = (Limits::default(), ArchiveLimits::default());
    for words in [
        format!("template takes more than {} steps", limits.steps),
        format!("exceeded maximum template depth ({})", limits.depth),
        format!("templates make more than {} bytes", limits.output),
        format!("loading the chart takes more than {} steps", archive.steps),
        format!("chart has more than {} files", archive.entries),
        format!("the chart archive is larger than {} bytes", archive.total_bytes),
        format!("larger than the maximum file size {}", archive.total_bytes),
        format!("larger than the maximum file size {}", archive.file_bytes),
        format!("| {} | long loops", grouped(limits.steps)),
        format!("| {} | templates, control", grouped(limits.depth as u64)),
        format!("| {} MiB | what templates write", limits.output >> 20),
    ] {
        assert!(REFERENCE.contains(&words), "{words}");
    }
}
