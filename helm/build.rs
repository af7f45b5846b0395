//! Links the program `helm-template` at a fixed address, as Go links Helm: a tenth of the time that it takes for a small chart went into
//! moving its tables to another one. What uses the library is linked as ever.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let has_command = env::var_os("CARGO_FEATURE_COMMAND").is_some();
    if has_command && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-bin=helm-template=-no-pie");
    }
}
