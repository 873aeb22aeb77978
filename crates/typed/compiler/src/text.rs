//! From a C compiler's assembly to typed assembly.
//!
//! What the checker wants to know is added: signatures, frames, and the check of the stack before a function calls
//! others. What only a linker or debugger wants is left out.

use std::fmt::Write;

use kyozon_typed_checker::{FLOOR, RESERVE, SLACK};

use crate::program::{passing, Passed};
use crate::source::{Compiled, Declared};
use crate::wasm::FunctionType;

/// What `cmp` compares the stack pointer with if the function's frame is empty.
const CHECK: u32 = FLOOR + 256;
const _: () = assert!(CHECK > RESERVE);

/// Directives that mean nothing here.
const IGNORED: [&str; 9] = [
    ".file",
    ".globl",
    ".hidden",
    ".type",
    ".size",
    ".ident",
    ".addrsig",
    ".addrsig_sym",
    ".local",
];

/// A signature as typed assembly writes it.
fn signature(kind: &FunctionType) -> String {
    let passed = passing(&kind.arguments).into_iter().zip(&kind.arguments);
    let general = passed.filter(|(passed, t)| *passed == Passed::Register && t.is_general());
    let arguments = vec!["any"; general.count()].join(", ");
    let result = kind.results.first().filter(|t| t.is_general()).map_or("", |_| " -> any");
    format!("({arguments}){result}")
}

/// Typed assembly.
pub(crate) struct Typed {
    pub text: String,
    /// The names of its functions, in their order.
    pub functions: Vec<String>,
    /// Those that address by 32-bit registers.
    pub narrow: Vec<String>,
}

/// Whether an instruction addresses memory by 32-bit registers.
fn is_narrow(line: &str) -> bool {
    let inside = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    inside.is_some_and(|(registers, _)| {
        registers.split(',').any(|register| {
            let name = register.trim();
            name.starts_with("%e") || name.starts_with("%r") && name.ends_with('d')
        })
    })
}

/// The typed assembly of a program.
pub(crate) fn rewrite(assembly: &str, compiled: &Compiled, region: u64) -> Typed {
    let mut out = format!(".region {region:#x}\n.entry entry\n");
    for (n, (name, kind)) in compiled.imports.iter().enumerate() {
        let _ = writeln!(out, ".import {name} {n} {}", signature(kind));
    }
    for (name, kind, functions) in &compiled.tables {
        let _ = writeln!(out, ".calltable {name} {}: {}", signature(kind), functions.join(", "));
    }
    let mut function: Option<Body<'_>> = None;
    let (mut functions, mut narrow) = (Vec::new(), Vec::new());
    for line in assembly.lines() {
        let statement = line.trim();
        let word = statement.split_whitespace().next().unwrap_or("");
        if let Some(name) = statement.strip_suffix(':') {
            if let Some(declared) = compiled.functions.get(name) {
                if let Some(before) = function.take() {
                    before.finish(&mut out, &mut functions);
                }
                function =
                    Some(Body { name, declared, lines: String::new(), frame: 0, calls: false });
                continue;
            }
        }
        if word.starts_with(".cfi_") {
            if let (Some(body), Some(depth)) = (&mut function, frame_depth(statement)) {
                body.frame = body.frame.max(depth);
            }
            continue;
        }
        if IGNORED.contains(&word) || word.is_empty() || word.starts_with('#') {
            continue;
        }
        let section = word == ".section" || word == ".text";
        if section {
            if let Some(before) = function.take() {
                before.finish(&mut out, &mut functions);
            }
            if word == ".section" && !statement.contains(".text") {
                let _ = writeln!(out, "{statement}");
            } else {
                out += ".text\n";
            }
            continue;
        }
        let Some(body) = &mut function else {
            let _ = writeln!(out, "{line}");
            continue;
        };
        match word {
            "ret" | "retq" => body.lines += ".return\n",
            _ => {
                body.calls |= matches!(word, "call" | "callq");
                if is_narrow(statement) && narrow.last().is_none_or(|name| name != body.name) {
                    narrow.push(body.name.to_string());
                }
                let _ = writeln!(body.lines, "{line}");
            }
        }
    }
    if let Some(last) = function {
        last.finish(&mut out, &mut functions);
    }
    Typed { text: out, functions, narrow }
}

/// The frame's depth after `.cfi_def_cfa_offset N`, which counts the return address.
fn frame_depth(statement: &str) -> Option<u32> {
    let offset = statement.strip_prefix(".cfi_def_cfa_offset")?;
    offset.trim().parse::<u32>().ok()?.checked_sub(8)
}

/// A function whose text is being read.
struct Body<'a> {
    name: &'a str,
    declared: &'a Declared,
    lines: String,
    frame: u32,
    calls: bool,
}

impl Body<'_> {
    fn finish(self, out: &mut String, functions: &mut Vec<String>) {
        let number = functions.len();
        functions.push(self.name.to_string());
        let (name, frame) = (self.name, self.frame.next_multiple_of(8));
        let _ = writeln!(out, ".func {name} {} frame {frame}", signature(&self.declared.kind));
        if self.declared.landing {
            *out += "endbr64\n";
        }
        let checks = self.calls || frame >= SLACK;
        if checks {
            let _ = writeln!(out, "cmp ${:#x}, %sp\njb .Lstack{number}", CHECK + frame);
        }
        *out += &self.lines;
        if checks {
            let _ = writeln!(out, ".Lstack{number}: ud2");
        }
    }
}

#[cfg(test)]
mod tests;
