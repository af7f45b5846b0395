//! What the two services are told: their files, as far as they differ from what they do by themselves. Starts nothing.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{DEFAULT_STORE, Installed, RealOptions, STORES, secret::fernet_key, seed::Seeded};

/// Largest image, in bytes.
const LARGEST_IMAGE: u64 = 4 << 30;
/// Images on a page when nobody asks for another number.
const PAGE: usize = 25;
/// How long a token of a service itself has to be good for at least, in seconds, before it logs in anew: so the library has it.
const MARGIN: u64 = 120;

/// One service as a process.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Its name, also of its logs.
    pub(super) name: &'static str,
    /// The module and the object that answer.
    application: &'static str,
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    /// What its paths begin with.
    prefix: &'static str,
    /// Its endpoint.
    pub(super) url: String,
    /// What is answered when it is ready.
    pub(super) ready: String,
    /// Where it works, and finds its files.
    pub(super) folder: PathBuf,
    /// The variable that names the folder with its configuration.
    pub(super) variable: &'static str,
}

/// Both services.
pub(super) struct Configuration {
    pub(super) keystone: Plan,
    pub(super) glance: Plan,
    folder: PathBuf,
    paste: PathBuf,
    ca: Option<PathBuf>,
    token_seconds: u64,
    /// As its file lists them.
    methods: String,
    limits: bool,
    threads: u16,
}

impl Configuration {
    pub(super) fn new(installed: &Installed, folder: &Path, options: &RealOptions, [first, second]: [u16; 2]) -> Self {
        let scheme = if options.tls { "https" } else { "http" };
        let prefixes = if options.prefix {
            ["/identity", "/image"]
        } else {
            ["", ""]
        };
        let [keystone, glance] = [(first, prefixes[0]), (second, prefixes[1])]
            .map(|(port, prefix)| format!("{scheme}://{}:{port}{prefix}", options.address));
        Self {
            keystone: Plan {
                name: "keystone",
                application: "keystone.wsgi.api:application",
                address: options.address,
                port: first,
                prefix: prefixes[0],
                url: format!("{keystone}/v3"),
                ready: format!("{keystone}/v3"),
                folder: folder.join("keystone"),
                variable: "OS_KEYSTONE_CONFIG_DIR",
            },
            glance: Plan {
                name: "glance",
                application: "glance.wsgi.api:application",
                address: options.address,
                port: second,
                prefix: prefixes[1],
                ready: format!("{glance}/healthcheck"),
                url: glance,
                folder: folder.join("glance"),
                variable: "OS_GLANCE_CONFIG_DIR",
            },
            folder: folder.to_owned(),
            paste: installed.paste(),
            ca: options.tls.then(|| folder.join("ca.pem")),
            token_seconds: options.token_ttl.as_secs(),
            methods: options.methods.join(","),
            limits: options.limits,
            threads: options.threads,
        }
    }

    pub(super) fn write_keystone(&self) -> Result<()> {
        let keys = self.keystone.folder.join("keys");
        make(&keys)?;
        // The next key and the one that is used.
        for name in ["0", "1"] {
            write(&keys.join(name), &fernet_key()?)?;
        }
        write(&self.keystone.folder.join("keystone.conf"), &self.keystone_conf(&keys))?;
        self.write_server(&self.keystone)
    }

    pub(super) fn write_glance(&self, seeded: &Seeded) -> Result<()> {
        for name in STORES.into_iter().chain(["staging", "tasks"]) {
            make(&self.glance.folder.join(name))?;
        }
        write(&self.glance.folder.join("glance-api.conf"), &self.glance_conf(seeded))?;
        self.write_server(&self.glance)
    }

    /// A file and no arguments: Keystone takes those of its process for its own.
    fn write_server(&self, plan: &Plan) -> Result<()> {
        let tls = self.ca.as_ref().map(|_| {
            let at = |name: &str| self.folder.join(name).display().to_string();
            format!("certfile = {:?}\nkeyfile = {:?}\n", at("server.pem"), at("server.key"))
        });
        let Plan {
            application,
            prefix,
            address,
            port,
            name,
            ..
        } = plan;
        let log = self.folder.join(format!("{name}-server.log"));
        let requests = requests_of(&self.folder, name);
        // Where tokens are shorter than that, Glance would log in for each of the dozen things that it asks Keystone for in one call.
        let margin = MARGIN.min(self.token_seconds / 4);
        let own = format!(
            "wsgi_app = {application:?}\nraw_env = [\"SCRIPT_NAME={prefix}\"]\nbind = \"{address}:{port}\"\nproc_name = \"{name}\"\n\
             errorlog = \"{}\"\naccesslog = \"{}\"\n{}token_margin = {margin}\nthreads = {}\n",
            log.display(),
            requests.display(),
            tls.unwrap_or_default(),
            self.threads
        );
        write(&plan.folder.join("gunicorn.conf.py"), &(own + SERVER))
    }

    fn keystone_conf(&self, keys: &Path) -> String {
        let (folder, keys, seconds) = (self.folder.display(), keys.display(), self.token_seconds);
        format!(
            "[DEFAULT]
log_file = {folder}/keystone.log
use_stderr = false
max_token_size = 512
[database]
connection = sqlite:///{folder}/keystone.sqlite
[cache]
enabled = true
backend = dogpile.cache.memory
[token]
provider = fernet
expiration = {seconds}
allow_expired_window = 0
[fernet_tokens]
key_repository = {keys}
[fernet_receipts]
key_repository = {keys}
[credential]
key_repository = {keys}
[identity]
# A login must not take a fifth of a second.
password_hash_rounds = 4
"
        )
    }

    fn glance_conf(&self, seeded: &Seeded) -> String {
        let (folder, images) = (self.folder.display(), self.glance.folder.display());
        let (url, paste) = (&self.glance.url, self.paste.display());
        let backends: Vec<String> = STORES.iter().map(|store| format!("{store}:file")).collect();
        let stores: Vec<String> = STORES
            .iter()
            .map(|store| format!("[{store}]\nfilesystem_store_datadir = {images}/{store}\n"))
            .collect();
        let (backends, stores) = (backends.join(", "), stores.concat());
        let identity = self.identity(&seeded.glance_password);
        let (methods, limits) = (&self.methods, self.limits);
        let endpoint = &seeded.glance_endpoint;
        format!(
            "[DEFAULT]
log_file = {folder}/glance.log
use_stderr = false
image_size_cap = {LARGEST_IMAGE}
use_keystone_limits = {limits}
limit_param_default = {PAGE}
enabled_import_methods = [{methods}]
enabled_backends = {backends}
node_staging_uri = file://{images}/staging
worker_self_reference_url = {url}
[glance_store]
default_backend = {DEFAULT_STORE}
{stores}[os_glance_staging_store]
filesystem_store_datadir = {images}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {images}/tasks
[database]
connection = sqlite:///{folder}/glance.sqlite
[paste_deploy]
flavor = keystone
config_file = {paste}
[import_filtering_opts]
# Loopback is refused unless the host is listed. An empty list of ports is any.
allowed_hosts = [127.0.0.1,localhost]
allowed_ports = []
disallowed_ports = []
[keystone_authtoken]
{identity}project_name = service
project_domain_name = Default
service_token_roles_required = true
# Access rules of credentials are held against it.
service_type = image
token_cache_time = 5
[oslo_limit]
{identity}system_scope = all
# Otherwise it is asked for six times a check.
endpoint_id = {endpoint}
"
        )
    }

    /// How Glance logs in.
    fn identity(&self, password: &str) -> String {
        let url = &self.keystone.url;
        let ca = self.ca.as_ref().map(|path| format!("cafile = {}\n", path.display()));
        format!(
            "www_authenticate_uri = {url}
auth_url = {url}
auth_type = password
username = glance
password = {password}
user_domain_name = Default
{}",
            ca.unwrap_or_default()
        )
    }
}

/// What both servers are told. One process answers, because what is staged and imported belongs to it. It is never given up for being slow. Both
/// it and its parent end by SIGKILL when their standard input does, which is when whoever started them is gone.
const SERVER: &str = r#"
access_log_format = "%(m)s %({RAW_URI}e)s %(s)s %(D)s"
worker_class = "gthread"
workers = 1
timeout = 0
graceful_timeout = 3
keepalive = 15
control_socket_disable = True
loglevel = "warning"

import os, signal, threading
from keystoneauth1.identity.base import BaseIdentityPlugin
from sqlalchemy import event
from sqlalchemy.engine import Engine


def _end_with_the_starter():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _watch():
    threading.Thread(target=_end_with_the_starter, daemon=True).start()


def post_fork(_server, _worker):
    _watch()


_watch()
BaseIdentityPlugin.MIN_TOKEN_LIFE_SECONDS = token_margin


# A transaction that begins as a reader and becomes a writer fails at once when SQLite is busy; one that begins as a writer waits.
@event.listens_for(Engine, "connect")
def _pragmas(connection, _record):
    for pragma in ("journal_mode=WAL", "synchronous=OFF", "busy_timeout=30000"):
        connection.execute("PRAGMA " + pragma)


@event.listens_for(Engine, "before_cursor_execute", retval=True)
def _begin(_connection, _cursor, statement, parameters, _context, _many):
    return ("BEGIN IMMEDIATE" if statement == "BEGIN" else statement), parameters
"#;

/// Where a service writes a line for each request: method, path and query, status, and how long it took in microseconds.
pub(super) fn requests_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-requests.log"))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
