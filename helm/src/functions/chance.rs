//! Random letters, numbers and bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Called, Function, mismatch};
use crate::answers::{Answer, Ask, Draw, wrong_kind};
use crate::bounds::check_bytes;
use crate::functions::lists::NO_LENGTH;
use crate::text;
use crate::value::Type::{Int, Str};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::asking("randAlphaNum", &[Int], |ask| {
        letters(ask, |byte| byte.is_ascii_alphanumeric())
    }),
    Function::asking("randAlpha", &[Int], |ask| {
        letters(ask, |byte| byte.is_ascii_alphabetic())
    }),
    Function::asking("randNumeric", &[Int], |ask| letters(ask, |byte| byte.is_ascii_digit())),
    Function::asking("randAscii", &[Int], |ask| {
        letters(ask, |byte| (b' '..=b'~').contains(&byte))
    }),
    Function::asking("randBytes", &[Int], bytes),
    Function::asking("randInt", &[Int, Int], number),
    Function::asking("shuffle", &[Str], shuffle),
    Function::asking("uuidv4", &[], uuid),
];

/// So many characters out of an alphabet; none for a negative number, because sprig drops that error.
fn letters(mut ask: Ask<'_>, is_wanted: fn(u8) -> bool) -> Called {
    let [Value::Int(count, _)] = ask.arguments else {
        return Err(mismatch());
    };
    let count = usize::try_from(*count).unwrap_or(0);
    check_bytes(count)?;
    if count == 0 {
        return Ok(Value::from(""));
    }
    let alphabet: Vec<u8> = (0..=127).filter(|byte| is_wanted(*byte)).collect();
    let text = ask.text(|draw| {
        let characters = (0..count).map(|_| char::from(alphabet[index(draw, alphabet.len())]));
        Ok(characters.collect())
    })?;
    Ok(Value::from(text))
}

/// An index into something of that length, which must not be 0.
fn index(draw: &mut Draw, length: usize) -> usize {
    usize::try_from(draw.below(length as u64)).unwrap_or(0)
}

fn bytes(mut ask: Ask<'_>) -> Called {
    let [Value::Int(count, _)] = ask.arguments else {
        return Err(mismatch());
    };
    let count = usize::try_from(*count).map_err(|_| NO_LENGTH.to_owned())?;
    check_bytes(count)?;
    let text = ask.text(|draw| {
        let mut bytes = vec![0; count];
        draw.fill(&mut bytes);
        Ok(STANDARD.encode(bytes))
    })?;
    Ok(Value::from(text))
}

/// From the first number to below the second.
fn number(mut ask: Ask<'_>) -> Called {
    let [Value::Int(start, _), Value::Int(end, _)] = ask.arguments else {
        return Err(mismatch());
    };
    let (start, count) = (*start, end.wrapping_sub(*start));
    let count = u64::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or("invalid argument to Intn")?;
    match ask.answer(|draw| Ok(Answer::Number(start.wrapping_add_unsigned(draw.below(count)))))? {
        Answer::Number(number) => Ok(Value::int(number)),
        other => Err(wrong_kind("a number", &other)),
    }
}

/// The characters of a text in another order.
fn shuffle(mut ask: Ask<'_>) -> Called {
    let [Value::Str(text)] = ask.arguments else {
        return Err(mismatch());
    };
    let text = ask.text(|draw| {
        let mut characters: Vec<char> = text::runes(text).map(text::Rune::or_replacement).collect();
        for last in (1..characters.len()).rev() {
            characters.swap(last, index(draw, last + 1));
        }
        Ok(characters.into_iter().collect())
    })?;
    Ok(Value::from(text))
}

/// RFC 9562, version 4.
fn uuid(mut ask: Ask<'_>) -> Called {
    let text = ask.text(|draw| {
        let mut bytes: [u8; 16] = draw.bytes();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let digits = hex::encode(bytes);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
        Ok(parts.join("-"))
    })?;
    Ok(Value::from(text))
}
