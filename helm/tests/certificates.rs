//! Keys and certificates are real ones: OpenSSL takes them, and the same seed gives the same.
//!
//! What is said of wrong keys and wrong arguments is recorded from Helm in `micro/certificates.txt`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use helm::answers::{Entry, Memo, Moment, Refusing, Seeded};
use helm::chart::ArchiveLimits;
use helm::template::Limits;
use helm::yaml::{self, Node};
use helm::{Chart, RenderOptions};

/// 2026-11-21 20:00:00 UTC.
const NOW: Moment = Moment {
    seconds: 1_795_291_200,
    nanoseconds: 0,
};

fn memo(recorded: Vec<Entry>) -> Arc<Memo> {
    Arc::new(Memo::new(recorded, Arc::new(Seeded::new([9; 32], NOW))))
}

fn rendered(template: &str, answers: Arc<Memo>, limits: Limits) -> Result<BTreeMap<String, String>, String> {
    let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let chart = file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    let chart = Chart::from_files(
        vec![chart, file("templates/t.yaml", template)],
        &ArchiveLimits::default(),
    )
    .unwrap();
    let options = RenderOptions {
        answers,
        limits,
        ..RenderOptions::new("r", "ns")
    };
    let rendering = chart.render(&Node::Null, &options).map_err(|error| error.to_string())?;
    let node = yaml::parse(&rendering.stdout()).unwrap();
    let texts = node.as_map().unwrap().iter();
    Ok(texts
        .map(|(key, value)| (key.clone(), value.as_text().unwrap().to_owned()))
        .collect())
}

/// What OpenSSL answers, or nothing where there is none.
fn openssl(folder: &Path, arguments: &str) -> Option<String> {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output();
    let Ok(output) = output else {
        std::io::stderr()
            .write_all(b"REDUCED: no openssl here, so nothing is verified\n")
            .unwrap();
        return None;
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "openssl {arguments}: {text}");
    Some(text)
}

fn written(texts: &BTreeMap<String, String>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in texts {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const CHAIN: &str = r#"
{{- $own := genPrivateKey "KIND" }}
{{- $ca := genCAWithKey "authority" 365 $own }}
{{- $cert := genSignedCertWithKey "svc.ns.svc" (list "10.0.0.1" "::1") (list "a.b" "*.c.d") 30 $ca (genPrivateKey "KIND") }}
{{- $alone := genSelfSignedCertWithKey "" nil (list "x.y") 9000 (genPrivateKey "KIND") }}
ca: {{ $ca.Cert | quote }}
cakey: {{ $ca.Key | quote }}
cert: {{ $cert.Cert | quote }}
certkey: {{ $cert.Key | quote }}
alone: {{ $alone.Cert | quote }}
"#;

const RSA_CHAIN: &str = r#"
{{- $ca := genCA "authority" 365 }}
{{- $cert := genSignedCert "svc.ns.svc" (list "10.0.0.1" "::1") (list "a.b" "*.c.d") 30 $ca }}
{{- $alone := genSelfSignedCert "" nil (list "x.y") 9000 }}
ca: {{ $ca.Cert | quote }}
cakey: {{ $ca.Key | quote }}
cert: {{ $cert.Cert | quote }}
certkey: {{ $cert.Key | quote }}
alone: {{ $alone.Cert | quote }}
"#;

#[test]
fn chains_of_every_kind_of_key_verify_and_repeat() {
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let template = if kind == "rsa" {
            RSA_CHAIN.to_owned()
        } else {
            CHAIN.replace("KIND", kind)
        };
        let recorded = memo(Vec::new());
        let texts = rendered(&template, Arc::clone(&recorded), Limits::default()).unwrap();
        if kind != "rsa" {
            let again = rendered(&template, memo(Vec::new()), Limits::default()).unwrap();
            assert_eq!(texts, again, "{kind}");
        }
        let replayed = Arc::new(Memo::new(recorded.entries(), Arc::new(Refusing)));
        assert_eq!(
            rendered(&template, replayed, Limits::default()).unwrap(),
            texts,
            "{kind}"
        );

        let folder = written(&texts);
        let at = NOW.seconds + 3_600;
        let verify = |file: &str, more: &str| {
            openssl(
                folder.path(),
                &format!("verify -x509_strict -attime {at} {more} -CAfile {file}"),
            )
        };
        let Some(verified) = verify("ca cert", "-verify_hostname z.c.d -verify_ip 10.0.0.1") else {
            return;
        };
        assert_eq!(verified, "cert: OK\n", "{kind}");
        openssl(folder.path(), &format!("verify -attime {at} -CAfile alone alone"));
        for (certificate, key) in [("ca", "cakey"), ("cert", "certkey")] {
            let public = openssl(folder.path(), &format!("x509 -in {certificate} -noout -pubkey"));
            assert_eq!(openssl(folder.path(), &format!("pkey -in {key} -pubout")), public);
            openssl(folder.path(), &format!("pkey -in {key} -check -noout"));
        }
        let shown = openssl(folder.path(), "x509 -in cert -noout -text").unwrap();
        for part in [
            "Not Before: Nov 21 20:00:00 2026 GMT",
            "Not After : Dec 21 20:00:00 2026 GMT",
            "Issuer: CN = authority",
            "Subject: CN = svc.ns.svc",
            "X509v3 Key Usage: critical\n                Digital Signature, Key Encipherment\n",
            "TLS Web Server Authentication, TLS Web Client Authentication",
            "CA:FALSE",
            "X509v3 Authority Key Identifier",
            "DNS:a.b, DNS:*.c.d, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1",
        ] {
            assert!(shown.contains(part), "{kind}: {part} is not in\n{shown}");
        }
    }
}

#[test]
fn private_keys_of_every_kind_are_sound() {
    let template = "\
        rsa: {{ genPrivateKey \"rsa\" | quote }}\n\
        dsa: {{ genPrivateKey \"dsa\" | quote }}\n\
        ecdsa: {{ genPrivateKey \"ecdsa\" | quote }}\n\
        ed25519: {{ genPrivateKey \"ed25519\" | quote }}\n";
    let texts = rendered(template, memo(Vec::new()), Limits::default()).unwrap();
    let labels = ["RSA PRIVATE KEY", "DSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"];
    for (kind, label) in ["rsa", "dsa", "ecdsa", "ed25519"].into_iter().zip(labels) {
        assert!(texts[kind].starts_with(&format!("-----BEGIN {label}-----\n")), "{kind}");
        assert!(texts[kind].ends_with(&format!("\n-----END {label}-----\n")), "{kind}");
    }
    let folder = written(&texts);
    for (kind, bits) in [
        ("rsa", "(4096 bit, 2 primes)"),
        ("dsa", "(2048 bit)"),
        ("ecdsa", "(256 bit)"),
    ] {
        let Some(shown) = openssl(folder.path(), &format!("pkey -in {kind} -noout -text -check")) else {
            return;
        };
        assert!(shown.contains(bits), "{kind}: {shown}");
    }
}

#[test]
fn keys_are_paid_for_with_the_steps_of_the_render() {
    let limits = Limits {
        steps: 2_000_000,
        ..Limits::default()
    };
    let error = rendered(
        "{{ range until 1000 }}{{ $_ := bcrypt \"a\" }}{{ end }}",
        memo(Vec::new()),
        limits,
    );
    let error = error.unwrap_err();
    assert!(error.ends_with("template takes more than 2000000 steps"), "{error}");
}
