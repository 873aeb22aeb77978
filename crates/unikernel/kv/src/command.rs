//! The commands.

use super::resp::{self, Words};
use super::table::{Table, TableError};
use alloc::vec::Vec;
use kyozon_channel::border::TrustedGroup;

/// The next action after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Then {
    /// Execute the next command.
    Next = 0,
    /// Close the client's connection.
    Close = 1,
    /// End the store.
    Stop = 2,
}

/// The table, and whether `DEBUG PANIC` is allowed.
pub struct Store {
    /// The table that commands work on.
    pub table: Table,
    /// Whether clients may end a worker by `DEBUG PANIC`.
    pub debug: bool,
}

/// Maximum bytes of a client's word that an error repeats.
const SHOWN: usize = 64;

/// The next action, or the error text for the client.
type Done = Result<Then, &'static str>;

const ARGUMENTS: &str = "ERR wrong number of arguments";
const SYNTAX: &str = "ERR syntax error";

fn message(error: TableError) -> &'static str {
    match error {
        TableError::Lost => "LOST a worker died while it wrote here; FLUSHALL resets the table",
        TableError::Full => "OOM command not allowed when used memory > 'maxmemory'.",
        TableError::NotANumber => "ERR value is not an integer or out of range",
        TableError::Overflow => "ERR increment or decrement would overflow",
    }
}

/// Executes a command, and appends its answer to `to`. A command without words has no answer.
pub fn execute<G: TrustedGroup>(words: Words<'_>, store: &Store, me: &G, to: &mut Vec<u8>) -> Then {
    let mut arguments = words;
    let Some(word) = arguments.next() else { return Then::Next };
    let mut name = [0; 16];
    let name = name.get_mut(..word.len()).map_or(&[][..], |name| {
        name.copy_from_slice(word);
        name.make_ascii_uppercase();
        name
    });
    let done = match name {
        b"GET" => get(arguments, &store.table, me, to),
        b"SET" => set(arguments, &store.table, me, to),
        b"INCR" => increment(arguments, &store.table, me, to),
        b"DEL" | b"EXISTS" => each(arguments, to, |key| match name {
            b"DEL" => store.table.delete(key, me),
            _ => store.table.get(key, me, |value| value.is_some()),
        }),
        b"DBSIZE" => none(arguments).and_then(|()| {
            resp::integer(to, store.table.count(me).map_err(message)? as i64);
            Ok(Then::Next)
        }),
        b"FLUSHALL" | b"FLUSHDB" => none(arguments).and_then(|()| {
            store.table.clear(me).map_err(message)?;
            okay(to)
        }),
        b"PING" => ping(arguments, to),
        b"ECHO" => one(arguments).map(|word| {
            resp::bytes(to, word);
            Then::Next
        }),
        b"SELECT" => match one(arguments) {
            Ok(b"0") => okay(to),
            Ok(_) => Err("ERR DB index is out of range"),
            Err(error) => Err(error),
        },
        b"CONFIG" => config(arguments, &store.table, to),
        // The list of commands' descriptions is empty.
        b"COMMAND" => {
            resp::array_of(to, 0);
            Ok(Then::Next)
        }
        b"QUIT" => okay(to).map(|_| Then::Close),
        b"SHUTDOWN" => Ok(Then::Stop),
        b"DEBUG" => debug(arguments, store),
        _ => {
            let shown = &word[..word.len().min(SHOWN)];
            resp::error(to, format_args!("ERR unknown command '{}'", shown.escape_ascii()));
            Ok(Then::Next)
        }
    };
    done.unwrap_or_else(|error| {
        resp::error(to, format_args!("{error}"));
        Then::Next
    })
}

fn okay(to: &mut Vec<u8>) -> Done {
    resp::simple(to, "OK");
    Ok(Then::Next)
}

fn none(mut arguments: Words<'_>) -> Result<(), &'static str> {
    arguments.next().map_or(Ok(()), |_| Err(ARGUMENTS))
}

fn one<'a>(mut arguments: Words<'a>) -> Result<&'a [u8], &'static str> {
    let word = arguments.next().ok_or(ARGUMENTS)?;
    none(arguments).map(|()| word)
}

fn get<G: TrustedGroup>(arguments: Words<'_>, table: &Table, me: &G, to: &mut Vec<u8>) -> Done {
    let answer = |value: Option<&[u8]>| match value {
        Some(value) => resp::bytes(to, value),
        None => resp::null(to),
    };
    table.get(one(arguments)?, me, answer).map_err(message)?;
    Ok(Then::Next)
}

fn set<G: TrustedGroup>(mut arguments: Words<'_>, table: &Table, me: &G, to: &mut Vec<u8>) -> Done {
    let (Some(key), Some(value)) = (arguments.next(), arguments.next()) else {
        return Err(ARGUMENTS);
    };
    // Conditions and expiry times are not supported.
    none(arguments).map_err(|_| SYNTAX)?;
    table.set(key, value, me).map_err(message)?;
    okay(to)
}

fn increment<G: TrustedGroup>(
    arguments: Words<'_>,
    table: &Table,
    me: &G,
    to: &mut Vec<u8>,
) -> Done {
    let value = table.increment(one(arguments)?, me).map_err(message)?;
    resp::integer(to, value);
    Ok(Then::Next)
}

/// Answers with the number of keys for which `is` returns true.
fn each(
    arguments: Words<'_>,
    to: &mut Vec<u8>,
    mut is: impl FnMut(&[u8]) -> Result<bool, TableError>,
) -> Done {
    let (mut keys, mut count) = (0, 0);
    for key in arguments {
        keys += 1;
        count += i64::from(is(key).map_err(message)?);
    }
    if keys == 0 {
        return Err(ARGUMENTS);
    }
    resp::integer(to, count);
    Ok(Then::Next)
}

fn ping(mut arguments: Words<'_>, to: &mut Vec<u8>) -> Done {
    match arguments.next() {
        None => resp::simple(to, "PONG"),
        Some(word) => {
            none(arguments)?;
            resp::bytes(to, word);
        }
    }
    Ok(Then::Next)
}

/// Answers the questions that benchmark clients ask before they measure.
fn config(mut arguments: Words<'_>, table: &Table, to: &mut Vec<u8>) -> Done {
    if !arguments.next().is_some_and(|word| word.eq_ignore_ascii_case(b"GET")) {
        return Err("ERR CONFIG supports GET only");
    }
    let limit = alloc::format!("{}", table.limit());
    let name = one(arguments)?;
    let value = match name {
        b"save" => Some(""),
        b"appendonly" => Some("no"),
        b"maxmemory" => Some(&*limit),
        _ => None,
    };
    let Some(value) = value else {
        resp::array_of(to, 0);
        return Ok(Then::Next);
    };
    resp::array_of(to, 2);
    resp::bytes(to, name);
    resp::bytes(to, value.as_bytes());
    Ok(Then::Next)
}

fn debug(arguments: Words<'_>, store: &Store) -> Done {
    match one(arguments)? {
        word if word.eq_ignore_ascii_case(b"PANIC") && store.debug => {
            panic!("DEBUG PANIC of a client")
        }
        _ => Err("ERR DEBUG PANIC needs a store that was started with `debug`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_portable::machine;

    fn run(store: &Store, line: &str) -> (String, Then) {
        let (mut to, me) = (Vec::new(), machine::member());
        let command = resp::parse(line.as_bytes()).unwrap().unwrap();
        let then = execute(command.words, store, &me, &mut to);
        assert_eq!(resp::answers(&to), Some(usize::from(then != Then::Stop)), "{line}");
        (String::from_utf8(to).unwrap(), then)
    }

    #[test]
    fn answers_match_redis() {
        let store = Store { table: Table::new(1 << 20, [1, 2]), debug: false };
        for (line, answer) in [
            ("PING", "+PONG"),
            ("ping you", "$3\r\nyou"),
            ("PING a b", "-ERR wrong number of arguments"),
            ("ECHO a", "$1\r\na"),
            ("GET a", "$-1"),
            ("SET a 1", "+OK"),
            ("get a", "$1\r\n1"),
            ("SET a", "-ERR wrong number of arguments"),
            ("SET a 2 NX", "-ERR syntax error"),
            ("GET a b", "-ERR wrong number of arguments"),
            ("INCR a", ":2"),
            ("INCR b", ":1"),
            ("SET b x", "+OK"),
            ("INCR b", "-ERR value is not an integer or out of range"),
            ("EXISTS a b c a", ":3"),
            ("EXISTS", "-ERR wrong number of arguments"),
            ("DBSIZE", ":2"),
            ("DEL a c", ":1"),
            ("DBSIZE x", "-ERR wrong number of arguments"),
            ("FLUSHALL", "+OK"),
            ("DBSIZE", ":0"),
            ("SELECT 0", "+OK"),
            ("SELECT 1", "-ERR DB index is out of range"),
            ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n"),
            ("CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576"),
            ("CONFIG GET other", "*0"),
            ("CONFIG SET save x", "-ERR CONFIG supports GET only"),
            ("COMMAND DOCS", "*0"),
            ("DEBUG PANIC", "-ERR DEBUG PANIC needs a store that was started with `debug`"),
            ("NoSuch\x1bThing a", "-ERR unknown command 'NoSuch\\x1bThing'"),
            ("averyveryverylongcommand", "-ERR unknown command 'averyveryverylongcommand'"),
        ] {
            let got = run(&store, &[line, "\r\n"].concat());
            assert_eq!(got, ([answer, "\r\n"].concat(), Then::Next), "{line}");
        }
        assert_eq!(run(&store, "QUIT\r\n"), ("+OK\r\n".into(), Then::Close));
        assert_eq!(run(&store, "SHUTDOWN NOSAVE\r\n"), (String::new(), Then::Stop));
    }
}
