//! What questions are told apart by, as digests.

use sha2::{Digest as _, Sha256};

use super::Key;
use crate::bounds::{BoundError, Walk, read};
use crate::value::{Shape, Value};

/// A seed for one question. It differs from the seeds of all other questions.
pub(super) fn of_question(seed: &[u8; 32], key: &Key) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(seed);
    for part in [&key.template, &key.function, &key.arguments] {
        add_bytes(&mut hash, part.as_bytes());
    }
    hash.update(key.occurrence.to_be_bytes());
    hash.finalize().into()
}

/// A digest of types and contents.
pub(super) fn of_values(values: &[Value]) -> Result<[u8; 32], BoundError> {
    let (mut hash, mut walk) = (Sha256::new(), Walk::looking());
    for value in values {
        add(&mut hash, value, &mut walk, 0)?;
    }
    Ok(hash.finalize().into())
}

fn add(hash: &mut Sha256, value: &Value, walk: &mut Walk, depth: usize) -> Result<(), BoundError> {
    walk.visit(depth)?;
    read(value.own_bytes())?;
    add_bytes(hash, value.type_name().as_bytes());
    match value {
        Value::Nil => {}
        Value::Bool(value) => hash.update([u8::from(*value)]),
        Value::Int(value, _) => hash.update(value.to_be_bytes()),
        Value::Float(value) => hash.update(value.to_bits().to_be_bytes()),
        Value::Str(text) | Value::Bytes(text) => add_bytes(hash, text),
        Value::List(list) => add_list(hash, list.items(), walk, depth)?,
        Value::Map(map) => add_entries(hash, map.to_vec(), walk, depth)?,
        Value::Obj(object) if let Some(text) = object.string() => add_bytes(hash, text.as_bytes()),
        Value::Obj(object) => match object.shape() {
            Shape::Struct(fields) | Shape::Pointer(fields) => add_entries(hash, fields, walk, depth)?,
            Shape::Map(map) => add_entries(hash, map.to_vec(), walk, depth)?,
            Shape::List(list) => add_list(hash, list.items(), walk, depth)?,
            Shape::Number(number, _) => hash.update(number.to_be_bytes()),
            Shape::Complex(real, imaginary) => {
                hash.update(real.to_bits().to_be_bytes());
                hash.update(imaginary.to_bits().to_be_bytes());
            }
        },
    }
    Ok(())
}

fn add_list(hash: &mut Sha256, items: &[Value], walk: &mut Walk, depth: usize) -> Result<(), BoundError> {
    hash.update((items.len() as u64).to_be_bytes());
    items.iter().try_for_each(|item| add(hash, item, walk, depth + 1))
}

fn add_entries<K: AsRef<[u8]>>(
    hash: &mut Sha256,
    entries: Vec<(K, Value)>,
    walk: &mut Walk,
    depth: usize,
) -> Result<(), BoundError> {
    hash.update((entries.len() as u64).to_be_bytes());
    for (key, value) in entries {
        add_bytes(hash, key.as_ref());
        add(hash, &value, walk, depth + 1)?;
    }
    Ok(())
}

fn add_bytes(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}
