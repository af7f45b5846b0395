//! Helm charts rendered in-process, byte for byte like `helm template`.
//!
//! Load a [`Chart`] once, render it as often as there are releases. What comes out is a [`Rendering`]: the bytes that `helm template` writes,
//! and the same as manifests with their data, their template and the line in it. What goes wrong is a [`RenderError`]: the words of Helm,
//! and the same as data.
//!
//! ```
//! use std::sync::Arc;
//!
//! use helm::answers::{Moment, Seeded};
//! use helm::{ArchiveLimits, Chart, Limits, Profile, RenderOptions, RenderProblem, yaml};
//!
//! // From a directory's files here; `Chart::from_archive` takes the bytes of a `.tgz`.
//! let text = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
//! let files = vec![
//!     text("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
//!     text("values.yaml", "hosts: []\nimage: {tag: stable}\n"),
//!     text("templates/hosts.yaml", "{{- range .Values.hosts }}\n---\nkind: Host\nmetadata:\n  name: {{ . }}\n{{- end }}\n"),
//!     text("templates/token.yaml", "kind: Token\ntoken: {{ randAlphaNum 8 | quote }}\ntag: {{ .Values.image.tag }}\n"),
//! ];
//! let chart = Chart::from_files(files, &ArchiveLimits::default())?;
//!
//! // Charts are shared, not copied: each release only brings its own values and options.
//! let options = RenderOptions {
//!     profile: Profile::V4_2,
//!     kube_version: Some("1.33.0".to_owned()),
//!     api_versions: vec!["monitoring.coreos.com/v1".to_owned()],
//!     limits: Limits { steps: 1_000_000, ..Limits::default() },
//!     answers: Arc::new(Seeded::new([7; 32], Moment { seconds: 1_764_000_000, nanoseconds: 0 })),
//!     ..RenderOptions::new("shop", "production")
//! };
//! let values = yaml::parse(b"hosts: [a.example, b.example]")?;
//! let rendering = chart.render(&values, &options)?;
//!
//! assert!(rendering.stdout().starts_with(b"---\n# Source: web/templates/hosts.yaml\nkind: Host\n"));
//! let second = &rendering.manifests[1];
//! assert_eq!(second.source, "web/templates/hosts.yaml");
//! assert_eq!(second.line(), Some(3));
//! let line = second.line_of(&["metadata", "name"]).ok_or("no name")?;
//! assert_eq!(second.template_line(line), Some(5), "`  name: b.example` comes from line 5 of the template");
//! let metadata = second.document().get("metadata").and_then(|metadata| metadata.get("name"));
//! assert_eq!(metadata.and_then(yaml::Node::as_text), Some("b.example"));
//! assert_eq!(rendering.stdout(), chart.render(&values, &options)?.stdout(), "the same in, the same out");
//!
//! // `image: null` takes the default away.
//! let error = chart.render(&yaml::parse(b"image: null")?, &options).unwrap_err();
//! assert_eq!(error.place(), Some(("web/templates/token.yaml", Some(3))));
//! assert_eq!(error.value_path().as_deref(), Some(".Values.image.tag"));
//! let RenderProblem::Execute(failure) = error.problem() else { unreachable!() };
//! assert_eq!(failure.message(), "nil pointer evaluating interface {}.tag");
//! assert!(error.stderr().starts_with("Error: web/templates/token.yaml:3:15\n  executing \"web/templates/token.yaml\" at <.Values.image.tag>:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - **Equal**: the bytes, and of errors the words, are those of the Helm version that the [`Profile`] names.
//! - **Hermetic**: no files, network, environment, clock or randomness. Charts and values come as bytes; what templates ask of the world
//!   (`randAlphaNum`, `genCA`, `now`, `lookup`), the [`answers`] of the render give, and by default nothing does.
//! - **Deterministic**: equal chart, values and options give equal bytes, with [`answers::Seeded`] and [`answers::Memo`] too.
//! - **Bounded**: any bytes may be given. [`ArchiveLimits`] bound what a chart may unpack to, [`Limits`] what its templates may use up,
//!   [`RenderOptions::cancelled`] ends a render soon after it is raised; beyond them there is an error, never a panic.
//! - **Parallel**: a [`Chart`] is cheap to clone and `Send + Sync`; renders of it share nothing that changes what they give.
//!
//! # What is left to others
//!
//! - Reading folders, flags and the clock: the program `helm-template` of this package does. Who wants the library alone takes it with
//!   `default-features = false`; the rest is an allocator and the system's randomness for the program.
//! - Keeping renderings: equal chart, values and options have equal renderings. The crate `rendering` of this workspace keeps them by the
//!   digest of these.
//!
//! Numbers of values are floats, as those of `values.yaml` and `-f`: [`yaml::parse`] gives them so. [`yaml::Node::Int`] is what `--set`
//! gives, and prints otherwise when it is large.
//!
//! # Where what is
//!
//! | | |
//! |---|---|
//! | a chart: files or archive, metadata, default values | [`Chart`], [`chart`] |
//! | what a render is for: release, Kubernetes, profile, limits, answers | [`RenderOptions`] |
//! | the Helm version to be equal to | [`Profile`] |
//! | values: YAML documents as data, `-f` and `--set` as Helm takes them | [`yaml`], [`command_line`] |
//! | randomness, time and cluster objects | [`answers`] |
//! | texts that are no files of a chart, by Go's template language and slim-sprig | [`go_text`] |
//! | what came out: text, data, hooks, the line of the template behind a field | [`Rendering`], [`Manifest`], [`Hook`], [`CrdFile`], [`Warning`] |
//! | what went wrong: places in templates, refused values | [`RenderError`], [`RenderProblem`], [`ExecError`], [`Place`], [`SchemaError`] |
//! | what is wrong before anything is rendered | [`Chart::problems`], [`FileProblem`] |

pub mod answers;
mod base64_text;
mod bounds;
pub mod chart;
pub mod command_line;
mod fields;
mod format;
#[doc(hidden)]
pub mod functions;
mod glob;
pub mod go_text;
#[doc(hidden)]
pub mod json;
mod keys;
mod layout;
mod manifest;
mod number;
mod objects;
mod options;
mod parsed;
mod plain;
mod print;
mod profile;
mod release_name;
mod render;
mod schema;
#[doc(hidden)]
pub mod semver;
mod sha1;
#[doc(hidden)]
pub mod template;
mod text;
mod time;
mod toml;
mod url;
#[doc(hidden)]
pub mod value;
mod warning;
pub mod yaml;

pub use bounds::BoundError;
pub use chart::{ArchiveLimits, Chart, LoadError, SchemaError, SchemaFinding};
pub use layout::CrdFile;
pub use manifest::{Hook, Manifest, ManifestError};
pub use options::{OtherChart, OtherLanguage, OtherProblem, RenderOptions};
pub use print::{NotInChart, Printing};
pub use profile::{ApiVersions, Build, Profile};
pub use release_name::NameError;
pub use render::{FileProblem, RenderError, RenderProblem, Rendering};
pub use template::{ExecError, Limits, ParseError, Place, StackError};
#[doc(hidden)]
pub use time::check_duration;
pub use warning::Warning;
