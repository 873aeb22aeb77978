//! A panel of bars that consist of parts, one for each group.

use super::canvas::{width, Anchor, Canvas, MARGIN, WIDTH};
use super::figure;
use super::rowwise::{axis, AXIS, ROW, SIZE};
use super::spec::{Part, Plot};
use crate::row::Row;
use crate::scale::Scale;

/// Draws a bar for each group of the rows below `top`, and returns where the axis ends.
pub(super) fn draw(canvas: &mut Canvas, top: i32, rows: &[&Row], plot: &Plot) -> i32 {
    let mut groups: Vec<&str> = Vec::new();
    for row in rows {
        let group = row.group.as_deref().unwrap_or_default();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let bar = |group: &str| plot.parts.iter().map(|part| part.of(group, rows)).collect();
    let bars: Vec<Vec<f64>> = groups.iter().map(|group| bar(group)).collect();
    let sums: Vec<f64> = bars.iter().map(|parts| parts.iter().sum()).collect();

    let labels = groups.iter().map(|group| width(group, SIZE)).max().unwrap_or(0);
    let texts = sums.iter().map(|sum| width(&figure(*sum), SIZE)).max().unwrap_or(0);
    let ends = (labels.max(40) + MARGIN + 10, WIDTH - MARGIN - texts.max(40) - 12);
    let scale = Scale::from_zero(&sums, ends);
    let first = key(canvas, top, &plot.parts);
    let end = first + groups.len() as i32 * ROW;
    axis(canvas, &scale, (first, end), ends, &plot.unit);
    for (i, (group, parts)) in groups.iter().zip(&bars).enumerate() {
        let y = first + i as i32 * ROW + ROW / 2;
        canvas.text((ends.0 - 10, y), Anchor::End, SIZE, group);
        let mut sum = 0.0;
        for (part, size) in plot.parts.iter().zip(parts) {
            let from = scale.pixel(sum);
            sum += size;
            let to = scale.pixel(sum);
            if to > from {
                canvas.rect((from, y - 8), (to - 1, y + 8), part.colour.colour());
            }
            let text = figure(*size);
            if width(&text, 11) < to - from - 2 {
                canvas.text(((from + to) / 2, y), Anchor::Middle, 11, &text);
            }
        }
        canvas.text((scale.pixel(sum) + 8, y), Anchor::Start, SIZE, &figure(sum));
    }
    end + AXIS
}

/// The names of the parts beside their colours, in as many lines as they need. Returns where the bars start.
fn key(canvas: &mut Canvas, top: i32, parts: &[Part]) -> i32 {
    let (mut x, mut y) = (MARGIN, top + 8);
    for part in parts {
        let next = x + 18 + width(&part.name, SIZE) + 18;
        if next > WIDTH && x > MARGIN {
            (x, y) = (MARGIN, y + ROW);
        }
        canvas.rect((x, y - 6), (x + 12, y + 6), part.colour.colour());
        canvas.text((x + 18, y), Anchor::Start, SIZE, &part.name);
        x += 18 + width(&part.name, SIZE) + 18;
    }
    y + 18
}

impl Part {
    /// The part's size in a group.
    fn of(&self, group: &str, rows: &[&Row]) -> f64 {
        let median = |name: &String| {
            let row = |row: &&&Row| row.name == *name && row.group.as_deref() == Some(group);
            rows.iter().find(row).map_or(0.0, |row| row.median)
        };
        let sum = |names: &[String]| names.iter().map(median).sum::<f64>();
        (sum(&self.plus) - sum(&self.minus)).max(0.0)
    }
}
