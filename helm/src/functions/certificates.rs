//! Private keys and certificates for charts that bring their own authority.

use core::net::IpAddr;
use std::rc::Rc;

use super::{Called, Function, FunctionSet, mismatch};
use crate::answers::{Answer, Ask, wrong_kind};
use crate::base64_text;
use crate::format;
use crate::keys::certificate::{Certificate, KeyName, Request, Signer};
use crate::keys::{self, PrivateKey};
use crate::text;
use crate::value::Type::{Int, List, Named, Str};
use crate::value::{Bytes, GoObject, Shape, Value};

const PAIR: &str = "sprig.certificate";

pub(super) const FUNCTIONS: &[Function] = &[
    Function::asking("genPrivateKey", &[Str], private_key),
    Function::asking("genCA", &[Str, Int], |ask| authority(ask, false, KeyName::Sha1)),
    Function::asking("genCA", &[Str, Int], |ask| authority(ask, false, KeyName::Sha256)).since(FunctionSet::V4_0),
    Function::asking("genCAWithKey", &[Str, Int, Str], |ask| {
        authority(ask, true, KeyName::Sha1)
    }),
    Function::asking("genCAWithKey", &[Str, Int, Str], |ask| {
        authority(ask, true, KeyName::Sha256)
    })
    .since(FunctionSet::V4_0),
    Function::asking("genSelfSignedCert", &[Str, List, List, Int], |ask| {
        self_signed(ask, false)
    }),
    Function::asking("genSelfSignedCertWithKey", &[Str, List, List, Int, Str], |ask| {
        self_signed(ask, true)
    }),
    Function::asking("genSignedCert", &[Str, List, List, Int, Named(PAIR)], |ask| {
        signed(ask, false)
    }),
    Function::asking(
        "genSignedCertWithKey",
        &[Str, List, List, Int, Named(PAIR), Str],
        |ask| signed(ask, true),
    ),
    Function::new("buildCustomCert", &[Str, Str], custom),
];

/// `sprig.certificate`: a certificate and its key, as PEM.
struct Pair {
    certificate: Value,
    key: Value,
}

impl GoObject for Pair {
    fn type_name(&self) -> String {
        PAIR.to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Struct(vec![("Cert", self.certificate.clone()), ("Key", self.key.clone())])
    }
}

fn pair(certificate: Value, key: Value) -> Value {
    Value::Obj(Rc::new(Pair { certificate, key }))
}

/// A type that is not known is the result, not an error.
fn private_key(mut ask: Ask<'_>) -> Called {
    let [Value::Str(kind)] = ask.arguments else {
        return Err(mismatch());
    };
    if !matches!(&**kind, b"" | b"rsa" | b"dsa" | b"ecdsa" | b"ed25519") {
        return Ok(Value::from([b"Unknown type ", &**kind].concat()));
    }
    let text = ask.text(|draw| keys::generate(draw, kind)?.ok_or_else(mismatch))?;
    Ok(Value::from(text))
}

fn authority(ask: Ask<'_>, has_key: bool, key_name: KeyName) -> Called {
    let [Value::Str(name), Value::Int(days, _), key @ ..] = ask.arguments else {
        return Err(mismatch());
    };
    let request = Request {
        name,
        addresses: Vec::new(),
        hosts: Vec::new(),
        days: *days,
        authority: Some(key_name),
    };
    let key = given_key(key, has_key)?;
    certify(ask, &request, key.as_ref(), None)
}

fn self_signed(ask: Ask<'_>, has_key: bool) -> Called {
    let [name, addresses, hosts, days, key @ ..] = ask.arguments else {
        return Err(mismatch());
    };
    let key = given_key(key, has_key)?;
    let request = request(name, addresses, hosts, days)?;
    certify(ask, &request, key.as_ref(), None)
}

fn signed(ask: Ask<'_>, has_key: bool) -> Called {
    let [name, addresses, hosts, days, Value::Obj(authority), key @ ..] = ask.arguments else {
        return Err(mismatch());
    };
    let key = given_key(key, has_key)?;
    let (Some(Value::Str(certificate)), Some(Value::Str(signing))) = (authority.field("Cert"), authority.field("Key"))
    else {
        return Err(mismatch());
    };
    let certificate = Certificate::from_pem(&certificate)?;
    let signing = PrivateKey::from_pem(&signing).map_err(|error| format!("error parsing private key: {error}"))?;
    let request = request(name, addresses, hosts, days)?;
    let signer = Signer {
        certificate: &certificate,
        key: &signing,
    };
    certify(ask, &request, key.as_ref(), Some(signer))
}

/// The key that the chart brings, if the function takes one.
fn given_key(arguments: &[Value], has_key: bool) -> Result<Option<PrivateKey>, String> {
    match arguments {
        [] if !has_key => Ok(None),
        [Value::Str(key)] if has_key => match PrivateKey::from_pem(key) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(format!("parsing private key: {error}")),
        },
        _ => Err(mismatch()),
    }
}

fn request<'a>(name: &'a Value, addresses: &Value, hosts: &Value, days: &Value) -> Result<Request<'a>, String> {
    let (Value::Str(name), Value::Int(days, _)) = (name, days) else {
        return Err(mismatch());
    };
    let addresses = items(addresses).iter().map(address).collect::<Result<_, _>>()?;
    let hosts = items(hosts).iter().map(host).collect::<Result<_, _>>()?;
    Ok(Request {
        name,
        addresses,
        hosts,
        days: *days,
        authority: None,
    })
}

/// Nothing for nil.
fn items(list: &Value) -> &[Value] {
    match list {
        Value::List(list) => list.items(),
        _ => &[],
    }
}

fn address(value: &Value) -> Result<IpAddr, String> {
    let Value::Str(address) = value else {
        return Err(format!("error parsing ip: {} is not a string", printed(value)?));
    };
    let address = text::lossy(address);
    // Go takes no zone here, as Rust, and the same digits.
    address.parse().map_err(|_| format!("error parsing ip: {address}"))
}

fn host(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::Str(host) => Ok(host.to_vec()),
        other => Err(format!(
            "error processing alternate dns name: {} is not a string",
            printed(other)?
        )),
    }
}

fn printed(value: &Value) -> Result<String, String> {
    match format::sprint(std::slice::from_ref(value)) {
        Ok(text) => Ok(text::lossy(&text)),
        Err(error) => Err(error.to_string()),
    }
}

fn certify(mut ask: Ask<'_>, request: &Request<'_>, key: Option<&PrivateKey>, signer: Option<Signer<'_>>) -> Called {
    let answer = ask.answer(|draw| {
        let key = match key {
            Some(key) => key.clone(),
            None => PrivateKey::for_certificate(draw)?,
        };
        let certificate = request.certify(draw, &key, signer);
        Ok(Answer::Certificate {
            certificate: certificate.map_err(|error| format!("error creating certificate: {error}"))?,
            key: key.to_pem(),
        })
    })?;
    match answer {
        Answer::Certificate { certificate, key } => Ok(pair(Value::from(certificate), Value::from(key))),
        other => Err(wrong_kind("a certificate", &other)),
    }
}

/// The certificate and the key that a chart has, both as PEM in base64, once they are known to be some.
fn custom(arguments: &[Value]) -> Called {
    let [Value::Str(certificate), Value::Str(key)] = arguments else {
        return Err(mismatch());
    };
    let decoded =
        |text: &Bytes, what: &str| base64_text::decode(text).map_err(|_| format!("unable to decode base64 {what}"));
    let certificate = decoded(certificate, "certificate")?;
    let key = decoded(key, "private key")?;
    Certificate::from_pem(&certificate)?;
    PrivateKey::from_pem(&key).map_err(|error| format!("error parsing private key: {error}"))?;
    Ok(pair(Value::from(certificate), Value::from(key)))
}
