//! Statistics, tables, plots and bounds: the project reports all figures through this crate.
//!
//! A benchmark turns its samples into [`Row`]s of a [`Table`] and writes it as
//! `docs/results/<name>.json`. [`render`] makes the pages and the plots from those files and from `pages.toml`, and
//! [`check`] compares them with `docs/results/<name>.bounds.toml`.
//!
//! Invariants:
//!
//! 1. A figure carries its origin: command, commit, versions, date, machine and load.
//! 2. A table is validated when it is written and again when it is read. An invalid one is an error of one line that
//!    names the file and the field, never a figure.
//! 3. Files are replaced atomically, and the same tables give the same pages and plots, byte for byte.
//! 4. Bounds hold ratios and counts, never times or rates: those depend on the machine and its load. A bound on a
//!    missing figure fails, and nothing loosens a bound.
//!
//! Must not know: what is measured, how it is measured, or how a command line looks.
#![forbid(unsafe_code)]

mod bounds;
mod error;
mod file;
mod origin;
mod pages;
mod plot;
mod prose;
mod render;
mod row;
mod samples;
mod scale;
mod stats;
mod table;

pub use bounds::{check, Line, Report};
pub use error::{Error, Result};
pub use origin::Load;
pub use prose::prose;
pub use render::{pages, render};
pub use row::{Row, RowSet};
pub use samples::{parse_histogram, parse_samples};
pub use stats::{Sample, Stats};
pub use table::Table;
