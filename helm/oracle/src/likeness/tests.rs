//! Made-up pairs: what is alike is taken, what is not is refused.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use sha2::{Digest as _, Sha256};

use super::{Masked, compare};

/// Three answers of Helm.
type Three = [String; 3];

fn judged(theirs: &Three, ours: &str) -> Result<Masked, String> {
    let theirs: Vec<&[u8]> = theirs.iter().map(String::as_bytes).collect();
    compare(&theirs, ours.as_bytes()).map_err(|unlike| unlike.to_string())
}

fn refused(theirs: &Three, ours: &str, words: &str) {
    let error = judged(theirs, ours).expect_err(ours);
    assert!(error.contains(words), "{error}");
}

/// One manifest with three values.
fn with(values: [&str; 3], manifest: impl Fn(&str) -> String) -> Three {
    values.map(manifest)
}

const PASSWORDS: [&str; 3] = ["hLq3Zr8vTx", "9sGkW2mQpa", "bV7nYc4dRe"];
const OURS: &str = "Xw5tJf6uKz";

fn secret(password: &str) -> String {
    format!("kind: Secret\ndata:\n  user: admin\n  url: \"https://admin:{password}@db:5432\"\nend: true\n")
}

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

#[test]
fn what_is_drawn_alike_is_taken_and_counted() {
    let masked = judged(&with(PASSWORDS, secret), &secret(OURS));
    assert_eq!(masked, Ok(Masked { drawn: 10, verified: 0 }));
}

#[test]
fn a_value_of_another_length_or_class_is_refused() {
    let theirs = with(PASSWORDS, secret);
    refused(
        &theirs,
        &secret("Xw5tJf6uK"),
        "line 4: 9 characters were drawn where Helm draws 10 to 10",
    );
    let lower = with(["a9k", "zq1", "m4c"], secret);
    refused(&lower, &secret("aBc"), "another class");
    let digits = with(["31", "47", "96"], secret);
    refused(&digits, &secret("4a"), "another class");
    let hex = ["0", "1", "2"].map(|seed| hex::encode(Sha256::digest(seed)));
    let theirs = with(hex.each_ref().map(String::as_str), secret);
    refused(&theirs, &secret(&"7".repeat(64)), "fewer classes");
}

#[test]
fn a_long_value_may_lack_some_letters_by_chance_but_no_kind_of_them() {
    let long = |letters: &str| letters.repeat(60 / letters.len());
    let drawn = ["aZ7x", "gB3k", "qF9d"].map(long);
    let theirs = with(drawn.each_ref().map(String::as_str), secret);
    assert!(judged(&theirs, &secret(&long("gZ5k"))).is_ok());
    refused(&theirs, &secret(&long("gz5k")), "fewer classes");
}

#[test]
fn what_is_fixed_stays_fixed_around_what_is_drawn() {
    let theirs = with(PASSWORDS, secret);
    refused(
        &theirs,
        &secret(OURS).replace("5432", "5433"),
        "line 4: Helm always has something else here",
    );
    refused(&theirs, &secret(OURS).replace("admin\n", "root\n"), "line 3");
    refused(&theirs, &secret(OURS).replace("end: true\n", ""), "line 5");
    refused(&theirs, &(secret(OURS) + "more: true\n"), "line 6");
    let glued = with(PASSWORDS, |password| format!("name: pre{password}\n"));
    refused(&glued, "name: prfXw5tJf6uKz\n", "around what it draws");
}

#[test]
fn one_value_stays_one_value_in_all_its_places() {
    let twice = |left: &str, right: &str| format!("{}password: {}\n", secret(left), encoded(right));
    let theirs = PASSWORDS.map(|password| twice(password, password));
    assert!(judged(&theirs, &twice(OURS, OURS)).is_ok());
    refused(&theirs, &twice(OURS, "Kw5tJf6uKX"), "we have two");
    let apart = [0, 1, 2].map(|index| twice(PASSWORDS[index], PASSWORDS[(index + 1) % 3]));
    refused(&apart, &twice(OURS, OURS), "we have one");
}

#[test]
fn a_digest_of_a_drawn_value_is_its_digest() {
    let summed = |password: &str, of: &str| format!("{}sum: {}\n", secret(password), hex::encode(Sha256::digest(of)));
    let theirs = PASSWORDS.map(|password| summed(password, password));
    assert!(judged(&theirs, &summed(OURS, OURS)).is_ok());
    refused(&theirs, &summed(OURS, "another"), "digest of another value");
}

#[test]
fn base64_is_looked_into() {
    let nested = |password: &str| format!("config: {}\n", encoded(&encoded(&secret(password))));
    let theirs = with(PASSWORDS, nested);
    let masked = judged(&theirs, &nested(OURS));
    assert_eq!(masked, Ok(Masked { drawn: 17, verified: 0 }));
    let changed = format!(
        "config: {}\n",
        encoded(&encoded(&secret(OURS).replace("admin", "hacker")))
    );
    refused(
        &theirs,
        &changed,
        "line 1: in line 1 of the decoded base64: in line 3 of the decoded base64",
    );
    refused(&theirs, "config: !!!\n", "line 1");
}

#[test]
fn values_with_marks_are_taken_as_a_whole() {
    let theirs = with(["a.b+c-d1", "aa..+-b2", "-.x+yz-3"], |value| {
        format!("value: '{value}' # fixed\n")
    });
    assert!(judged(&theirs, "value: '-a.b.c+9' # fixed\n").is_ok());
    refused(&theirs, "value: '-a.b.c+9' # other\n", "around what it draws");
    refused(&theirs, "value: '-a.b.c+\u{1}' # fixed\n", "another class");
    let hashes = ["aB3.", "K.9e", "f/Gh"].map(|salt| format!("hash: $2a$10${}{}\n", salt.repeat(13), "Q"));
    assert!(judged(&hashes, &format!("hash: $2a$10${}\n", "x/4Y".repeat(13) + "Q")).is_ok());
    refused(
        &hashes,
        &format!("hash: $2a$10${}\n", "x/4Y".repeat(13)),
        "built otherwise",
    );
}

#[test]
fn dates_are_of_the_same_time() {
    let dated = |second: u32| format!("at: 2026-11-21T20:15:{second:02}Z\nepoch: \"17952912{second:02}\"\n");
    let theirs = [dated(10), dated(11), dated(12)];
    assert!(judged(&theirs, &dated(59)).is_ok());
    refused(&theirs, &dated(13).replace("2026-11", "2026-12"), "another time");
    refused(&theirs, &dated(13).replace("17952912", "17952812"), "another time");
}

#[test]
fn order_that_changes_each_time_may_be_any_order_of_the_same() {
    let theirs = ["a,b,c", "c,a,b", "b,a,c"].map(|names| format!("first: 1\nnames: {names}\n"));
    assert!(judged(&theirs, "first: 1\nnames: c,b,a\n").is_ok());
    refused(&theirs, "first: 1\nnames: c,b,b\n", "line 2: Helm has the same");
    let lines = ["a: long\nb: 2\n", "b: 2\na: long\n", "a: long\nb: 2\n"].map(str::to_owned);
    assert!(judged(&lines, "b: 2\na: long\n").is_ok());
    refused(&lines, "b: 2\na: short\n", "line 1: Helm has the same");
}

/// A chain of two certificates and the key of the second, drawn anew each time.
struct Chain {
    authority: String,
    certificate: String,
    key: String,
}

impl Chain {
    fn new() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "made-up");
        let authority_key = KeyPair::generate().unwrap();
        let key = KeyPair::generate().unwrap();
        let signed = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let server = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        Self {
            authority: signed.pem(),
            certificate: server.signed_by(&key, &issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// As a Secret, and the authority once more in plain lines.
    fn manifest(&self) -> String {
        let mut text = format!(
            "ca: {}\ntls: {}\nkey: {}\nplain: |\n",
            encoded(&self.authority),
            encoded(&self.certificate),
            encoded(&self.key)
        );
        for line in self.authority.replace('\r', "").lines() {
            writeln!(text, "  {line}").unwrap();
        }
        text
    }
}

#[test]
fn keys_and_certificates_are_verified() {
    let theirs = [(); 3].map(|()| Chain::new().manifest());
    let ours = Chain::new();
    let masked = judged(&theirs, &ours.manifest()).unwrap();
    assert!(masked.drawn == 0 && masked.verified > 1500, "{masked:?}");

    let chain_broken = Chain {
        certificate: Chain::new().certificate,
        ..Chain::new()
    };
    refused(&theirs, &chain_broken.manifest(), "not signed by the one");
    let key_of_another = Chain {
        key: Chain::new().key,
        ..Chain::new()
    };
    refused(
        &theirs,
        &key_of_another.manifest(),
        "does not belong to the certificate",
    );
    let pem_broken = Chain {
        key: Chain::new().key.replacen('M', "*", 1),
        ..Chain::new()
    };
    refused(&theirs, &pem_broken.manifest(), "line 3: the PEM block cannot be read");
    let not_a_key = ours.key.lines().map(|line| {
        if line.starts_with('-') {
            line.to_owned()
        } else {
            "A".repeat(line.len())
        }
    });
    let not_a_key = Chain {
        key: not_a_key.collect::<Vec<_>>().join("\n") + "\n",
        ..Chain::new()
    };
    refused(&theirs, &not_a_key.manifest(), "line 3: ");
    let two_authorities = ours
        .manifest()
        .replace(&encoded(&ours.authority), &encoded(&Chain::new().authority));
    refused(&theirs, &two_authorities, "we have two");
    let folded = ours.manifest().replacen("\n  MII", "\n  M\n  II", 1);
    refused(&theirs, &folded, "line 5: ");
}
