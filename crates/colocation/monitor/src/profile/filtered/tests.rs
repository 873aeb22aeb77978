use super::*;
use crate::fake::image::{note, symbol_table, vmlinux, Order, TableSymbol, BUILD};
use crate::fake::{self, RandomNumbers, TEXT};
use std::format;
use std::string::ToString;

/// How far the fake kernel moved.
const MOVED: u64 = 0x1240_0000;

const SYMBOLS: [TableSymbol<'_>; 9] = [
    (0, false, b'A', "__per_cpu_start"),
    (0x20, false, b'A', "current_task"),
    (0, true, b'T', "_text"),
    (0x40, true, b't', "twice"),
    (0x80, true, b't', "twice"),
    (0xc0, true, b'T', "kill"),
    (0x1000, true, b'D', "init_task"),
    (0x1100, true, b'D', "modules"),
    (0x2000, true, b'B', "_end"),
];

fn table() -> SymbolTable {
    let bytes = symbol_table(TEXT, &SYMBOLS, Order::New);
    SymbolTable::read(&vmlinux(TEXT, &bytes, &[]), &note(BUILD)).unwrap()
}

fn line((offset, moves, kind, name): &TableSymbol<'_>) -> String {
    let address = u64::from(*offset) + if *moves { TEXT + MOVED } else { 0 };
    format!("{address:016x} {} {name}\n", char::from(*kind))
}

fn core() -> String {
    SYMBOLS.iter().map(line).collect()
}

/// The listing with a module's symbols.
fn listing() -> String {
    core() + "ffffffffc0000000 t thing\t[module]\nffffffffc0001000 t bpf_prog\t[bpf]\n"
}

fn compared(kallsyms: &str) -> Option<Filtered> {
    compare(&table(), kallsyms, |_| panic!("the listing says how far the kernel moved")).unwrap()
}

fn text(kallsyms: &str) -> String {
    let filtered = compared(kallsyms).unwrap();
    assert_eq!(filtered.listing, core());
    let text = filtered.to_string();
    let rest = text.strip_prefix("/proc/kallsyms ").unwrap();
    rest.strip_suffix(": something filters it; the symbols were taken from the image")
        .unwrap()
        .into()
}

#[test]
fn a_complete_listing_is_no_difference() {
    assert_eq!(compared(&listing()), None);
    assert_eq!(compared(&core()), None);
    // In another order, or without the last newline: still complete.
    let reversed: String = SYMBOLS.iter().rev().map(line).collect();
    assert_eq!(compared(&reversed), None);
    assert_eq!(compared(core().trim_end()), None);
}

#[test]
fn hidden_symbols_are_named_and_completed() {
    let hides = "hides 1 symbol that the kernel's image has, for example";
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[6]), "")), format!("{hides} init_task"));
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[2]), "")), format!("{hides} _text"));
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[4]), "")), format!("{hides} twice"));
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[1]), "")), format!("{hides} current_task"));
    let zero = format!("{:016x}{}", 0, &line(&SYMBOLS[7])[16..]);
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[7]), &zero)), format!("{hides} modules"));
    let two = listing().replace(&line(&SYMBOLS[7]), "").replace(&line(&SYMBOLS[3]), "");
    assert_eq!(text(&two), "hides 2 symbols that the kernel's image has, for example modules");
}

#[test]
fn forged_and_added_symbols_are_named() {
    let moved = line(&(0x1108, true, b'D', "modules"));
    let forged = "shows another address or type of 1 symbol than the kernel's image, for example";
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[7]), &moved)), format!("{forged} modules"));
    let base = line(&(0x8000, true, b'T', "_text"));
    assert_eq!(text(&listing().replace(&line(&SYMBOLS[2]), &base)), format!("{forged} _text"));
    assert_eq!(text(&listing().replace("T kill", "t kill")), format!("{forged} kill"));
    assert_eq!(
        text(&(core() + &line(&(0x300, true, b't', "evil")))),
        "shows 1 symbol that the kernel's image lacks, for example evil"
    );
    assert_eq!(
        text(&listing().replace("kill", "kiln").replace(&moved, "")),
        "hides 1 symbol that the kernel's image has, for example kill and shows 1 symbol that the kernel's image \
         lacks, for example kiln"
    );
}

#[test]
fn a_listing_without_addresses_needs_the_text() {
    let zeros: String = SYMBOLS.iter().map(|s| format!("{:016x}{}", 0, &line(s)[16..])).collect();
    // A single symbol with a forged address does not say how far the kernel moved.
    let forged = format!("{:016x} T kill\n", TEXT + MOVED + 0x10_00c0);
    let filtered = compare(&table(), &forged, |_| Some(TEXT + MOVED)).unwrap().unwrap();
    assert_eq!((filtered.listing, filtered.forged.count), (core(), 1));
    for hidden in ["", &zeros] {
        let hidden_error = Err(ProfileError::Hidden(KALLSYMS));
        assert_eq!(compare(&table(), hidden, |_| None), hidden_error);
        let text = |bytes| {
            assert_eq!(bytes, 0x2000);
            Some(TEXT + MOVED)
        };
        let filtered = compare(&table(), hidden, text).unwrap().unwrap();
        assert_eq!(filtered.listing, core());
        assert_eq!(filtered.hidden.count, if hidden.is_empty() { 9 } else { 8 });
        assert_eq!((filtered.forged.count, filtered.added.count), (0, 0));
    }
    assert!(compare(&table(), "not a listing", |_| None).is_err());
}

#[test]
fn any_listing_is_survived() {
    let good = listing();
    let table = table();
    let mut numbers = RandomNumbers(0xf117);
    for _ in 0..fake::rounds(2000) {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] = [b'0', b'f', b' ', b'\n', b'x'][numbers.below(5) as usize];
        }
        bytes.truncate(numbers.below(2 * good.len() as u64) as usize);
        let kallsyms = String::from_utf8(bytes).unwrap();
        if let Ok(Some(filtered)) = compare(&table, &kallsyms, |_| Some(TEXT)) {
            assert!(filtered.hidden.count + filtered.forged.count + filtered.added.count > 0);
            assert!(filtered.hidden.count <= SYMBOLS.len());
        }
    }
}
