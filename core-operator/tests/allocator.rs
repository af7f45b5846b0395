//! How the operator's program holds memory is decided when it is built.

use std::process::Command;

use serde_json::Value;

/// What `.cargo/config.toml` gives jemalloc along.
const ASKED: &str = env!("JEMALLOC_SYS_WITH_MALLOC_CONF");

/// What the program's own jemalloc tells of itself at its end: `malloc_stats_print` without everything but the general part.
fn options() -> Value {
    let ended = Command::new(env!("CARGO_BIN_EXE_core-operator"))
        .arg("--version")
        .env("MALLOC_CONF", "stats_print:true,stats_print_opts:Jmdablxeh")
        .output()
        .expect("the operator starts");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    let told: Value = serde_json::from_str(&told).expect("the allocator speaks JSON");
    told["jemalloc"]["opt"].clone()
}

#[test]
fn options_of_jemalloc_are_in_the_program() {
    let options = options();
    let asked: Vec<(&str, &str)> = ASKED.split(',').filter_map(|option| option.split_once(':')).collect();
    assert!(asked.len() > 4, "{ASKED}");
    for (name, value) in asked {
        let found = match &options[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(found, value, "{name} of {options:#}");
    }
}
