use super::*;

fn words(bytes: &[u8]) -> Vec<&[u8]> {
    parse(bytes).unwrap().unwrap().words.collect()
}

#[test]
fn words_are_parsed() {
    assert_eq!(words(b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\nrest"), [&b"GET"[..], b"a\r\n"]);
    assert_eq!(words(b"*1\r\n$0\r\n\r\n"), [b""]);
    assert_eq!(words(b"  SET  a\t1 \r\nGET a\r\n"), [&b"SET"[..], b"a", b"1"]);
    assert_eq!(words(b"PING\n"), [b"PING"]);
    for nothing in [&b"*0\r\n"[..], b"*-1\r\n", b"\r\n", b"  \n"] {
        let command = parse(nothing).unwrap().unwrap();
        assert!(command.is_empty() && command.bytes == nothing.len());
    }
}

#[test]
fn a_partial_command_waits_for_more() {
    for whole in [&b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n"[..], b"SET a 1\r\n"] {
        for part in 0..whole.len() {
            assert!(parse(&whole[..part]).unwrap().is_none(), "{part}");
        }
        assert_eq!(parse(whole).unwrap().unwrap().bytes, whole.len());
    }
}

#[test]
fn invalid_commands_are_errors() {
    let bad = |bytes: &[u8]| parse(bytes).unwrap_err();
    assert_eq!(bad(b"*1025\r\n"), ProtocolError::Words);
    for words in ["*x\r\n", "*\r\n", "*+1\r\n", "*99999999999999999999\r\n", "*--1\r\n"] {
        assert_eq!(bad(words.as_bytes()), ProtocolError::Words, "{words}");
    }
    assert_eq!(bad(&[b"*".as_slice(), &[b'1'; 40]].concat()), ProtocolError::Words);
    for length in ["$-1", "$65537", "$", "$ 1", "$1x", "$18446744073709551615"] {
        let bytes = ["*1\r\n", length, "\r\n"].concat();
        assert_eq!(bad(bytes.as_bytes()), ProtocolError::Length, "{length}");
    }
    assert_eq!(bad(b"*1\r\n:1\r\n"), ProtocolError::Kind(b':'));
    assert_eq!(bad(b"*1\r\n$1\r\nabc"), ProtocolError::End);
    assert_eq!(bad(&[b'a'; MAX_COMMAND_BYTES]), ProtocolError::Long);
    let long = [&b"*3\r\n$1\r\na\r\n$65530\r\n"[..], &[b'x'; 65530], b"\r\n$1\r\nb\r\n"].concat();
    assert_eq!(bad(&long), ProtocolError::Long);
    assert!(parse(&long[..MAX_COMMAND_BYTES - 1]).unwrap().is_none());
    assert_eq!(bad(&long[..MAX_COMMAND_BYTES]), ProtocolError::Long);
    let kind = std::format!("{}", ProtocolError::Kind(b'\n'));
    assert_eq!(kind, "Protocol error: expected '$', got '\\n'");
}

#[test]
fn answers_follow_the_protocol() {
    let mut all = Vec::new();
    simple(&mut all, "OK");
    error(&mut all, format_args!("ERR {}", "a\r\nb"));
    integer(&mut all, -7);
    bytes(&mut all, b"a\r\n");
    null(&mut all);
    array_of(&mut all, 2);
    array_of(&mut all, 0);
    bytes(&mut all, b"");
    assert_eq!(all, b"+OK\r\n-ERR a  b\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n*0\r\n$0\r\n\r\n");
    assert_eq!(answers(&all), Some(6));
    for wrong in ["+OK", "x\r\n", "$3\r\nab\r\n", "*1\r\n", ":a\r\n", "$-2\r\n", "$1\r\naXX"] {
        assert_eq!(answers(wrong.as_bytes()), None, "{wrong}");
    }
}
