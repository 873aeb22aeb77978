//! Statistics, tables, plots and bounds: the one way in which the project reports figures.
//!
//! A benchmark turns its samples into [`Row`]s of a [`Table`] and writes it as
//! `docs/results/<name>.json`. [`render`] makes the page and the plots from those files, and
//! [`check`] holds them against `docs/results/<name>.bounds.toml`.
//!
//! Invariants:
//!
//! 1. A figure carries its origin: command, commit, versions, date, machine and load.
//! 2. A table is valid when it is written and again when it is read. What is invalid is an error of
//!    one line that names the file and the field, never a figure.
//! 3. Files appear whole or not at all, and the same tables give the same page and plots, byte for
//!    byte.
//! 4. Bounds hold ratios and counts, never times or rates: those belong to the machine and its load.
//!    What is missing fails, and nothing loosens a bound.
//!
//! Must not know: what is measured or how, and how a command line looks.
#![forbid(unsafe_code)]

mod bounds;
mod error;
mod file;
mod origin;
mod pages;
mod plot;
mod render;
mod row;
mod samples;
mod scale;
mod stats;
mod table;

pub use bounds::{check, Line, Report};
pub use error::{Error, Result};
pub use origin::Load;
pub use render::{pages, render};
pub use row::{Row, RowSet};
pub use samples::{parse_histogram, parse_samples};
pub use stats::{Sample, Stats};
pub use table::Table;
