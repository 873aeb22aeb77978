//! No code: `Cargo.toml` names sources of programs.
