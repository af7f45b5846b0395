//! Bad input: whatever bytes a chart consists of, it renders like Helm renders it or ends with an error that says why, within the limits that
//! every render has, and nothing panics.
//!
//! | what is bad | where it is tried |
//! |---|---|
//! | archives: names with `..`, absolute, of Windows; links, devices, long headers; a million entries; cut off; 10 GB of zeros; wrong sizes | `archives`, `helms` |
//! | text that is no UTF-8, in every place that has text; values and fields of the wrong type | `helms` |
//! | charts that multiply: aliases, globals, imports, names, dependencies | `charts` |
//! | YAML, JSON and TOML: aliases that explode, depth, tags, directives, long keys, large numbers | `documents` |
//! | schemas: cycles, depth, references elsewhere, more work than values deserve | `schemas` |
//! | templates: recursion, `tpl` in `tpl`, `repeat`, `until`, regular expressions, values that contain themselves | `templates` |
//! | somebody waits no longer | `cancelled` |
//! | memory | `memory` |
//! | what the reference says of all limits | `limits` |
//! | anything else | `mutated`, `found` |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod archives;
mod build;
mod cancelled;
mod charts;
mod documents;
mod found;
mod helms;
mod limits;
mod memory;
mod mutated;
mod schemas;
mod templates;
