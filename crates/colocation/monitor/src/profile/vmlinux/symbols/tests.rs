use super::*;
use crate::fake::image::{note, symbol_table, vmlinux, Order, TableSymbol, BUILD};
use crate::fake::{self, RandomNumbers, TEXT};
use std::format;
use std::string::ToString;

const ORDERS: [Order; 4] = [Order::Old, Order::OldSorted, Order::New, Order::NewFromBase];

/// Symbols of a kernel with `count` functions, and without per-CPU data if offsets count from the base.
fn symbols(names: &[String], order: Order) -> Vec<TableSymbol<'_>> {
    let mut symbols = Vec::new();
    if order != Order::NewFromBase {
        symbols.extend([(0, false, b'A', "__per_cpu_start"), (0x1000, false, b'A', "cpu_tasks")]);
    }
    symbols.extend([(0, true, b'T', "_stext"), (0, true, b'T', "_text")]);
    symbols.extend(names.iter().zip(1..).map(|(name, at)| (16 * at, true, b't', name.as_str())));
    symbols.push((0x10_0000, true, b'D', "init_task"));
    symbols.push((0x7eff_fff0, true, b'B', "_end"));
    symbols
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("function_{number}__lock")).collect()
}

fn read(bytes: &[u8]) -> Result<SymbolTable, ProfileError> {
    SymbolTable::read(&vmlinux(TEXT, bytes, &[]), &note(BUILD))
}

#[test]
fn every_order_is_read() {
    let long = [String::from("x").repeat(500)];
    for order in ORDERS {
        for count in [0, 1, 2, 249, 250, 251, 252, 253, 600, 601, 602, 603] {
            let names: Vec<String> = names(count).into_iter().chain(long.clone()).collect();
            let symbols = symbols(&names, order);
            let table = read(&symbol_table(TEXT, &symbols, order));
            let table = table.unwrap_or_else(|error| panic!("{order:?}, {count}: {error}"));
            let wanted = symbols.iter().map(|&(offset, moves, kind, name)| ImageSymbol {
                address: u64::from(offset) + if moves { TEXT } else { 0 },
                moves,
                kind,
                name,
            });
            assert!(table.symbols().eq(wanted), "{order:?}, {count}");
            assert_eq!(table.base(), TEXT);
        }
    }
}

#[test]
fn symbols_without_a_name_are_left_out() {
    let symbols = [(0, true, b'T', "_text"), (8, true, b't', ""), (16, true, b'B', "_end")];
    let table = read(&symbol_table(TEXT, &symbols, Order::New)).unwrap();
    assert!(table.symbols().map(|symbol| symbol.name).eq(["_text", "_end"]));
}

#[test]
fn what_has_no_table_is_refused() {
    let error = |bytes: &[u8], notes: &[u8]| {
        SymbolTable::read(&vmlinux(TEXT, bytes, &[]), notes).unwrap_err().to_string()
    };
    let symbols = [(0, true, b'T', "_text"), (16, true, b'B', "_end")];
    let good = symbol_table(TEXT, &symbols, Order::New);
    assert!(error(&good, &note([8; 20])).contains("its build ID differs"));
    assert!(error(&good, &[]).contains("no build ID"));
    let none = "has no symbol table of a known form";
    assert!(error(&[0; 4096], &note(BUILD)).contains(none));
    assert!(error(&good[..good.len() / 2], &note(BUILD)).contains(none));
    let elsewhere = symbol_table(TEXT + 4096, &symbols, Order::New);
    assert!(error(&elsewhere, &note(BUILD)).contains(none));
    let headless = symbol_table(TEXT, &symbols[1..], Order::Old);
    assert!(error(&headless, &note(BUILD)).contains(none));
}

#[test]
fn damaged_tables_are_survived() {
    let names = names(300);
    let mut numbers = RandomNumbers(0x7ab1e);
    let mut taken = 0;
    for round in 0..fake::rounds(2000) {
        let order = ORDERS[(round % 4) as usize];
        let mut bytes = symbol_table(TEXT, &symbols(&names, order), order);
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, numbers.next() as u8][numbers.below(6) as usize];
        }
        if round % 8 == 0 {
            bytes.truncate(numbers.below(bytes.len() as u64) as usize);
        }
        if let Ok(table) = read(&bytes) {
            taken += 1;
            assert!(table.symbols().count() <= 310);
        }
    }
    assert!(taken > 0);
}

#[test]
fn text_is_found_in_the_head_of_kcore() {
    let file = vmlinux(TEXT, &[0; 0x300], &[]);
    let head = &file[..64 + 2 * 56];
    assert_eq!(text_start(head, 0x300), Some(TEXT));
    assert_eq!(text_start(head, 0x301), None);
    for length in 0..head.len() - 8 {
        assert_eq!(text_start(&head[..length], 0x300), None);
    }
    assert_eq!(text_start(&vmlinux(0x1000, &[0; 0x300], &[]), 0x300), None);
}
