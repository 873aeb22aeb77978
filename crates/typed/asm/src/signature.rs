//! Signatures as text: `(any, u32; stack 2) -> u8`.

use kyozon_typed_annotate::module::{Signature, Type};

use crate::cursor::Cursor;
use crate::error::Complaint;

const TYPES: [(&str, Type); 7] = [
    ("any", Type::Any),
    ("u32", Type::U32),
    ("u16", Type::U16),
    ("u8", Type::U8),
    ("unknown", Type::Unknown),
    ("view", Type::View),
    ("writable_view", Type::WritableView),
];

fn passed(cursor: &mut Cursor<'_>) -> Result<Type, Complaint> {
    let name = cursor.name("a type")?;
    TYPES.iter().find(|(known, _)| *known == name).map(|&(_, t)| t).ok_or_else(|| {
        format!("type `{name}` of an argument or result: write any, u32, u16, u8 or unknown")
    })
}

fn type_name(t: Type) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == t).map_or("any", |(name, _)| name)
}

/// Reads a signature.
pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Signature, Complaint> {
    let mut signature = Signature::default();
    cursor.need("(")?;
    while !cursor.take(")") {
        if cursor.take(";") {
            if !cursor.take_word("stack") {
                return Err("expected `stack` and the number of arguments there after `;`".into());
            }
            signature.stack = u8::try_from(cursor.number()?)
                .map_err(|_| "too many arguments on the stack: at most 24".to_string())?;
            if cursor.take_word("u32") {
                while !cursor.take(")") {
                    let n = u32::try_from(cursor.number()?)
                        .ok()
                        .filter(|&n| n < u32::from(signature.stack));
                    let n = n.ok_or("`u32` needs numbers of arguments on the stack, from 0")?;
                    signature.halves |= 1 << n.min(31);
                }
                break;
            }
            cursor.need(")")?;
            break;
        }
        if !signature.arguments.is_empty() {
            cursor.need(",")?;
        }
        signature.arguments.push(passed(cursor)?);
    }
    if signature.arguments.len() > 6 {
        return Err("more than 6 arguments in registers: write further ones as `; stack N`".into());
    }
    if cursor.take("->") {
        signature.result = Some(passed(cursor)?).filter(|&t| t != Type::Unknown);
        if signature.result.is_none() {
            return Err("a result is not `unknown`: leave `-> unknown` out".into());
        }
    }
    Ok(signature)
}

/// Writes a signature.
pub(crate) fn print(signature: &Signature) -> String {
    let arguments: Vec<_> = signature.arguments.iter().map(|&t| type_name(t)).collect();
    let mut text = format!("({}", arguments.join(", "));
    if signature.stack > 0 {
        text += &format!("; stack {}", signature.stack);
    }
    if signature.halves != 0 {
        text += " u32";
        for n in (0..signature.stack).filter(|n| signature.halves >> n & 1 != 0) {
            text += &format!(" {n}");
        }
    }
    text += ")";
    if let Some(result) = signature.result {
        text += &format!(" -> {}", type_name(result));
    }
    text
}
