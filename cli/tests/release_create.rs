//! The command as people call it: what it prints and how it ends.

#[cfg(test)]
mod journeys {
    use std::{
        fs,
        io::{Read, Write},
        net::{Ipv4Addr, TcpListener, TcpStream},
        path::Path,
        process::{Command, Output},
        thread,
    };

    use release::Digest;
    use serde_json::json;
    use tempfile::TempDir;

    const STACKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/stacks/docker-harbor");

    fn create(arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"));
        command
            .args(["release", "create"])
            .args(arguments)
            .output()
            .expect("the command starts")
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("the command prints text")
    }

    fn path(path: &Path) -> &str {
        path.to_str().expect("temporary names are text")
    }

    #[test]
    fn every_file_of_the_release_is_printed_with_size_and_digest() {
        let output = TempDir::new().unwrap();
        let made = create(&[&format!("{STACKS}/v1"), "--output", path(output.path())]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let release = output.path().join("docker-harbor-1-34-v1");
        let printed = text(&made.stdout);
        assert!(
            printed.starts_with(&format!(
                "docker-harbor-1-34-v1 (class of 7 objects) created: {}\n",
                release.display()
            )),
            "{printed}"
        );
        for file in fs::read_dir(&release).unwrap() {
            let file = file.unwrap();
            let line = printed
                .lines()
                .find(|line| line.starts_with(file.file_name().to_str().unwrap()))
                .expect("the file has a line");
            assert!(
                line.contains(&format!(" {} ", file.metadata().unwrap().len())),
                "{line}"
            );
        }

        let again = create(&[&format!("{STACKS}/v1"), "--output", path(output.path())]);
        assert_eq!(again.status.code(), Some(0));
        assert_eq!(
            text(&again.stdout),
            "nothing changed since docker-harbor-1-34-v1, so no release was made; give a --version to make one nevertheless\n"
        );
    }

    /// A copy of our own stack with one more template in its class chart.
    fn stack_with(template: &str) -> TempDir {
        let place = TempDir::new().unwrap();
        copy(Path::new(STACKS).join("v1").as_path(), place.path());
        fs::write(place.path().join("cluster-class/templates/more.yaml"), template).unwrap();
        place
    }

    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                fs::create_dir(&target).unwrap();
                copy(&entry.path(), &target);
            } else {
                fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn class_chart_that_does_not_render_becomes_no_release() {
        for (template, place, reason) in [
            (
                "\n\na: {{ nosuch }}\n",
                "more.yaml:3: correct this template",
                "function \"nosuch\" not defined",
            ),
            (
                "\na: {{ .Values.no.such }}\n",
                "more.yaml:2: correct this template",
                "nil pointer evaluating interface {}.such",
            ),
            (
                "a: b: c\n",
                "more.yaml: correct what this template renders",
                "mapping values are not allowed in this context",
            ),
            (
                "apiVersion: v1\nkind: ConfigMap\n",
                "more.yaml: correct what this template renders",
                "renders an object without metadata",
            ),
        ] {
            let (stack, output) = (stack_with(template), TempDir::new().unwrap());
            let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
            let message = text(&made.stderr);
            assert_eq!(made.status.code(), Some(1), "{message}");
            let start = format!("error: {}/cluster-class/templates/{place}", stack.path().display());
            assert!(message.starts_with(&start), "{message}");
            assert!(message.trim_end().ends_with(reason), "{message}");
            assert_eq!((message.lines().count(), text(&made.stdout)), (1, ""));
            assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0, "{message}");
        }
    }

    /// What is said of our own stack with this file in its chart of the network, which becomes no release.
    fn refused_with(file: &str, content: &str) -> String {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let path_of_file = stack.path().join("cluster-addon/network").join(file);
        fs::create_dir_all(path_of_file.parent().unwrap()).unwrap();
        fs::write(path_of_file, content).unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        let message = text(&made.stderr);
        assert_eq!(made.status.code(), Some(1), "{file} {content}: {message}");
        assert_eq!((message.lines().count(), text(&made.stdout)), (1, ""), "{message}");
        assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0, "{message}");
        message.trim_end().replace(&format!("{}/", stack.path().display()), "")
    }

    #[test]
    fn chart_of_an_addon_that_can_never_render_becomes_no_release() {
        for (file, content, place, reason) in [
            (
                "templates/more.yaml",
                "a: b\n\nc: {{ .Values.c | qote }}\n",
                "templates/more.yaml:3: correct this file (did you mean quote",
                "function \"qote\" not defined",
            ),
            (
                "templates/more.yaml",
                "a: {{ env \"HOME\" }}\n",
                "templates/more.yaml:1: correct this file (charts see nothing of any environment",
                "function \"env\" not defined",
            ),
            (
                "templates/more.yaml",
                "a: b\nb: {{ .Values.b\n",
                "templates/more.yaml:",
                "unclosed action",
            ),
            (
                "templates/_more.tpl",
                "{{ if .Values.b }}\na: b\n",
                "templates/_more.tpl:",
                "unexpected EOF",
            ),
            (
                "templates/more.tera",
                "a: b\nc: {{ Values.c | qote }}\n",
                "templates/more.tera:2: correct this file",
                "qote",
            ),
            (
                "values.yaml",
                "a: b\nc: d: e\n",
                "values.yaml: correct this file",
                "line 2",
            ),
            (
                "Chart.yaml",
                "apiVersion: v2\nname: network\nversion: 0.1.0\ntype: library\n",
                "Chart.yaml: correct this file",
                "library charts are not installable",
            ),
            (
                "Chart.yaml",
                "apiVersion: v2\nname: network\nversion: 0.1.0\nkubeVersion: <1.30\n",
                "Chart.yaml: correct this file",
                "chart requires kubeVersion: <1.30 which is incompatible with Kubernetes v1.34.0",
            ),
            (
                "crds/quays.yaml",
                "kind: CustomResourceDefinition\nmetadata:\n  name: {{ .Release.Name }}-quays\n",
                "crds/quays.yaml: correct this file",
                "error converting YAML to JSON",
            ),
            (
                "Chart.yaml",
                "apiVersion: v2\nname: network\nversion: 0.1.0\nkeywords: one\n",
                "Chart.yaml: correct this file",
                "keywords",
            ),
            (
                "values.schema.json",
                "{\"type\": \"nonsense\"}",
                "values.schema.json: correct this file",
                "is not valid against metaschema",
            ),
            (
                "values.schema.json",
                "{",
                "values.schema.json: correct this file",
                "EOF",
            ),
            (
                "overwrite.yaml",
                "a: b\nc: {{ .Cluster.metadata.name | qote }}\n",
                "overwrite.yaml:2: correct this template (did you mean quote",
                "function \"qote\" not defined",
            ),
            (
                "overwrite.yaml",
                "a: b\n{{ if false }}c: {{ env \"HOME\" }}{{ end }}\n",
                "overwrite.yaml:2: correct this template",
                "the function \"env\" reads the environment of the program",
            ),
        ] {
            let message = refused_with(file, content);
            let start = format!("error: cluster-addon/network/{place}");
            assert!(message.starts_with(&start), "{content}: {message}");
            assert!(message.contains(reason), "{content}: {message}");
        }
    }

    #[test]
    fn mistake_in_a_template_of_values_is_told_with_its_place_once() {
        for (content, told) in [
            (
                "a: b\nc: {{ .Cluster.metadata.name | qote }}\n",
                "overwrite.yaml:2: correct this template (did you mean quote?), then make the release again: function \"qote\" not defined",
            ),
            (
                "a: {{ toYaml .Cluster }}\n",
                "overwrite.yaml:1: correct this template (Helm's own functions are not there in templates of values), then make the release \
                 again: function \"toYaml\" not defined",
            ),
            (
                "a: {{ env \"HOME\" }}\n",
                "overwrite.yaml:1: correct this template, then make the release again: the function \"env\" reads the environment of the \
                 program: values follow from the objects of the cluster alone",
            ),
        ] {
            let message = refused_with("overwrite.yaml", content);
            assert_eq!(message, format!("error: cluster-addon/network/{told}"));
        }
    }

    /// Our own stack with a chart that its network has in it, which is wrong.
    fn stack_with_a_wrong_chart_in_it(declared: &str) -> TempDir {
        let stack = stack_with("");
        let network = stack.path().join("cluster-addon/network");
        let chart = format!("apiVersion: v2\nname: network\nversion: 0.1.0\n{declared}");
        fs::write(network.join("Chart.yaml"), chart).unwrap();
        fs::create_dir_all(network.join("charts/quay/templates")).unwrap();
        for (file, content) in [
            ("Chart.yaml", "apiVersion: v2\nname: quay\nversion: 1.2.3\n"),
            ("templates/a.yaml", "{{ nosuch }}\n"),
            ("templates/b.yaml", "{{ mustToYaml .Values }}\n"),
        ] {
            fs::write(network.join("charts/quay").join(file), content).unwrap();
        }
        stack
    }

    #[test]
    fn fault_in_a_chart_that_values_may_switch_off_is_noted() {
        let stack =
            stack_with_a_wrong_chart_in_it("dependencies: [{name: quay, version: 1.x, condition: quay.enabled}]\n");
        let output = TempDir::new().unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let templates = stack.path().join("cluster-addon/network/charts/quay/templates");
        let start = format!("note: {}", templates.display());
        let mut told: Vec<_> = text(&made.stderr).lines().collect();
        told.sort_unstable();
        assert_eq!(
            told,
            [
                format!(
                    "{start}/a.yaml:1: the add-on works only where values switch this chart off: function \"nosuch\" not defined"
                ),
                format!(
                    "{start}/b.yaml:1: with spec.policy.helmProfile v4.3 alone, not with v3.19, unless values switch this chart off: function \
                     \"mustToYaml\" not defined"
                ),
            ]
        );

        let stack = stack_with_a_wrong_chart_in_it("dependencies: [{name: quay, version: 1.x}]\n");
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v2"]);
        assert_eq!(made.status.code(), Some(1), "{}", text(&made.stderr));
    }

    #[test]
    fn fault_in_a_chart_that_an_addon_has_in_it_is_told_with_its_place() {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let folder = stack.path().join("cluster-addon/network/charts");
        for (file, content) in [
            ("quay/Chart.yaml", "apiVersion: v2\nname: quay\nversion: 1.2.3\n"),
            ("quay/templates/a.yaml", "{{ nosuch }}\n"),
        ] {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let refusal = || {
            let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
            assert_eq!(made.status.code(), Some(1), "{}", text(&made.stderr));
            text(&made.stderr).to_owned()
        };
        let start = |file: &str| format!("error: {}/{file}:1: ", folder.display());
        let message = refusal();
        assert!(message.starts_with(&start("quay/templates/a.yaml")), "{message}");
        let packed = Command::new("tar")
            .args([
                "-czf",
                path(&folder.join("quay-1.2.3.tgz")),
                "-C",
                path(&folder),
                "quay",
            ])
            .status()
            .unwrap();
        assert!(packed.success());
        fs::remove_dir_all(folder.join("quay")).unwrap();
        let message = refusal();
        assert!(
            message.starts_with(&start("quay-1.2.3.tgz/templates/a.yaml")),
            "{message}"
        );
    }

    #[test]
    fn tera_template_of_values_that_is_none_becomes_no_release() {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let folder = stack.path().join("cluster-addon/network");
        fs::remove_file(folder.join("overwrite.yaml")).unwrap();
        fs::write(
            folder.join("overwrite.yaml.tera"),
            "a: b\nc: {{ get_env(name=\"HOME\") }}\n",
        )
        .unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        let message = text(&made.stderr);
        assert_eq!(made.status.code(), Some(1), "{message}");
        let start = format!(
            "error: {}/overwrite.yaml.tera:2: correct this template",
            folder.display()
        );
        assert!(message.starts_with(&start) && message.contains("get_env"), "{message}");
    }

    #[test]
    fn chart_of_an_addon_that_only_a_newer_helm_renders_becomes_a_release_with_a_note() {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let file = stack.path().join("cluster-addon/network/templates/more.yaml");
        fs::write(&file, "a: {{ mustToYaml .Values }}\n").unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        assert_eq!(
            text(&made.stderr),
            format!(
                "note: {}:1: with spec.policy.helmProfile v4.3 alone, not with v3.19: function \"mustToYaml\" not defined\n",
                file.display()
            )
        );
    }

    /// Puts the add-ons of a real release in the place of our own, and says whether they are in stages.
    fn put_addons(stack: &Path, release: &Path) -> bool {
        let addons = stack.join("cluster-addon");
        fs::remove_dir_all(&addons).unwrap();
        fs::create_dir(&addons).unwrap();
        fs::remove_file(stack.join("clusteraddon.yaml")).unwrap();
        let is_staged = release.join("clusteraddon.yaml").exists();
        let mut arguments = vec![
            "-xzf".to_owned(),
            String::new(),
            "-C".to_owned(),
            path(&addons).to_owned(),
        ];
        for file in fs::read_dir(release).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap();
            if name.contains("-cluster-addon-") {
                path(&file).clone_into(&mut arguments[1]);
            } else if name.starts_with("cluster-addon-values") || name == "clusteraddon.yaml" {
                fs::copy(&file, stack.join(name)).unwrap();
            }
        }
        if !is_staged {
            arguments.push("--strip-components=1".to_owned());
        }
        assert!(Command::new("tar").args(&arguments).status().unwrap().success());
        is_staged
    }

    #[test]
    fn addons_of_real_releases_become_a_release_again() {
        let Some(corpus) = std::env::var_os("STACKWRIGHT_CORPUS") else {
            // Not by a macro: the harness keeps what those write to itself when a test passes.
            let said = "REDUCED: STACKWRIGHT_CORPUS is unset, so no add-ons of real releases are packed\n";
            std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
            return;
        };
        let mut packed = 0;
        for release in fs::read_dir(Path::new(&corpus).join("releases")).unwrap() {
            let release = release.unwrap().path();
            let files = fs::read_dir(&release).unwrap();
            let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            if !names.any(|name| name.contains("-cluster-addon-")) {
                continue;
            }
            let (stack, output) = (stack_with(""), TempDir::new().unwrap());
            if !put_addons(stack.path(), &release) {
                let chart = stack.path().join("cluster-addon/Chart.yaml");
                let text_of_chart = fs::read_to_string(&chart).unwrap();
                let named =
                    text_of_chart.replace("docker-ferrol-1-27-cluster-addon", "docker-harbor-1-34-cluster-addon");
                fs::write(&chart, named).unwrap();
            }
            let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
            assert_eq!(
                made.status.code(),
                Some(0),
                "{}: {}",
                release.display(),
                text(&made.stderr)
            );
            packed += 1;
        }
        assert!(packed > 8, "{packed}");
    }

    #[test]
    fn chart_that_an_addon_needs_comes_from_the_directory_of_charts_and_is_told() {
        let (stack, output, charts) = (stack_with(""), TempDir::new().unwrap(), TempDir::new().unwrap());
        let file = stack.path().join("cluster-addon/network/Chart.yaml");
        let chart = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            format!("{chart}\ndependencies:\n- {{name: quay, version: ~1.2.0}}\n"),
        )
        .unwrap();
        let arguments = [path(stack.path()), "--output", path(output.path()), "--version", "v1"];
        let refused = create(&arguments);
        assert_eq!(refused.status.code(), Some(1));
        let message = text(&refused.stderr);
        assert!(
            message.contains("the dependency \"quay\" is not in charts/") && message.contains("--charts"),
            "{message}"
        );
        assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0);

        for version in ["1.2.3", "1.2.10", "1.3.0"] {
            let quay = charts.path().join(version);
            fs::create_dir(&quay).unwrap();
            fs::write(quay.join("Chart.yaml"), format!("name: quay\nversion: {version}\n")).unwrap();
        }
        let made = create(&[&arguments[..], &["--charts", path(charts.path())]].concat());
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let from = charts.path().join("1.2.10");
        let into = stack.path().join("cluster-addon/network");
        assert_eq!(
            text(&made.stderr),
            format!("note: {}: takes quay 1.2.10 from {}\n", into.display(), from.display())
        );
        assert!(output.path().join("docker-harbor-1-34-v1").is_dir());
    }

    /// A registry without TLS and with a password, which has the chart quay in these versions; gives its host.
    fn registry(charts: &[(&'static str, Vec<u8>)]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let charts: Vec<_> = charts
            .iter()
            .map(|(version, archive)| (*version, manifest(archive), archive.clone()))
            .collect();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &charts);
            }
        });
        host
    }

    fn manifest(archive: &[u8]) -> String {
        let layer = json!({
            "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "digest": Digest::of(archive).to_string(),
            "size": archive.len()
        });
        let config = json!({
            "mediaType": "application/vnd.cncf.helm.config.v1+json",
            "digest": Digest::of(b"{}").to_string(),
            "size": 2
        });
        json!({ "schemaVersion": 2, "config": config, "layers": [layer] }).to_string()
    }

    fn answer(mut stream: TcpStream, charts: &[(&str, String, Vec<u8>)]) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap() == 0 {
                return;
            }
            head.push(byte[0]);
        }
        let head = text(&head);
        let path = head.split(' ').nth(1).unwrap().trim_start_matches("/v2/charts/quay/");
        let is_known = head
            .to_lowercase()
            .contains("authorization: basic agfyym9yonnly3jlda==");
        let (status, content) = if !is_known {
            ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"stub\"", Vec::new())
        } else if path.starts_with("tags/list") {
            let tags: Vec<_> = charts.iter().map(|(version, ..)| *version).collect();
            ("200 OK", json!({ "tags": tags }).to_string().into_bytes())
        } else {
            let found = charts.iter().find_map(|(version, manifest, archive)| {
                let is_blob = path == format!("blobs/{}", Digest::of(archive));
                let is_manifest = path == format!("manifests/{version}");
                is_blob
                    .then(|| archive.clone())
                    .or_else(|| is_manifest.then(|| manifest.clone().into_bytes()))
            });
            found.map_or(("404 Not Found", Vec::new()), |content| ("200 OK", content))
        };
        let length = content.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), &content].concat()).unwrap();
    }

    /// The archive of the chart quay in this version.
    fn quay(version: &str) -> Vec<u8> {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("quay")).unwrap();
        let chart = format!("apiVersion: v2\nname: quay\nversion: {version}\n");
        fs::write(folder.path().join("quay/Chart.yaml"), chart).unwrap();
        let packed = Command::new("tar")
            .args(["-czf", "-", "-C", path(folder.path()), "quay"])
            .output()
            .unwrap();
        assert!(packed.status.success(), "{}", text(&packed.stderr));
        packed.stdout
    }

    #[test]
    fn chart_that_an_addon_needs_is_fetched_from_a_registry_that_is_named_and_is_told() {
        let (stack, output, folder) = (stack_with(""), TempDir::new().unwrap(), TempDir::new().unwrap());
        let charts = ["1.2.3", "1.2.10", "1.3.0"].map(|version| (version, quay(version)));
        let host = registry(&charts);
        let place = format!("oci://{host}/charts");
        let file = stack.path().join("cluster-addon/network/Chart.yaml");
        let chart = fs::read_to_string(&file).unwrap();
        let dependency = format!("dependencies:\n- {{name: quay, version: ~1.2.0, repository: '{place}'}}\n");
        fs::write(&file, format!("{chart}\n{dependency}")).unwrap();
        let logins = folder.path().join("logins.json");
        // harbor and secret
        let login = json!({ "auths": { host.clone(): { "auth": "aGFyYm9yOnNlY3JldA==" } } });
        fs::write(&logins, login.to_string()).unwrap();

        let arguments = [path(stack.path()), "--output", path(output.path()), "--version", "v1"];
        let run = |more: &[&str]| create(&[&arguments[..], more].concat());
        let refusal = |more: &[&str]| {
            let refused = run(more);
            assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
            text(&refused.stderr).to_owned()
        };
        let named = ["--chart-registry", &place, "--plain-http"];
        let reached = [&named[..], &["--allow-source-network", "127.0.0.0/8"]].concat();
        let nobody = [&reached[..], &["--registry-config", "/dev/null"]].concat();
        let nowhere = [&reached[..], &["--registry-config", "/nowhere/logins.json"]].concat();
        for (more, words) in [
            (&[][..], format!("or have it fetched with --chart-registry {place}")),
            (
                &named[..],
                "name its network with the flag --allow-source-network".to_owned(),
            ),
            (&nobody[..], "/dev/null: is no file with logins".to_owned()),
            (&nowhere[..], "/nowhere/logins.json: unable to read it".to_owned()),
        ] {
            let message = refusal(more);
            assert!(message.contains(&words), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0);

        let made = run(&[&reached[..], &["--registry-config", path(&logins)]].concat());
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let digest = Digest::of(manifest(&charts[1].1).as_bytes());
        let into = stack.path().join("cluster-addon/network");
        assert_eq!(
            text(&made.stderr),
            format!(
                "note: {}: takes quay 1.2.10 from {place}/quay:1.2.10@{digest}\n",
                into.display()
            )
        );
        assert!(output.path().join("docker-harbor-1-34-v1").is_dir());
    }

    #[test]
    fn logins_of_helm_and_docker_are_used_where_no_file_is_named() {
        let (stack, folder) = (stack_with(""), TempDir::new().unwrap());
        let host = registry(&[("1.2.3", quay("1.2.3"))]);
        let place = format!("oci://{host}/charts");
        let file = stack.path().join("cluster-addon/network/Chart.yaml");
        let chart = fs::read_to_string(&file).unwrap();
        let dependency = format!("dependencies:\n- {{name: quay, version: 1.2.3, repository: '{place}'}}\n");
        fs::write(&file, format!("{chart}\n{dependency}")).unwrap();
        for (home, written) in [
            ("nobody", None),
            ("docker", Some(".docker/config.json")),
            ("helm", Some(".config/helm/registry/config.json")),
        ] {
            let home = folder.path().join(home);
            if let Some(written) = written {
                let file = home.join(written);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                let login = json!({ "auths": { host.clone(): { "auth": "aGFyYm9yOnNlY3JldA==" } } });
                fs::write(file, login.to_string()).unwrap();
            }
            let output = home.join("releases");
            let made = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"))
                .args(["release", "create", path(stack.path()), "--output", path(&output)])
                .args(["--chart-registry", &place, "--plain-http"])
                .args(["--allow-source-network", "127.0.0.0/8"])
                .env("HOME", &home)
                .env_remove("DOCKER_CONFIG")
                .env_remove("HELM_REGISTRY_CONFIG")
                .env_remove("HELM_CONFIG_HOME")
                .env_remove("XDG_CONFIG_HOME")
                .output()
                .unwrap();
            let expected = i32::from(written.is_none());
            assert_eq!(made.status.code(), Some(expected), "{home:?}: {}", text(&made.stderr));
            assert_eq!(output.join("docker-harbor-1-34-v1").is_dir(), written.is_some());
        }
    }

    #[test]
    fn what_could_not_be_checked_of_a_condition_is_noted() {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let file = stack.path().join("clusteraddon.yaml");
        let stages = fs::read_to_string(&file).unwrap();
        let of_others = stages.replacen(
            "apiVersion: apps/v1\n        kind: DaemonSet",
            "apiVersion: cilium.io/v2\n        kind: CiliumNode",
            1,
        );
        assert_ne!(of_others, stages);
        fs::write(&file, of_others).unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        assert_eq!(
            text(&made.stderr),
            format!(
                "note: {}:16:19: waitForPreCondition of the stage \"welcome\" of AfterControlPlaneInitialized: agent: no schema \
                 of CiliumNode in cilium.io/v2 is known: its fields are not checked\n",
                file.display()
            )
        );
    }

    #[test]
    fn class_chart_that_only_helm_can_render_yet_becomes_a_release_with_a_warning() {
        let stack = stack_with("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ randAlpha 3 }}\n");
        let output = TempDir::new().unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        let warning = text(&made.stderr);
        assert_eq!(made.status.code(), Some(0), "{warning}");
        let start = format!(
            "warning: {}/cluster-class/templates/more.yaml:4: ",
            stack.path().display()
        );
        assert!(
            warning.starts_with(&start) && warning.contains("function \"randAlpha\""),
            "{warning}"
        );
        assert!(
            text(&made.stdout).starts_with("docker-harbor-1-34-v1 (class not tried out) created: "),
            "{}",
            text(&made.stdout)
        );
    }

    #[test]
    fn stack_with_a_class_that_clusters_of_the_release_do_not_name_becomes_no_release() {
        let class =
            "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nmetadata: {name: docker-harbor-1-34-small}\n";
        let (second, wrong) = (stack_with(class), stack_with(""));
        let template = wrong.path().join("cluster-class/templates/cluster-class.yaml");
        let text_of_template = fs::read_to_string(&template).unwrap();
        let misnamed = text_of_template.replacen("  name: {{ $class }}\n", "  name: docker-harbor-1-34-small\n", 1);
        assert_ne!(misnamed, text_of_template);
        fs::write(&template, misnamed).unwrap();
        for (stack, file) in [(second, "more.yaml"), (wrong, "cluster-class.yaml")] {
            let output = TempDir::new().unwrap();
            let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
            let message = text(&made.stderr);
            assert_eq!(made.status.code(), Some(1), "{message}");
            let start = format!(
                "error: {}/cluster-class/templates/{file}: renders the ClusterClass docker-harbor-1-34-small, but a release brings one, and Clusters \
                 of this one name docker-harbor-1-34-v1: ",
                stack.path().display()
            );
            assert!(message.starts_with(&start), "{message}");
            assert_eq!((message.lines().count(), text(&made.stdout)), (1, ""));
            assert!(
                fs::read_dir(output.path()).unwrap().next().is_none(),
                "a release was made"
            );
        }
        let other_group = class.replace("cluster.x-k8s.io", "example.org");
        let (stack, output) = (stack_with(&other_group), TempDir::new().unwrap());
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    }

    #[test]
    fn words_of_a_template_steer_no_terminal() {
        let stack = stack_with(r#"{{ fail "\u001b]0;owned\u0007\u001b[2Jset a region" }}"#);
        let output = TempDir::new().unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(1));
        let message = text(&made.stderr).trim_end();
        assert!(message.ends_with("]0;owned [2Jset a region"), "{message:?}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }

    #[test]
    fn stack_that_renders_no_class_is_warned_about() {
        let stack = stack_with("");
        fs::remove_file(stack.path().join("cluster-class/templates/cluster-class.yaml")).unwrap();
        let output = TempDir::new().unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(made.status.code(), Some(0));
        assert!(
            text(&made.stderr)
                .ends_with("cluster-class/: renders no ClusterClass, so no Cluster can use the release\n"),
            "{}",
            text(&made.stderr)
        );
    }

    #[test]
    fn reader_who_stops_after_the_first_line_is_no_mistake() {
        let output = TempDir::new().unwrap();
        // Ends before the command writes anything.
        let script = "\"$0\" release create \"$1\" --output \"$2\" | :; echo \"${PIPESTATUS[0]}\"";
        let stack = format!("{STACKS}/v1");
        let arguments = [
            script,
            env!("CARGO_BIN_EXE_kubectl-stacks"),
            &stack,
            path(output.path()),
        ];
        for what in ["a release is made", "nothing changed"] {
            let told = Command::new("bash").arg("-c").args(arguments).output().unwrap();
            assert_eq!((text(&told.stdout), text(&told.stderr)), ("0\n", ""), "{what}");
            assert!(output.path().join("docker-harbor-1-34-v1/metadata.yaml").is_file());
        }
    }

    #[test]
    fn full_standard_output_after_a_release_was_made_or_nothing_changed_is_status_3_and_said() {
        let output = TempDir::new().unwrap();
        let stack = format!("{STACKS}/v1");
        let release = output.path().join("docker-harbor-1-34-v1");
        for done in [
            format!("the release is in {}", release.display()),
            "nothing changed since docker-harbor-1-34-v1, so no release was made".to_owned(),
        ] {
            let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let made = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"))
                .args(["release", "create", &stack, "--output", path(output.path())])
                .stdout(full)
                .output()
                .unwrap();
            let message = text(&made.stderr);
            assert_eq!(made.status.code(), Some(3), "{message}");
            assert!(release.join("metadata.yaml").is_file());
            let told = format!("error: {done}, but standard output cannot be written: No space left on device");
            assert!(message.starts_with(&told), "{message}");
        }
    }

    #[test]
    fn full_standard_error_changes_neither_what_is_done_nor_the_status() {
        for (template, status) in [("a: {{ mustToYaml .Values }}\n", 0), ("a: {{ nosuch }}\n", 1)] {
            let (stack, output) = (stack_with(""), TempDir::new().unwrap());
            let file = stack.path().join("cluster-addon/network/templates/more.yaml");
            fs::write(file, template).unwrap();
            let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let made = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"))
                .args(["release", "create", path(stack.path()), "--output", path(output.path())])
                .stderr(full)
                .output()
                .unwrap();
            assert_eq!(made.status.code(), Some(status), "{template}");
            assert_eq!(output.path().join("docker-harbor-1-34-v1").is_dir(), status == 0);
        }
    }

    #[test]
    fn umask_time_zone_and_working_directory_do_not_show() {
        let output = TempDir::new().unwrap();
        let made = |name: &str, umask: &str, time_zone: &str| {
            let place = output.path().join(name);
            let script = format!("umask {umask}; exec \"$0\" release create \"$1\" --output \"$2\" --version v1");
            let mut command = Command::new("sh");
            command.args([
                "-c",
                &script,
                env!("CARGO_BIN_EXE_kubectl-stacks"),
                &format!("{STACKS}/v1"),
                path(&place),
            ]);
            let printed = command
                .env("TZ", time_zone)
                .current_dir(output.path())
                .output()
                .unwrap();
            assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
            // The first line has the place, the others names and digests.
            text(&printed.stdout)
                .split_once('\n')
                .expect("more than one line")
                .1
                .to_owned()
        };
        assert_eq!(made("open", "000", "UTC"), made("closed", "077", "Pacific/Auckland"));
    }

    #[test]
    fn mistake_in_the_stack_is_one_line_on_stderr_and_status_1() {
        let stack = TempDir::new().unwrap();
        let made = create(&[path(stack.path()), "--output", path(&stack.path().join("out"))]);
        assert_eq!(made.status.code(), Some(1));
        assert_eq!(text(&made.stdout), "");
        let message = text(&made.stderr);
        assert!(
            message.starts_with(&format!("error: {}/csctl.yaml: missing", stack.path().display())),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn mistakes_in_the_stages_have_a_line_each_with_the_file_of_the_stack_and_status_1() {
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        let file = stack.path().join("clusteraddon.yaml");
        let stages = fs::read_to_string(&file).unwrap();
        let stages = stages.replacen("action: apply", "action: \"a\\nb\"", 1).replacen(
            "agent.status.numberReady",
            "agent.status.numberRead",
            1,
        );
        fs::write(&file, stages).unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!((made.status.code(), text(&made.stdout)), (Some(1), ""));
        let told: Vec<_> = text(&made.stderr).lines().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        for (line, place) in told.iter().zip(["6: addonStages.", "16:19: waitForPreCondition "]) {
            let start = format!("error: {}:{place}", file.display());
            assert!(line.starts_with(&start), "{line}");
        }
        assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0, "nothing is written");
    }

    #[test]
    fn wrong_usage_is_status_2() {
        for arguments in [
            &["."][..],
            &[".", "--output", "out", "--version", "2"],
            &[".", "--output", "out", "--version", "v2", "--next-after", "x"],
            &[".", "--output", "out", "--chart-registry", "https://charts.example.com"],
            &[".", "--output", "out", "--plain-http"],
        ] {
            assert_eq!(create(arguments).status.code(), Some(2), "{arguments:?}");
        }
    }

    #[test]
    fn help_shows_an_example() {
        let help = create(&["--help"]);
        assert_eq!(help.status.code(), Some(0));
        let help = text(&help.stdout);
        assert!(help.contains("$ kubectl stacks release create harbor --output"));
        assert!(help.contains("$ helm registry login registry.example.com"), "{help}");
    }
}
