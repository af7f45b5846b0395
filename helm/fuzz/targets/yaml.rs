//! The readers of documents take any bytes, and what is written of a document reads back.
#![no_main]

use helm::{json, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = json::decode(text);
    let Ok(decoded) = yaml::read(text) else { return };
    let written = yaml::emit(&decoded.node);
    // Go writes `<<` as it is and then takes it for a merge.
    if !written.contains("<<") {
        yaml::read(written.as_bytes()).expect("what is written can be read");
    }
});
