//! What is in an object and no chart states: what the API server draws, and keys and certificates, which are others each time they are made.

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use x509_parser::pem::Pem;

const BEGINS: &str = "-----BEGIN ";
const CERTIFICATE: &str = "CERTIFICATE";
/// What the API server draws for a Service, unless it is told.
const ADDRESSES: [&str; 2] = ["clusterIP", "clusterIPs"];
/// Says of a Service that it has no address.
const NONE: &str = "None";

/// Keys and certificates in the order in which they are met, so that who shares one with whom is seen.
#[derive(Default)]
pub(super) struct Drawn(Vec<String>);

impl Drawn {
    /// An object in which what was drawn says only what it is, without what is reported of it.
    pub(super) fn told(&mut self, object: &Value) -> Result<Value> {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let spec = object.pointer_mut("/spec").and_then(Value::as_object_mut);
        for (_, address) in spec
            .into_iter()
            .flatten()
            .filter(|(field, _)| ADDRESSES.contains(&field.as_str()))
        {
            let is_none = address.as_str().or(address.pointer("/0").and_then(Value::as_str)) == Some(NONE);
            if !is_none {
                *address = Value::from("drawn by the API server");
            }
        }
        self.tell(&mut object)?;
        Ok(object)
    }

    fn tell(&mut self, value: &mut Value) -> Result<()> {
        match value {
            Value::Object(fields) => fields.values_mut().try_for_each(|value| self.tell(value)),
            Value::Array(items) => items.iter_mut().try_for_each(|value| self.tell(value)),
            Value::String(text) => {
                let decoded = BASE64_STANDARD
                    .decode(&*text)
                    .ok()
                    .and_then(|bytes| String::from_utf8(bytes).ok());
                let pem = decoded.unwrap_or_else(|| text.clone());
                if pem.starts_with(BEGINS) {
                    *text = self.described(&pem)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn described(&mut self, pem: &str) -> Result<String> {
        let number = self.0.iter().position(|met| met == pem).unwrap_or_else(|| {
            self.0.push(pem.to_owned());
            self.0.len() - 1
        });
        let parts = Pem::iter_from_buffer(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let parts = parts.context("a key or certificate cannot be read")?;
        ensure!(!parts.is_empty(), "there is no key or certificate");
        let parts = parts.iter().map(described).collect::<Result<Vec<_>>>()?;
        Ok(format!("number {number}: {}", parts.join(", ")))
    }
}

/// Whose it is, by whom, for what names and for how long.
fn described(pem: &Pem) -> Result<String> {
    if pem.label != CERTIFICATE {
        return Ok(pem.label.clone());
    }
    let certificate = pem.parse_x509().context("a certificate cannot be read")?;
    let names = certificate.subject_alternative_name()?;
    let names = names
        .map(|names| format!("{:?}", names.value.general_names))
        .unwrap_or_default();
    let validity = certificate.validity();
    let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
    Ok(format!(
        "{CERTIFICATE} of {} by {} for {names}, {seconds} s, an authority: {}",
        certificate.subject(),
        certificate.issuer(),
        certificate.is_ca()
    ))
}
