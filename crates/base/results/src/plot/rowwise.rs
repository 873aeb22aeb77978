//! Panels with a line for each row: bars, dots with their intervals, and the tails of distributions.

use super::canvas::{fit, width, Anchor, At, Canvas, GRID, INK, MARGIN, WIDTH};
use super::{figure, label, Role};
use crate::bounds::Limit;
use crate::row::Row;
use crate::scale::Scale;

/// Height of a row, of the space between groups, and of the axis with its unit.
pub(super) const ROW: i32 = 22;
pub(super) const GAP: i32 = 8;
pub(super) const AXIS: i32 = 56;
/// Size of the labels, and their maximum width.
pub(super) const SIZE: i32 = 12;
const LABEL: i32 = 400;

/// What a row looks like.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A bar from 0, with the interval.
    Bar,
    /// A dot with the interval, around this figure.
    Dot(f64),
    /// A dot for the median, and marks for both figures of `ends`: p99 and worst.
    Tail,
}

/// A row in a panel.
pub(super) struct Item {
    label: String,
    at: f64,
    ends: [f64; 2],
    /// The figure in words.
    text: String,
    role: Role,
    limits: Vec<Limit>,
    /// Whether a new group begins with this row.
    apart: bool,
}

impl Item {
    /// `row` among the others of its panel.
    pub(super) fn new(row: &Row, rows: &[&Row], at: f64, ends: [f64; 2], text: String) -> Self {
        let position = rows.iter().position(|other| other.label() == row.label()).unwrap_or(0);
        let apart = position > 0 && rows[position - 1].group != row.group;
        let several = rows.windows(2).any(|pair| pair[0].group == pair[1].group);
        Self {
            label: label(row, rows),
            at,
            ends,
            text,
            role: Role::of(row),
            limits: Vec::new(),
            apart: apart && several,
        }
    }

    /// Marks the limits.
    pub(super) fn limited(self, limits: Vec<Limit>) -> Self {
        Self { limits, ..self }
    }
}

/// Draws the items below `top`, and returns where the axis ends.
pub(super) fn draw(canvas: &mut Canvas, top: i32, items: &[Item], unit: &str, shape: Shape) -> i32 {
    let labels = items.iter().map(|item| width(&item.label, SIZE).min(LABEL));
    let texts = items.iter().map(|item| width(&item.text, SIZE)).max().unwrap_or(0);
    let left = labels.max().unwrap_or(0).max(40) + MARGIN + 10;
    let ends = (left, WIDTH - MARGIN - texts.max(40) - 12);
    let drawn = |item: &Item| {
        let limits: Vec<f64> = item.limits.iter().map(|limit| limit.figure()).collect();
        [vec![item.at, item.ends[0], item.ends[1]], limits].concat()
    };
    let figures: Vec<f64> = items.iter().flat_map(drawn).collect();
    let scale = match shape {
        Shape::Bar => Scale::from_zero(&figures, ends),
        Shape::Dot(centre) => Scale::around(centre, &figures, ends),
        Shape::Tail => Scale::spread(&figures, ends),
    };
    let gaps = items.iter().filter(|item| item.apart).count() as i32;
    let end = top + items.len() as i32 * ROW + gaps * GAP;
    axis(canvas, &scale, (top, end), ends, unit);
    match shape {
        Shape::Bar => vertical(canvas, scale.pixel(0.0), top, end),
        Shape::Dot(centre) => vertical(canvas, scale.pixel(centre), top, end),
        Shape::Tail => {}
    }
    let mut y = top + ROW / 2;
    for item in items {
        y += if item.apart { GAP } else { 0 };
        canvas.text((left - 10, y), Anchor::End, SIZE, &fit(&item.label, SIZE, LABEL));
        let end = one(canvas, &scale, y, item, shape);
        canvas.text((end + 10, y), Anchor::Start, SIZE, &item.text);
        y += ROW;
    }
    end + AXIS
}

/// Draws an item's figures, and returns the rightmost pixel.
fn one(canvas: &mut Canvas, scale: &Scale, y: i32, item: &Item, shape: Shape) -> i32 {
    let (at, [low, high]) = (scale.pixel(item.at), item.ends.map(|figure| scale.pixel(figure)));
    let colour = item.role.colour();
    match shape {
        Shape::Bar => {
            canvas.rect((scale.pixel(0.0), y - 7), (at, y + 7), colour);
            interval(canvas, (low, y), high);
        }
        Shape::Dot(_) => {
            interval(canvas, (low, y), high);
            canvas.dot((at, y), 5, colour);
        }
        Shape::Tail => {
            canvas.line((at, y), (high, y), INK, 1);
            canvas.rect((low - 4, y - 4), (low + 4, y + 4), colour);
            canvas.line((high - 5, y - 5), (high + 5, y + 5), INK, 2);
            canvas.line((high - 5, y + 5), (high + 5, y - 5), INK, 2);
            canvas.dot((at, y), 5, colour);
        }
    }
    let mut end = at.max(high).max(low);
    for limit in &item.limits {
        let x = scale.pixel(limit.figure());
        let arm = match limit {
            Limit::AtMost(_) => x - 5,
            Limit::AtLeast(_) => x + 5,
        };
        let bracket = [(arm, y - 8), (x, y - 8), (x, y + 8), (arm, y + 8)];
        canvas.path(&bracket, INK, 2, "");
        end = end.max(x);
    }
    match shape {
        // The text would be on the line at the centre.
        Shape::Dot(centre) => {
            let centre = scale.pixel(centre);
            let text = end + 8..end + 12 + width(&item.text, SIZE);
            if text.contains(&centre) {
                centre
            } else {
                end
            }
        }
        _ => end,
    }
}

/// The line of an interval, with its ends.
fn interval(canvas: &mut Canvas, (low, y): At, high: i32) {
    canvas.line((low, y), (high, y), INK, 1);
    canvas.line((low, y - 4), (low, y + 4), INK, 1);
    canvas.line((high, y - 4), (high, y + 4), INK, 1);
}

fn vertical(canvas: &mut Canvas, x: i32, top: i32, end: i32) {
    canvas.line((x, top - 2), (x, end + 2), INK, 1);
}

/// The grid of a horizontal axis between `top` and `end`, the figures below it, and the unit below these.
pub(super) fn axis(
    canvas: &mut Canvas,
    scale: &Scale,
    (top, end): (i32, i32),
    (left, right): (i32, i32),
    unit: &str,
) {
    // Labels that would touch their neighbours are left out.
    let mut free = i32::MIN;
    for tick in scale.ticks() {
        let (x, text) = (scale.pixel(tick), figure(tick));
        canvas.line((x, top - 2), (x, end + 4), GRID, 1);
        let half = width(&text, 11) / 2 + 3;
        if x - half >= free {
            canvas.text((x, end + 13), Anchor::Middle, 11, &text);
            free = x + half;
        }
    }
    let unit = format!("{unit}{}", scale.remark());
    canvas.text(((left + right) / 2, end + 31), Anchor::Middle, 11, &unit);
}
