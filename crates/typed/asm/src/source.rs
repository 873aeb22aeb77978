//! From a source to what the GNU assembler reads, and to what the directives declare.
//!
//! Each directive becomes one line, so the line numbers stay. What the GNU assembler must tell of a place in the text
//! becomes a symbol: `__kyozon_head_N` for the N-th head, `__kyozon_line_N` for line N.

use std::collections::HashMap;

use kyozon_typed_annotate::module::{Signature, Type};
use kyozon_typed_checker::program::{MOST_FRAME, RETURNS_VIEW, VIEW_IS_WRITABLE};

use crate::cursor::Cursor;
use crate::error::Complaint;
use crate::head::{self, Item};
use crate::signature;

/// Prefix of the symbols for heads.
pub(crate) const HEAD: &str = "__kyozon_head_";
/// Prefix of the symbols for lines.
pub(crate) const LINE: &str = "__kyozon_line_";
/// Where the region lies if the source does not say.
pub(crate) const REGION: u64 = 0x1000_0000;

/// A name and the line where it is declared.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: String,
    pub line: u32,
}

pub(crate) struct Function {
    pub name: Name,
    pub signature: u16,
    pub frame: u32,
}

pub(crate) struct Import {
    pub name: Name,
    pub number: u16,
    pub signature: u16,
}

pub(crate) struct CallTable {
    pub name: Name,
    pub signature: u16,
    pub functions: Vec<String>,
}

pub(crate) struct JumpTable {
    pub name: Name,
    /// Name of its function.
    pub function: String,
    pub count: u32,
}

pub(crate) struct Head {
    pub line: u32,
    /// Number of the function in which it stands.
    pub function: usize,
    pub items: Vec<Item>,
}

/// What the directives of a source say.
pub(crate) struct Declarations {
    pub region: u64,
    pub indirect: bool,
    pub entry: Option<Name>,
    pub signatures: Vec<Signature>,
    pub functions: Vec<Function>,
    pub imports: Vec<Import>,
    pub call_tables: Vec<CallTable>,
    pub jump_tables: Vec<JumpTable>,
    pub heads: Vec<Head>,
    named: HashMap<String, u16>,
}

/// Reads a source. Returns the declarations and the GNU assembler's source, or a line and what is wrong there.
pub(crate) fn read(source: &str) -> Result<(Declarations, String), (u32, Complaint)> {
    let mut declarations = Declarations {
        region: REGION,
        indirect: false,
        entry: None,
        signatures: Vec::new(),
        functions: Vec::new(),
        imports: Vec::new(),
        call_tables: Vec::new(),
        jump_tables: Vec::new(),
        heads: Vec::new(),
        named: HashMap::new(),
    };
    let mut out = String::new();
    let mut comment = false;
    let mut repeats = 0u32;
    for (n, line) in source.lines().enumerate() {
        let number = n as u32 + 1;
        let code = without_comments(line, &mut comment);
        let (labels, statement) = split_labels(code.trim());
        let word = statement.split_whitespace().next().unwrap_or("");
        match word {
            ".macro" | ".rept" | ".irp" | ".irpc" => repeats += 1,
            ".endm" | ".endr" => repeats = repeats.saturating_sub(1),
            _ => (),
        }
        let operands = statement[word.len()..].trim();
        let directive = declarations.directive(word, operands, number);
        match directive.map_err(|complaint| (number, complaint))? {
            Some(_) if repeats > 0 => {
                let message = format!("{word} in a macro or repetition: write it outside");
                return Err((number, message));
            }
            Some(replacement) => out += &format!("{labels} {replacement}"),
            None => {
                let emits = !word.starts_with('.') || DATA.contains(&word);
                if emits && !word.is_empty() && repeats == 0 && !word.contains('=') {
                    out += &format!("{LINE}{number}: ");
                }
                out += &code;
            }
        }
        out.push('\n');
    }
    Ok((declarations, out))
}

/// Directives that emit data, so that a line of theirs can be wrong later.
const DATA: [&str; 5] = [".long", ".int", ".4byte", ".quad", ".8byte"];

/// A line without its comments. `inside` tells whether it begins in a comment, and is changed to whether the next does.
fn without_comments(line: &str, inside: &mut bool) -> String {
    let mut out = String::new();
    let mut rest = line;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        let mut step = c.len_utf8();
        if *inside {
            if rest.starts_with("*/") {
                *inside = false;
                step = 2;
                out.push(' ');
            }
        } else if quoted {
            if c == '\\' {
                step += rest[step..].chars().next().map_or(0, char::len_utf8);
            }
            quoted = c != '"';
            out += &rest[..step];
        } else if rest.starts_with("/*") {
            *inside = true;
            step = 2;
        } else if c == '#' {
            break;
        } else {
            quoted = c == '"';
            out.push(c);
        }
        rest = &rest[step..];
    }
    out
}

/// Splits off `label:` at the beginning of a statement.
fn split_labels(statement: &str) -> (&str, &str) {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut at = 0;
    loop {
        let rest = &statement[at..];
        let skipped = rest.len() - rest.trim_start().len();
        let name = rest.trim_start();
        let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
        if end == 0 || !name[end..].starts_with(':') {
            return (&statement[..at], name);
        }
        at += skipped + end + 1;
    }
}

impl Declarations {
    /// Takes a directive; returns what the GNU assembler gets in its place. None if it is not one of ours.
    fn directive(
        &mut self,
        word: &str,
        operands: &str,
        line: u32,
    ) -> Result<Option<String>, Complaint> {
        let mut cursor = Cursor::new(operands);
        let c = &mut cursor;
        let mut replacement = String::new();
        match word {
            ".region" => self.region = c.number()?,
            ".indirect" => self.indirect = true,
            ".entry" => {
                let text = c.name("the name of a function")?.to_string();
                if self.entry.replace(Name { text, line }).is_some() {
                    return Err("a second .entry: a program starts at one function".into());
                }
            }
            ".sig" => self.sig(c)?,
            ".func" => replacement = self.func(c, line)?,
            ".import" => {
                let name = self.new_name(c, line)?;
                let number = u16::try_from(c.number()?)
                    .map_err(|_| "the number of an import has 16 bits".to_string())?;
                let signature = self.signature(c)?;
                if self.signatures[usize::from(signature)].arguments.contains(&Type::Unknown) {
                    return Err("an import has no `unknown` argument: write what it takes".into());
                }
                let view = match number & (RETURNS_VIEW | VIEW_IS_WRITABLE) {
                    RETURNS_VIEW => Some(Type::View),
                    0 | VIEW_IS_WRITABLE => None,
                    _ => Some(Type::WritableView),
                };
                let result = self.signatures[usize::from(signature)].result;
                if result.filter(|&t| matches!(t, Type::View | Type::WritableView)) != view {
                    return Err(
                        "bit 15 of an import's number says that it returns a view, bit 14 \
                                that the view is writable: its signature must say the same"
                            .into(),
                    );
                }
                self.imports.push(Import { name, number, signature });
            }
            ".calltable" => {
                let name = self.new_name(c, line)?;
                let signature = self.signature(c)?;
                let functions = names(c)?;
                self.call_tables.push(CallTable { name, signature, functions });
            }
            ".jumptable" => replacement = self.jump_table(c, line)?,
            ".head" => {
                let items = head::parse(c)?;
                let function = self.functions.len().checked_sub(1);
                let function = function.ok_or(".head before any .func: it belongs into one")?;
                replacement = format!("{HEAD}{}:", self.heads.len());
                self.heads.push(Head { line, function, items });
            }
            ".return" => {
                let leave = if self.indirect { "ret" } else { "jmp __x86_return_thunk" };
                replacement = format!("{LINE}{line}: {leave}");
            }
            ".fact" | ".view" => {
                return Err(format!("{word} is reserved for a later version: remove it"))
            }
            _ => return Ok(None),
        }
        c.end()?;
        Ok(Some(replacement))
    }

    fn sig(&mut self, c: &mut Cursor<'_>) -> Result<(), Complaint> {
        let name = c.name("the name of a signature")?;
        let signature = signature::parse(c)?;
        let number = self.signatures.len() as u16;
        if self.named.insert(name.into(), number).is_some() {
            return Err(format!("signature `{name}` is declared twice"));
        }
        self.signatures.push(signature);
        Ok(())
    }

    /// A signature by name or in full.
    fn signature(&mut self, c: &mut Cursor<'_>) -> Result<u16, Complaint> {
        if !c.rest().starts_with('(') {
            let name = c.name("a signature, as (any, u32) -> any, or the name of a .sig")?;
            return self.named.get(name).copied().ok_or_else(|| {
                format!("signature `{name}` is not declared: write `.sig {name} (...)` before it")
            });
        }
        let signature = signature::parse(c)?;
        if let Some(n) = self.signatures.iter().position(|known| *known == signature) {
            return Ok(n as u16);
        }
        self.signatures.push(signature);
        Ok((self.signatures.len() - 1) as u16)
    }

    fn func(&mut self, c: &mut Cursor<'_>, line: u32) -> Result<String, Complaint> {
        let text = c.name("the name of a function")?.to_string();
        let signature = self.signature(c)?;
        let result = self.signatures[usize::from(signature)].result;
        if matches!(result, Some(Type::View | Type::WritableView)) {
            return Err("only an import returns a view: return what was read from it".into());
        }
        let frame = if c.take_word("frame") { c.number()? } else { 0 };
        let bytes = u32::try_from(frame).ok().filter(|&n| n % 8 == 0 && n <= MOST_FRAME);
        let Some(frame) = bytes else {
            return Err(format!("frame {frame}: expected a multiple of 8 up to {MOST_FRAME}"));
        };
        let replacement = format!(".text; .type {text}, @function; {text}:");
        self.functions.push(Function { name: Name { text, line }, signature, frame });
        Ok(replacement)
    }

    fn jump_table(&mut self, c: &mut Cursor<'_>, line: u32) -> Result<String, Complaint> {
        let name = self.new_name(c, line)?;
        let table = name.text.clone();
        // With a function, the table lies where the directive stands; else it is in that function.
        let inside = c.take_word("in");
        let function = if inside {
            c.name("the name of a function")?.to_string()
        } else {
            let last = self.functions.last();
            last.ok_or(".jumptable before any .func: it belongs into one")?.name.text.clone()
        };
        c.need(":")?;
        let targets: Vec<_> = c.rest().split(',').map(str::trim).collect();
        if targets.iter().any(|target| target.is_empty()) {
            return Err("expected the labels that the table leads to, separated by commas".into());
        }
        let distances: Vec<_> = targets.iter().map(|t| format!("{t} - {table}")).collect();
        let data = format!("{table}: {LINE}{line}: .long {}", distances.join(", "));
        self.jump_tables.push(JumpTable { name, function, count: targets.len() as u32 });
        *c = Cursor::new("");
        Ok(if inside {
            format!(".balign 4; {data}")
        } else {
            format!(".pushsection .rodata; .balign 4; {data}; .popsection")
        })
    }

    /// The name of a new table or import.
    fn new_name(&self, c: &mut Cursor<'_>, line: u32) -> Result<Name, Complaint> {
        let text = c.name("a new name")?.to_string();
        let imports = self.imports.iter().map(|i| &i.name);
        let tables = self.call_tables.iter().map(|t| &t.name);
        let tables = tables.chain(self.jump_tables.iter().map(|t| &t.name));
        if let Some(other) = imports.chain(tables).find(|name| name.text == text) {
            return Err(format!("`{text}` is declared in line {} already", other.line));
        }
        Ok(Name { text, line })
    }
}

/// `: NAME, NAME`
fn names(c: &mut Cursor<'_>) -> Result<Vec<String>, Complaint> {
    c.need(":")?;
    let mut names = vec![c.name("the name of a function")?.to_string()];
    while c.take(",") {
        names.push(c.name("the name of a function")?.to_string());
    }
    Ok(names)
}
