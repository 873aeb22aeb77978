//! Compiles a program by Cranelift: `cranelift FROM.wasm TO.typed`.

use std::fs;

use kyozon_typed_compiler::{compile, BackEnd};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: cranelift FROM.wasm TO.typed".into());
    };
    Ok(fs::write(to, compile(&fs::read(from)?, BackEnd::Cranelift)?)?)
}
