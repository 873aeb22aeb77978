//! Items of `.head`: `rax: u32, dword [stack-12]: [0, 64, 4], checked`.

use kyozon_typed_annotate::annotation::Head;
use kyozon_typed_checker::frame::Slot;
use kyozon_typed_checker::heads::Location;
use kyozon_typed_checker::range::Range;
use kyozon_typed_checker::value::{Spot, Value, REGISTERS};

use crate::cursor::Cursor;
use crate::error::Complaint;

/// A type, whose names are not resolved yet.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// It needs no name.
    Value(Value),
    /// `entry of TABLE`
    Entry(String),
    /// `distance of TABLE`
    Distance(String),
    /// `target of TABLE`
    Target(String),
    /// `address of NAME`
    Address(String),
    /// Of the view that the call at a label gives; the value has origin 0.
    View(String, Value),
}

/// One item.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A place has a type.
    Type(Location, Type),
    /// `checked: stack-N`
    Checked(i32),
    /// `flags`
    Flags,
}

/// Reads the items of one directive.
pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<Item>, Complaint> {
    let mut items = Vec::new();
    while !cursor.is_empty() {
        if !items.is_empty() {
            cursor.need(",")?;
        }
        if cursor.take_word("flags") {
            items.push(Item::Flags);
            continue;
        }
        if cursor.take_word("checked") {
            cursor.need(":")?;
            if !cursor.take_word("stack") {
                return Err("expected `stack-N` after `checked:`".into());
            }
            items.push(Item::Checked(parse_offset(cursor)?));
            continue;
        }
        let location = parse_location(cursor)?;
        cursor.need(":")?;
        items.push(Item::Type(location, parse_type(cursor)?));
    }
    Ok(items)
}

fn register(cursor: &mut Cursor<'_>) -> Result<u8, Complaint> {
    cursor.take("%");
    let name = cursor.name("a 64-bit register, [stack-N], dword [stack-N], checked or flags")?;
    let found = REGISTERS.iter().position(|known| *known == name);
    found.map(|n| n as u8).ok_or_else(|| format!("`{name}`: expected a 64-bit register, as rax"))
}

fn parse_location(cursor: &mut Cursor<'_>) -> Result<Location, Complaint> {
    let pair = !cursor.take_word("dword");
    if !cursor.take("[") {
        if !pair {
            return Err("expected `[stack-N]` after `dword`".into());
        }
        return Ok(Location::Register(register(cursor)?));
    }
    if !cursor.take_word("stack") {
        return Err(
            "a slot is written [stack-N], N counted from the return address, as [stack-8]".into()
        );
    }
    cursor.need("-")?;
    let offset = cursor.number()?;
    cursor.need("]")?;
    let least = if pair { 8 } else { 4 };
    let granule = u32::try_from(offset / 4).ok().filter(|_| offset % 4 == 0 && offset >= least);
    match granule {
        Some(n) => Ok(Location::Slot(Slot { granule: n - 1, pair })),
        None => Err(format!("[stack-{offset}]: expected a multiple of 4 that is at least {least}")),
    }
}

fn parse_type(cursor: &mut Cursor<'_>) -> Result<Type, Complaint> {
    if cursor.rest().starts_with('[') || cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
        return parse_range(cursor).map(|range| Type::Value(Value::Number(range)));
    }
    let word = cursor.name("a type")?;
    let of = |cursor: &mut Cursor<'_>| {
        if !cursor.take_word("of") {
            return Err(format!("expected `of` and a name after `{word}`"));
        }
        cursor.name("a name").map(str::to_string)
    };
    Ok(match word {
        "any" => Type::Value(Value::ANY),
        "u32" => Type::Value(Value::data(4)),
        "u16" => Type::Value(Value::data(2)),
        "u8" => Type::Value(Value::data(1)),
        "unknown" => Type::Value(Value::UNKNOWN),
        "bytes" => match u8::try_from(cursor.number()?) {
            Ok(mask) => Type::Value(Value::known(mask)),
            Err(_) => return Err("bytes: expected a mask of 8 bits, as 0x0f".into()),
        },
        "saved" => Type::Value(Value::Saved(register(cursor)?)),
        "stack" => Type::Value(Value::Stack(parse_offset(cursor)?)),
        "image" => {
            cursor.need("+")?;
            let range = if cursor.take_word("u32") {
                Range::U32
            } else if cursor.take_word("u16") {
                Range::bytes(2)
            } else if cursor.take_word("u8") {
                Range::bytes(1)
            } else {
                parse_range(cursor)?
            };
            let distance = range.short().ok_or("image+N: N has at most 32 bits")?;
            Type::Value(Value::Image(distance))
        }
        "entry" => Type::Entry(of(cursor)?),
        "distance" => Type::Distance(of(cursor)?),
        "target" => Type::Target(of(cursor)?),
        "address" => Type::Address(of(cursor)?),
        "length" => Type::View(of(cursor)?, Value::Length(0)),
        "index" => Type::View(of(cursor)?, Value::Index(parse_spot(cursor)?)),
        "view" | "writable_view" => {
            let (name, write) = (of(cursor)?, word != "view");
            if !cursor.take_word("at") {
                let spot = parse_spot(cursor)?;
                return Ok(Type::View(name, Value::View { spot, write, exact: false }));
            }
            let low = signed(cursor)?;
            let spot = Spot { origin: 0, low, room: -low };
            Type::View(name, Value::View { spot, write, exact: true })
        }
        _ => {
            return Err(format!(
                "type `{word}`: write any, u32, u16, u8, a number, [low, high, step], unknown, \
                 bytes MASK, saved REGISTER, stack-N, image+N, or entry, distance, target, address, \
                 length, index, view or writable_view of a name"
            ))
        }
    })
}

/// `from N room N`, without the origin.
fn parse_spot(cursor: &mut Cursor<'_>) -> Result<Spot, Complaint> {
    let mut number = |word: &str| {
        if !cursor.take_word(word) {
            return Err(format!("expected `{word}` and a number"));
        }
        signed(cursor)
    };
    Ok(Spot { origin: 0, low: number("from")?, room: number("room")? })
}

/// A number of 31 bits with its sign.
fn signed(cursor: &mut Cursor<'_>) -> Result<i32, Complaint> {
    let negative = cursor.take("-");
    let n = i32::try_from(cursor.number()?).map_err(|_| "a distance has at most 31 bits")?;
    Ok(if negative { -n } else { n })
}

fn parse_offset(cursor: &mut Cursor<'_>) -> Result<i32, Complaint> {
    let negative = cursor.take("-");
    if !negative {
        cursor.need("+")?;
    }
    let n = i64::try_from(cursor.number()?).unwrap_or(i64::MAX);
    i32::try_from(if negative { -n } else { n }).map_err(|_| "stack: too far away".into())
}

fn parse_range(cursor: &mut Cursor<'_>) -> Result<Range, Complaint> {
    if !cursor.take("[") {
        return cursor.number().map(Range::constant);
    }
    let low = cursor.number()?;
    cursor.need(",")?;
    let high = cursor.number()?;
    let step = if cursor.take(",") { cursor.number()? } else { 1 };
    cursor.need("]")?;
    if !step.is_power_of_two() || step > 1 << 62 {
        return Err(format!("step {step:#x}: expected a power of two"));
    }
    if low > high {
        return Err(format!("[{low:#x}, {high:#x}]: the lower end is above the upper one"));
    }
    Ok(Range::new(low, high, step.trailing_zeros() as u8))
}

/// Writes what a head says; tables are named by `call_table` and `jump_table` and their numbers.
/// `name` gives the label of a call.
pub(crate) fn print(head: &Head, name: &dyn Fn(u32) -> String) -> String {
    let mut items: Vec<String> = Vec::new();
    for (location, value) in &head.types {
        let place = match location {
            Location::Register(n) => REGISTERS[usize::from(n & 15)].to_string(),
            Location::Slot(Slot { granule, pair }) => {
                let prefix = if *pair { "" } else { "dword " };
                format!("{prefix}[stack-{}]", 4 * (u64::from(*granule) + 1))
            }
        };
        let kind = match value {
            Value::Entry(n) => format!("entry of call_table{n}"),
            Value::Distance(n) => format!("distance of jump_table{n}"),
            Value::Target(n) => format!("target of jump_table{n}"),
            Value::Length(origin) => format!("length of {}", name(*origin)),
            Value::Index(Spot { origin, low, room }) => {
                format!("index of {} from {low} room {room}", name(*origin))
            }
            Value::View { spot: Spot { origin, low, room }, write, exact } => {
                let view = if *write { "writable_view" } else { "view" };
                let place =
                    if *exact { format!("at {low}") } else { format!("from {low} room {room}") };
                format!("{view} of {} {place}", name(*origin))
            }
            Value::Upper => "unknown".into(),
            other => other.to_string(),
        };
        items.push(format!("{place}: {kind}"));
    }
    if head.flags {
        items.push("flags".into());
    }
    if let Some(offset) = head.checked {
        items.push(format!("checked: stack{offset:+}"));
    }
    items.join(", ")
}
