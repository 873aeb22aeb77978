//! The plot of a table: panels below each other, as `pages.toml` chooses them.

mod canvas;
mod curves;
mod palette;
mod rowwise;
mod spec;
mod stack;

use crate::bounds::{Bound, Limit};
use crate::render::{digits, number};
use crate::row::Row;
use crate::table::Table;
use canvas::{fit, Anchor, Canvas, MARGIN, WIDTH};
use palette::Role;
use rowwise::{Item, Shape};
use spec::Kind;
pub(crate) use spec::Plot;

/// Height of the title and of a panel's heading.
const TITLE: i32 = 42;
const HEADING: i32 = 46;

/// The image of a table: `plots`, or bars if there are none. Limits of `bounds` are marked.
pub(crate) fn svg(table: &Table, title: &str, plots: &[Plot], bounds: &[Bound]) -> String {
    let standard = if plots.is_empty() { Plot::by_unit(table) } else { Vec::new() };
    let mut canvas = Canvas::default();
    canvas.text((MARGIN, 22), Anchor::Start, 18, &fit(title, 18, WIDTH - 2 * MARGIN));
    let mut top = TITLE;
    for plot in plots.iter().chain(&standard) {
        let rows = plot.select(table);
        if !rows.is_empty() {
            top = panel(&mut canvas, top, plot, &rows, bounds);
        }
    }
    canvas.finish(title, top)
}

/// Draws the rows below `top`, and returns where the next panel starts.
fn panel(canvas: &mut Canvas, top: i32, plot: &Plot, rows: &[&Row], bounds: &[Bound]) -> i32 {
    let drawn = rows.iter().any(|row| !row.quantiles.is_empty());
    let key = match plot.kind {
        Kind::Bars => "bar: median; line: its 95 % confidence interval",
        Kind::Ratios => "dot: median; line: its 95 % confidence interval; ] at most, [ at least: the bound",
        Kind::Percent => {
            "dot: median; line: its 95 % confidence interval, both against the base's median; ] the bound"
        }
        Kind::Stack => "medians; at the end of a bar: their sum",
        Kind::Lines => "from the medians",
        Kind::Distribution if drawn => "part of the samples that have at most this figure",
        Kind::Distribution => "dot: median; square: p99; cross: worst",
    };
    let limit = WIDTH - 2 * MARGIN;
    canvas.text((MARGIN, top + 12), Anchor::Start, 14, &fit(&plot.title, 14, limit));
    canvas.text((MARGIN, top + 31), Anchor::Start, 11, &fit(key, 11, limit));
    let top = top + HEADING;
    match plot.kind {
        Kind::Bars => rowwise::draw(canvas, top, &bars(rows), &plot.unit, Shape::Bar),
        Kind::Ratios => rowwise::draw(canvas, top, &ratios(rows, bounds), "ratio", Shape::Dot(1.0)),
        Kind::Percent => {
            let items = percent(rows, plot.base.as_deref().unwrap_or_default(), bounds);
            rowwise::draw(canvas, top, &items, "per cent slower", Shape::Dot(0.0))
        }
        Kind::Stack => stack::draw(canvas, top, rows, plot),
        Kind::Lines => curves::sizes(canvas, top, rows, plot),
        Kind::Distribution => distribution(canvas, top, rows, &plot.unit),
    }
}

fn bars(rows: &[&Row]) -> Vec<Item> {
    let item = |row: &&Row| Item::new(row, rows, row.median, row.ci95, figure(row.median));
    rows.iter().map(item).collect()
}

fn ratios(rows: &[&Row], bounds: &[Bound]) -> Vec<Item> {
    let item = |row: &&Row| {
        let limits = |bound: &Bound| bound.limits(row, &["median", "low", "high"]);
        let item = Item::new(row, rows, row.median, row.ci95, digits(row.median, 3));
        item.limited(bounds.iter().flat_map(limits).collect())
    };
    rows.iter().map(item).collect()
}

/// The rows as differences from the medians of their bases: `work, base` is the base of `work, other`.
fn percent(rows: &[&Row], base: &str, bounds: &[Bound]) -> Vec<Item> {
    let item = |row: &&Row| {
        let (work, _) = row.name.rsplit_once(", ")?;
        let name = format!("{work}, {base}");
        let of = rows.iter().find(|other| other.group == row.group && other.name == name)?;
        let slower = |figure: f64| (figure / of.median - 1.0) * 100.0;
        let at = slower(row.median);
        let text = if row.name == name { "base".into() } else { format!("{at:+.3} %") };
        let limits = |bound: &Bound| {
            let ratios = bound.limits_of_ratio(row, of);
            let ratios = ratios.into_iter().map(|limit| limit.map(|ratio| (ratio - 1.0) * 100.0));
            let own = bound.limits(row, &["slower_percent"]);
            own.into_iter().chain(ratios).collect::<Vec<Limit>>()
        };
        let item = Item::new(row, rows, at, row.ci95.map(slower), text);
        Some(item.limited(bounds.iter().flat_map(limits).collect()))
    };
    rows.iter().filter_map(item).collect()
}

/// Curves of the rows with a distribution, and below them the others as median, p99 and worst.
fn distribution(canvas: &mut Canvas, top: i32, rows: &[&Row], unit: &str) -> i32 {
    let (curves, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| !row.quantiles.is_empty());
    let top = if curves.is_empty() { top } else { curves::levels(canvas, top, &curves, unit) };
    let item = |row: &&Row| {
        let p99 = row.p99.map_or("–".into(), figure);
        let text = format!("{} / {p99} / {}", figure(row.median), figure(row.worst));
        let tail = [row.p99.unwrap_or(row.median), row.worst];
        Item::new(row, &others, row.median, tail, text)
    };
    let items: Vec<Item> = others.iter().map(item).collect();
    if items.is_empty() {
        return top;
    }
    rowwise::draw(canvas, top, &items, unit, Shape::Tail)
}

/// The row's label among the others: without what all of them share.
fn label(row: &Row, rows: &[&Row]) -> String {
    let same_group = rows.iter().all(|other| other.group == row.group);
    let same_name = rows.iter().all(|other| other.name == row.name);
    match &row.group {
        Some(group) if same_name && !same_group => group.clone(),
        Some(group) if !same_group => format!("{group}: {}", row.name),
        _ => row.name.clone(),
    }
}

/// A figure of at most about six characters; `M` is a million.
fn figure(value: f64) -> String {
    if value.abs() >= 1e6 {
        return format!("{} M", digits(value / 1e6, 4));
    }
    number(value)
}

#[cfg(test)]
mod tests;
