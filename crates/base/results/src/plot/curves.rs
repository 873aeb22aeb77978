//! Panels with a curve for each series: figures over a size, and distributions.

use super::canvas::{fit, width, Anchor, At, Canvas, GRID, MARGIN, WIDTH};
use super::rowwise::{axis, AXIS, SIZE};
use super::spec::Plot;
use super::{figure, label, Role};
use crate::row::Row;
use crate::scale::Scale;

/// Height of the space for the curves, and of a line of the key.
const HEIGHT: i32 = 260;
const LINE: i32 = 17;
/// Maximum width of a name in the key.
const NAME: i32 = 240;
/// Patterns of lines that have the same colour.
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// A curve.
struct Series<'a> {
    name: String,
    /// The first curves of each colour are drawn without gaps, the second ones dashed, and so on.
    dash: &'a str,
    role: Role,
    points: Vec<(f64, f64)>,
}

/// Draws an extra column of the rows over the size at the end of their groups' names, a line for each operation and
/// name of a row. Returns where the axis ends.
pub(super) fn sizes(canvas: &mut Canvas, top: i32, rows: &[&Row], plot: &Plot) -> i32 {
    let value = plot.value.as_deref().unwrap_or_default();
    let mut all: Vec<Series<'_>> = Vec::new();
    let mut sizes: Vec<(f64, &str)> = Vec::new();
    for row in rows {
        let group = row.group.as_deref().unwrap_or_default();
        let Some((operation, text)) = group.rsplit_once(", ") else { continue };
        let (Some(size), Some(figure)) = (bytes(text), row.value(value)) else { continue };
        if !sizes.contains(&(size, text)) {
            sizes.push((size, text));
        }
        let name = format!("{operation}, {}", row.name);
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((size, figure)),
            None => all.push(series(&all, name, Role::of(row), vec![(size, figure)])),
        }
    }
    sizes.sort_by(|one, other| one.0.total_cmp(&other.0));
    // A reader finds a name at the height of its line's end.
    let last = |series: &Series<'_>| series.points.last().map_or(0.0, |point| point.1);
    all.sort_by(|one, other| last(other).total_cmp(&last(one)));

    let figures: Vec<f64> = all.iter().flat_map(|s| s.points.iter().map(|point| point.1)).collect();
    let bottom = top + 18 + HEIGHT;
    let y = Scale::from_zero(&figures, (bottom, top + 22));
    let (left, right) = sides(&all, &y);
    let range: Vec<f64> = sizes.iter().map(|(size, _)| *size).collect();
    let centre = range.first().copied().unwrap_or(1.0);
    let x = Scale::around(centre, &range, (left, right));
    for (size, text) in &sizes {
        let x = x.pixel(*size);
        canvas.line((x, top + 18), (x, bottom + 4), GRID, 1);
        canvas.text((x, bottom + 13), Anchor::Middle, 11, text);
    }
    let middle = ((left + right) / 2, bottom + 31);
    canvas.text(middle, Anchor::Middle, 11, &format!("size of a record{}", x.remark()));
    upright(canvas, &y, (left, right), top, &value.replace('_', " "));
    draw(canvas, &all, (&x, &y), (right, bottom), true);
    bottom + AXIS
}

/// Draws the distributions of the rows. Returns where the axis ends.
pub(super) fn levels(canvas: &mut Canvas, top: i32, rows: &[&Row], unit: &str) -> i32 {
    let mut all: Vec<Series<'_>> = Vec::new();
    for row in rows {
        let level = |(level, figure): (&String, &f64)| Some((*figure, level.parse().ok()?));
        let points = row.quantiles.iter().filter_map(level).collect();
        all.push(series(&all, label(row, rows), Role::of(row), points));
    }
    let figures: Vec<f64> = all.iter().flat_map(|s| s.points.iter().map(|point| point.0)).collect();
    let bottom = top + 18 + HEIGHT.max(all.len() as i32 * LINE);
    let y = Scale::from_zero(&[0.0, 1.0], (bottom, top + 22));
    let (left, right) = sides(&all, &y);
    let x = Scale::spread(&figures, (left, right));
    axis(canvas, &x, (top + 18, bottom), (left, right), unit);
    upright(canvas, &y, (left, right), top, "part of the samples");
    draw(canvas, &all, (&x, &y), (right, bottom), false);
    bottom + AXIS
}

/// One more series.
fn series<'a>(all: &[Series<'a>], name: String, role: Role, points: Vec<(f64, f64)>) -> Series<'a> {
    let same = all.iter().filter(|series| series.role == role).count();
    Series { name, dash: DASHES[same % DASHES.len()], role, points }
}

/// The left and right ends of the space for the curves: the figures of the axis and the key are beside it.
fn sides(all: &[Series<'_>], y: &Scale) -> (i32, i32) {
    let ticks = y.ticks().into_iter().map(|tick| width(&figure(tick), 11)).max().unwrap_or(0);
    let names = all.iter().map(|series| width(&series.name, SIZE).min(NAME)).max().unwrap_or(0);
    (MARGIN + ticks + 8, WIDTH - MARGIN - names - 52)
}

/// The grid and the figures of a vertical axis, and its unit above it.
fn upright(canvas: &mut Canvas, y: &Scale, (left, right): (i32, i32), top: i32, unit: &str) {
    canvas.text((MARGIN, top + 4), Anchor::Start, 11, &fit(unit, 11, right - MARGIN));
    for tick in y.ticks() {
        let at = y.pixel(tick);
        canvas.line((left, at), (right, at), GRID, 1);
        canvas.text((left - 6, at), Anchor::End, 11, &figure(tick));
    }
}

/// The curves, and their names right of them.
fn draw(
    canvas: &mut Canvas,
    all: &[Series<'_>],
    (x, y): (&Scale, &Scale),
    (right, bottom): At,
    dots: bool,
) {
    // Each name is as high as the end of its curve, but below the one before and above those that follow.
    let mut free = i32::MIN;
    for (i, Series { name, dash, role, points }) in all.iter().enumerate() {
        let colour = role.colour();
        let pixels: Vec<At> = points.iter().map(|(a, b)| (x.pixel(*a), y.pixel(*b))).collect();
        canvas.path(&pixels, colour, 2, dash);
        for at in pixels.iter().filter(|_| dots) {
            canvas.dot(*at, 3, colour);
        }
        let wanted = pixels.last().map_or(bottom, |at| at.1);
        let below = (all.len() - i - 1) as i32 * LINE;
        let at = wanted.min(bottom - 8 - below).max(free);
        free = at + LINE;
        canvas.path(&[(right + 14, at), (right + 44, at)], colour, 3, dash);
        canvas.text((right + 50, at), Anchor::Start, SIZE, &fit(name, SIZE, NAME));
    }
}

/// The size that a text such as `64 KiB` gives.
fn bytes(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let unit = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit)
}
