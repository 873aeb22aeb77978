//! The plot of a table: a bar for each median, with its confidence interval and its 99th percentile.

use crate::error::{Error, Result};
use crate::render::number;
use crate::row::Row;
use crate::scale::Scale;
use crate::table::Table;
use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

// All in pixels. No font is available for measuring: a character of size 13 counts as 8 wide.
const WIDTH: i32 = 860;
const TITLE: i32 = 60;
const HEADING: i32 = 30;
const BAR: i32 = 26;
const AXIS: i32 = 36;
const CHARACTER: i32 = 8;
/// Space for the median beside the longest whisker.
const FIGURE: i32 = 110;
/// Maximum length of a label in characters; longer ones are cut.
const LABEL: usize = 40;
const COLOURS: [RGBColor; 6] = [
    RGBColor(158, 188, 218),
    RGBColor(253, 190, 133),
    RGBColor(161, 217, 155),
    RGBColor(188, 189, 220),
    RGBColor(252, 174, 145),
    RGBColor(200, 200, 200),
];

/// The plot of a table: one panel for each unit, in the order in which the units appear, and one colour for each group.
///
/// # Errors
///
/// The drawing library fails; a valid table does not cause that.
pub(crate) fn svg(table: &Table) -> Result<String> {
    let mut units: Vec<&str> = Vec::new();
    let mut groups: Vec<&Option<String>> = Vec::new();
    for row in &table.rows {
        if !units.contains(&row.unit.as_str()) {
            units.push(&row.unit);
        }
        if !groups.contains(&&row.group) {
            groups.push(&row.group);
        }
    }
    let height = TITLE + units.len() as i32 * (HEADING + AXIS) + table.rows.len() as i32 * BAR;
    let labels = table.rows.iter().map(|row| label(row).chars().count());
    let left = labels.max().unwrap_or(0) as i32 * CHARACTER + 20;

    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH as u32, height as u32));
        let area = area.into_drawing_area();
        area.fill(&WHITE)?;
        write(&area, &table.title, (10, 20), HPos::Left, 18)?;
        let key = "bar: median, |—|: its 95 % confidence interval, · · ·|: p99";
        write(&area, key, (10, 44), HPos::Left, 12)?;
        let mut top = TITLE;
        for unit in units {
            let rows: Vec<&Row> = table.rows.iter().filter(|row| row.unit == unit).collect();
            let colour = |row: &Row| {
                let group = groups.iter().position(|group| **group == row.group);
                COLOURS[group.unwrap_or(0) % COLOURS.len()]
            };
            top = panel(&area, &rows, unit, (left, top), colour)?;
        }
        area.present()?;
    }
    Ok(text)
}

/// Draws the rows of one unit below and right of `corner`, and returns where the next panel starts.
fn panel(
    area: &Area<'_>,
    rows: &[&Row],
    unit: &str,
    (left, top): (i32, i32),
    colour: impl Fn(&Row) -> RGBColor,
) -> Result<i32> {
    let scale = Scale::of(rows, left, WIDTH - FIGURE);
    let kind = if scale.log { ", logarithmic" } else { "" };
    write(area, &format!("{unit}{kind}"), (left, top + HEADING / 2), HPos::Left, 13)?;
    let first = top + HEADING;
    let end = first + rows.len() as i32 * BAR;
    for tick in scale.ticks() {
        let x = scale.pixel(tick);
        line(area, (x, first), (x, end + 4), RGBColor(210, 210, 210))?;
        write(area, &short(tick), (x, end + 14), HPos::Center, 12)?;
    }
    for (i, row) in rows.iter().enumerate() {
        let y = first + i as i32 * BAR + BAR / 2;
        let bar = [(scale.pixel(scale.base()), y - 9), (scale.pixel(row.median), y + 9)];
        area.draw(&Rectangle::new(bar, colour(row).filled()))?;
        let [low, high] = row.ci95.map(|figure| scale.pixel(figure));
        line(area, (low, y), (high, y), BLACK)?;
        line(area, (low, y - 5), (low, y + 5), BLACK)?;
        line(area, (high, y - 5), (high, y + 5), BLACK)?;
        let p99 = row.p99.map_or(high, |p99| scale.pixel(p99));
        for x in (high..p99).step_by(6) {
            line(area, (x, y), ((x + 2).min(p99), y), BLACK)?;
        }
        line(area, (p99, y - 5), (p99, y + 5), BLACK)?;
        write(area, &label(row), (left - 8, y), HPos::Right, 13)?;
        let right = scale.pixel(row.median).max(high).max(p99).max(scale.pixel(scale.base()));
        write(area, &number(row.median), (right + 6, y), HPos::Left, 12)?;
    }
    Ok(end + AXIS)
}

impl From<DrawingAreaErrorKind<std::io::Error>> for Error {
    fn from(error: DrawingAreaErrorKind<std::io::Error>) -> Self {
        Self::Plot(error.to_string())
    }
}

fn label(row: &Row) -> String {
    let label = row.label();
    match label.char_indices().nth(LABEL) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label,
    }
}

/// The label of a tick, short because its neighbours leave space for about eight characters.
fn short(tick: f64) -> String {
    if tick.abs() >= 1e6 {
        return format!("{:e}", tick.round());
    }
    number(tick)
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), side: HPos, size: i32) -> Result<()> {
    let style = ("sans-serif", size).into_text_style(area).pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
}

fn line(area: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<()> {
    Ok(area.draw(&PathElement::new([from, to], colour.stroke_width(1)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::example;

    fn row(name: &str, unit: &str, samples: &[f64]) -> Row {
        Row::from_samples(name, unit, samples).unwrap()
    }

    #[test]
    fn plots_are_well_formed() {
        let table = example()
            .row(row("a < b & c", "us", &[0.0, 0.0, 3.0]))
            .row(row("difference", "us", &[-5.0]))
            .row(row(&"long ".repeat(50), "ratio", &[2.75]));
        let svg = svg(&table).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.matches("<rect").count() > table.rows.len());
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("long …"));
        assert_eq!([2e9, 1.5e6, 5e5].map(short), ["2e9", "1.5e6", "500000"]);
        assert!(svg.contains("instructions\n") && svg.contains("ratio\n"));
    }
}
