//! One program for all targets: `FUZZ_TARGET` names the one that reads the inputs of libFuzzer.
#![no_main]

mod charts;
mod kubeconfig;
mod objects;

use std::{env, sync::OnceLock};

use libfuzzer_sys::fuzz_target;

type Target = fn(&[u8]);

/// The targets of rooms whose parsers all are public; those of `release` list themselves.
const TARGETS: [(&str, Target); 8] = [
    ("template", charts::template),
    ("yaml", charts::yaml),
    ("chart", charts::chart),
    ("render", charts::render),
    ("resources", |input| {
        objects::resources(input);
    }),
    ("strangers", |input| {
        objects::strangers(input);
    }),
    ("reviews", |input| {
        objects::reviews(input);
    }),
    ("kubeconfig", |input| {
        kubeconfig::kubeconfig(input);
    }),
];

static CHOSEN: OnceLock<Box<dyn Fn(&[u8]) + Send + Sync>> = OnceLock::new();

fn choose() -> Box<dyn Fn(&[u8]) + Send + Sync> {
    let name = env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    if let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) {
        return Box::new(target);
    }
    let found = release::fuzzing::TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = found.unwrap_or_else(|| panic!("there is no target {name}"));
    Box::new(|input| {
        target(input);
    })
}

fuzz_target!(|input: &[u8]| CHOSEN.get_or_init(choose)(input));
