//! The source of objects that name none, as the Go operators were told it: by flags and their environment, which nothing else of this room reads.

#![expect(
    clippy::doc_markdown,
    reason = "comments of fields are the text of --help, which has no markdown"
)]

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::ValueEnum;
use clap::builder::{StringValueParser, TypedValueParser};
use crds::source::{GithubSource, OciSource, Source};
use release::http::{Credentials, ExposeSecret, SecretString};
use thiserror::Error;

/// The source that is used where an object names none.
#[derive(Clone, Debug)]
pub enum UsualSource {
    /// The directory that all directory sources lie in.
    Directory,
    /// A remote one, with what the environment of the operator gives for it.
    Remote {
        /// Which.
        source: Box<Source>,
        /// A token, or name and password.
        credentials: Option<Credentials>,
        /// A file with certificates of authorities to trust besides the usual ones, in PEM.
        certificates: Option<PathBuf>,
    },
}

/// In words for people: what it is, and where. Nothing of the credentials.
impl fmt::Display for UsualSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => formatter.write_str("the directory of the operator"),
            Self::Remote { source, .. } => source.fmt(formatter),
        }
    }
}

/// What flags and variables lack, or have too much of, in words for whoever set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UsualError {
    /// Another kind of server than GitHub.
    #[error("only github is supported as GIT_PROVIDER")]
    ChooseProvider,
    /// Which repository on GitHub is not said.
    #[error("the source github needs {name}; set the variable or the flag of that name")]
    NameRepository {
        /// The variable that is missing.
        name: &'static str,
    },
    /// Which repository of a registry is not said.
    #[error("the source oci needs OCI_REPOSITORY, such as registry.example.com/kaas/cluster-stacks")]
    NameArtifacts,
    /// A name without password, or the other way round.
    #[error("OCI_USERNAME and OCI_PASSWORD belong together; set both, or neither")]
    PairCredentials,
}

/// Where releases come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UsualKind {
    /// A folder on this machine or volume.
    Directory,
    /// Releases of a repository on GitHub.
    Github,
    /// Artifacts of a repository in an OCI registry.
    Oci,
}

/// What names the usual source, and the folder of all directories. Tokens come from the environment: everybody can read the arguments of a process.
#[derive(Clone, Debug, clap::Args)]
pub struct UsualArgs {
    /// Where releases come from when a ClusterStack does not say so itself; github when GIT_ORG_NAME is set, else directory.
    #[arg(long, value_enum, value_name = "KIND")]
    source: Option<UsualKind>,

    /// The same as --source directory: releases lie in --release-dir already.
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, default_value_t = false, default_missing_value = "true", value_name = "BOOL")]
    local: bool,

    /// For github: which kind of server; github is the only one.
    #[arg(long, env = "GIT_PROVIDER", value_name = "PROVIDER")]
    git_provider: Option<String>,

    /// For github: the user or organisation. A token for it is taken from GIT_ACCESS_TOKEN.
    #[arg(long, env = "GIT_ORG_NAME", value_name = "NAME")]
    git_org_name: Option<String>,

    /// For github: the repository.
    #[arg(long, env = "GIT_REPOSITORY_NAME", value_name = "NAME")]
    git_repository_name: Option<String>,

    /// For github: URL of the API of a GitHub Enterprise Server, such as `https://github.example.com/api/v3`; api.github.com when empty.
    #[arg(long, env = "GIT_API_URL", value_name = "URL")]
    git_api_url: Option<String>,

    #[arg(long, env = "GIT_ACCESS_TOKEN", hide = true, hide_env_values = true, value_parser = StringValueParser::new().map(SecretString::from))]
    git_access_token: Option<SecretString>,

    /// For github and oci: a file with certificates of authorities in PEM, to trust besides those of the machine. Read again when the source does
    /// not answer.
    #[arg(long, env = "SOURCE_CA_FILE", value_name = "FILE")]
    source_ca_file: Option<String>,

    /// For oci: host of the registry, where the repository does not begin with it.
    #[arg(long, env = "OCI_REGISTRY", value_name = "HOST")]
    oci_registry: Option<String>,

    /// For oci: registry and repository. Credentials are taken from OCI_USERNAME and OCI_PASSWORD, or from OCI_ACCESS_TOKEN.
    #[arg(long, env = "OCI_REPOSITORY", value_name = "REPOSITORY")]
    oci_repository: Option<String>,

    #[arg(long, env = "OCI_USERNAME", hide = true, hide_env_values = true)]
    oci_username: Option<String>,

    #[arg(long, env = "OCI_PASSWORD", hide = true, hide_env_values = true, value_parser = StringValueParser::new().map(SecretString::from))]
    oci_password: Option<SecretString>,

    #[arg(long, env = "OCI_ACCESS_TOKEN", hide = true, hide_env_values = true, value_parser = StringValueParser::new().map(SecretString::from))]
    oci_access_token: Option<SecretString>,

    /// Folder of the source directory: releases lie in DIR/cluster-stacks/TAG/.
    #[arg(long, default_value = "/tmp/downloads", value_name = "DIR")]
    release_dir: PathBuf,
}

impl UsualArgs {
    /// The folder that all directory sources lie in or are.
    pub fn release_dir(&self) -> &Path {
        &self.release_dir
    }

    /// The source; the error names what is missing.
    pub fn source(&self) -> Result<UsualSource, UsualError> {
        match self.kind() {
            UsualKind::Directory => Ok(UsualSource::Directory),
            UsualKind::Github => self.github(),
            UsualKind::Oci => self.oci(),
        }
    }

    fn kind(&self) -> UsualKind {
        match self.source {
            _ if self.local => UsualKind::Directory,
            Some(kind) => kind,
            None if given(self.git_org_name.as_ref()).is_some() => UsualKind::Github,
            None => UsualKind::Directory,
        }
    }

    fn github(&self) -> Result<UsualSource, UsualError> {
        if given(self.git_provider.as_ref()).is_some_and(|provider| provider != "github") {
            return Err(UsualError::ChooseProvider);
        }
        let missing = |name| UsualError::NameRepository { name };
        let source = Source::Github(GithubSource {
            owner: given(self.git_org_name.as_ref())
                .ok_or(missing("GIT_ORG_NAME"))?
                .to_owned(),
            repository: given(self.git_repository_name.as_ref())
                .ok_or(missing("GIT_REPOSITORY_NAME"))?
                .to_owned(),
            api_url: given(self.git_api_url.as_ref()).map(str::to_owned),
            token_secret_ref: None,
            ca_secret_ref: None,
        });
        Ok(UsualSource::Remote {
            source: Box::new(source),
            credentials: known(self.git_access_token.as_ref()).map(Credentials::Bearer),
            certificates: self.certificates(),
        })
    }

    fn oci(&self) -> Result<UsualSource, UsualError> {
        let repository = given(self.oci_repository.as_ref()).ok_or(UsualError::NameArtifacts)?;
        let repository = match given(self.oci_registry.as_ref()) {
            Some(registry) if !repository.starts_with(&format!("{registry}/")) => format!("{registry}/{repository}"),
            _ => repository.to_owned(),
        };
        let source = Source::Oci(OciSource {
            repository,
            credentials_secret_ref: None,
            ca_secret_ref: None,
            plain_http: false,
        });
        Ok(UsualSource::Remote {
            source: Box::new(source),
            credentials: self.oci_credentials()?,
            certificates: self.certificates(),
        })
    }

    fn certificates(&self) -> Option<PathBuf> {
        given(self.source_ca_file.as_ref()).map(PathBuf::from)
    }

    /// The Go operator encodes the token before it sends it, and who wrote the variable counted on that.
    fn oci_credentials(&self) -> Result<Option<Credentials>, UsualError> {
        if let Some(token) = known(self.oci_access_token.as_ref()) {
            let encoded = BASE64_STANDARD.encode(token.expose_secret());
            return Ok(Some(Credentials::Bearer(encoded.into())));
        }
        match (given(self.oci_username.as_ref()), known(self.oci_password.as_ref())) {
            (Some(username), Some(password)) => Ok(Some(Credentials::Basic {
                username: username.to_owned(),
                password,
            })),
            (None, None) => Ok(None),
            _ => Err(UsualError::PairCredentials),
        }
    }
}

/// What is there and not empty: charts set variables of values that nobody gave.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn known(secret: Option<&SecretString>) -> Option<SecretString> {
    secret.cloned().filter(|secret| !secret.expose_secret().is_empty())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        usual: UsualArgs,
    }

    fn usual(flags: &[&str]) -> Result<UsualSource, UsualError> {
        let flags = ["operator"].iter().chain(flags);
        Command::try_parse_from(flags).unwrap().usual.source()
    }

    #[test]
    fn source_of_the_go_operator_is_the_same_here() {
        for (flags, described) in [
            (&[][..], "the directory of the operator"),
            (&["--local", "--git-org-name=kaas"], "the directory of the operator"),
            (
                &["--source=directory", "--git-org-name=kaas"],
                "the directory of the operator",
            ),
            (
                &[
                    "--git-org-name=kaas",
                    "--git-repository-name=stacks",
                    "--git-provider=github",
                ],
                "repository kaas/stacks",
            ),
            (
                &[
                    "--source=oci",
                    "--oci-registry=example.com",
                    "--oci-repository=example.com/kaas/stacks",
                ],
                "registry example.com/kaas/stacks",
            ),
            (
                &[
                    "--source=oci",
                    "--oci-registry=example.com",
                    "--oci-repository=kaas/stacks",
                ],
                "registry example.com/kaas/stacks",
            ),
        ] {
            assert_eq!(usual(flags).map(|usual| usual.to_string()), Ok(described.to_owned()));
        }
    }

    #[test]
    fn api_of_an_enterprise_server_and_certificates_are_those_that_were_given() {
        let flags = ["--git-org-name=kaas", "--git-repository-name=stacks"];
        let of = |more: &[&str]| match usual(&[&flags[..], more].concat()) {
            Ok(UsualSource::Remote {
                source, certificates, ..
            }) => match *source {
                Source::Github(github) => (github.api_url, certificates),
                other => panic!("{other}"),
            },
            other => panic!("{other:?}"),
        };
        let api = "https://github.example.com/api/v3";
        assert_eq!(
            of(&[&format!("--git-api-url={api}"), "--source-ca-file=/ca.crt"]),
            (Some(api.to_owned()), Some(PathBuf::from("/ca.crt")))
        );
        assert_eq!(of(&["--git-api-url=", "--source-ca-file="]), (None, None));
    }

    #[test]
    fn what_is_missing_is_named_as_people_set_it() {
        for (flags, words) in [
            (&["--source=github"][..], "GIT_ORG_NAME"),
            (&["--git-org-name=kaas"], "GIT_REPOSITORY_NAME"),
            (
                &[
                    "--git-org-name=kaas",
                    "--git-repository-name=stacks",
                    "--git-provider=gitlab",
                ],
                "only github is supported as GIT_PROVIDER",
            ),
            (&["--source=oci"], "OCI_REPOSITORY"),
            (
                &[
                    "--source=oci",
                    "--oci-repository=example.com/kaas",
                    "--oci-username=harbor",
                ],
                "OCI_USERNAME and OCI_PASSWORD",
            ),
        ] {
            let error = usual(flags).map(|usual| usual.to_string()).expect_err(words);
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn empty_variables_are_none_and_tokens_are_never_printed() {
        let flags = [
            "--source=oci",
            "--oci-repository=example.com/kaas",
            "--oci-access-token=",
            "--oci-username=",
        ];
        let Ok(UsualSource::Remote { credentials: None, .. }) = usual(&flags) else {
            panic!("credentials out of nothing");
        };
        let flags = [
            "--git-org-name=kaas",
            "--git-repository-name=stacks",
            "--git-access-token=hunter2",
        ];
        let usual = usual(&flags).unwrap();
        assert!(!format!("{usual:?}").contains("hunter2"), "{usual:?}");
        let flags = ["operator", "--oci-password=hunter2", "--oci-access-token=hunter2"];
        let command = Command::try_parse_from(flags).unwrap();
        assert!(!format!("{:?}", command.usual).contains("hunter2"));
    }
}
