//! The pages: a summary of all tables, and one page a table.

use crate::bounds;
use crate::error::Result;
use crate::file;
use crate::pages::{Entry, Measured, Pages};
use crate::plot;
use crate::row::Row;
use crate::table::Table;
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum columns of a table on a page, so that it fits a screen.
const COLUMNS: usize = 8;
/// Length of a line of running text.
const WIDTH: usize = 120;

/// Writes `README.md`, and a page `<name>.md` and a plot `<name>.svg` for each table, from every `*.json` of `dir` and
/// its `pages.toml`. The same files give the same bytes.
///
/// # Errors
///
/// A table, its bounds or `pages.toml` is invalid, and the old pages stay; or a file cannot be written.
pub fn render(dir: &Path) -> Result<()> {
    for (name, text) in pages(dir)? {
        file::write(dir, &name, &text)?;
    }
    Ok(())
}

/// Name and text of each file that [`render`] writes.
///
/// # Errors
///
/// A table, its bounds or `pages.toml` is invalid.
pub fn pages(dir: &Path) -> Result<Vec<(String, String)>> {
    let pages = Pages::read(dir)?;
    let tables = Table::read_all(dir)?;
    let mut files = Vec::new();
    for table in &tables {
        let (title, _) = words(table, &pages);
        let plots = pages.table.get(&table.name).map_or(&[][..], |description| &description.plot);
        let bounds = bounds::read(dir, &table.name)?;
        files.push((format!("{}.svg", table.name), plot::svg(table, title, plots, &bounds)));
        files.push((format!("{}.md", table.name), page(table, &pages)));
    }
    files.push(("README.md".into(), front(&tables, &pages)));
    Ok(files)
}

/// The first page: the questions with their answers, then links to the tables.
fn front(tables: &[Table], pages: &Pages) -> String {
    let mut page = String::from("# Results\n\n");
    page += &wrap(
        "Figures are medians; each table's page has the intervals. A ratio is this project's figure divided by the \
         peer's. `make bench` writes this page from the JSON files and `pages.toml` beside it.",
        "",
    );
    let mut questions: Vec<&str> = Vec::new();
    for Entry { question, .. } in &pages.summary {
        if !questions.contains(&question.as_str()) {
            questions.push(question);
        }
    }
    for question in questions {
        page += &format!("\n## {question}\n\n");
        page += "| what | this project | best peer, or the paper | ratio | plot |\n";
        page += "| --- | ---: | --- | ---: | --- |\n";
        let entries = pages.summary.iter().filter(|entry| entry.question == question);
        entries.for_each(|entry| page += &summary(entry, tables));
    }
    if !pages.notes.is_empty() {
        page += "\n## Peers\n\n";
        pages.notes.iter().for_each(|note| page += &wrap(note, "- "));
    }
    page += "\n## Tables\n\n";
    if tables.is_empty() {
        return page + "No table was measured yet.\n";
    }
    page += "| table | what is measured | date | machine |\n| --- | --- | --- | --- |\n";
    for table in tables {
        let Table { name, date, machine, .. } = table;
        let (title, _) = words(table, pages);
        let day = date.split('T').next().unwrap_or_default();
        page += &line([&format!("[{name}]({name}.md)"), title, day, machine]);
    }
    page
}

/// A line of the summary.
fn summary(entry: &Entry, tables: &[Table]) -> String {
    let cell = |measured: Measured<'_>| match measured {
        Some((figure, unit)) => format!("{} {unit}", digits(figure, 3)),
        None => "not measured".into(),
    };
    let ours = entry.ours.of(tables);
    let unit = ours.map_or("", |(_, unit)| unit);
    let peer = entry.peer.as_ref().map(|peer| (peer, peer.of(unit, tables)));
    let ratio = match (&entry.ratio, ours, peer.as_ref().and_then(|(_, measured)| *measured)) {
        (Some(ratio), ..) => ratio.of(tables).map(|(ratio, _)| ratio),
        (None, Some((ours, _)), Some((peer, _))) => Some(ours / peer),
        _ => None,
    };
    let peer = peer.map(|(peer, measured)| format!("{}: {}", peer.name, cell(measured)));
    let plot = format!("[plot]({}.svg)", entry.ours.table);
    let ratio = ratio.map(|ratio| digits(ratio, 3));
    line([&entry.what, &cell(ours), &peer.unwrap_or_default(), &ratio.unwrap_or_default(), &plot])
}

/// Heading and explanation of a table: those of `pages.toml`, or else its own.
fn words<'a>(table: &'a Table, pages: &'a Pages) -> (&'a str, String) {
    match pages.table.get(&table.name) {
        Some(description) => (&description.title, description.explanation()),
        None => (&table.title, table.explanation.clone()),
    }
}

/// The page of one table.
fn page(table: &Table, pages: &Pages) -> String {
    let Table { name, command, commit, date, load, machine, .. } = table;
    let (title, explanation) = words(table, pages);
    let versions = table.versions.iter().map(|(tool, version)| format!(", {tool} {version}"));
    let versions: String = versions.collect();
    let shown = pages.table.get(name).map_or(&[][..], |description| &description.columns);
    let (rows, absent) = rows(&table.rows, shown);
    let absent = format!("[{name}.json]({name}.json) also has {}.", absent.join(", "));
    let notes = table.rows.iter().filter_map(|row| Some((row.label(), row.note.as_ref()?)));
    let mut notes: String =
        notes.map(|(row, note)| wrap(&format!("`{row}`: {note}"), "- ")).collect();
    if !notes.is_empty() {
        notes.insert(0, '\n');
    }
    format!(
        "# {title}\n\n{explanation}\n{rows}\n{interval}{notes}\n![{title}]({name}.svg)\n\n\
         - Command: `{command}`\n\
         - Commit: `{commit}`{versions}\n\
         - Date: {date}\n\
         - Machine: {machine}, load {start} at the start and {end} at the end\n\n\
         [All results](README.md)\n",
        explanation = wrap(&explanation, ""),
        interval = wrap(
            &format!(
                "An interval is the 95 % confidence interval of the median, by order statistics; n counts samples, \
                 unless it names something else. {absent}"
            ),
            ""
        ),
        start = load.start,
        end = load.end,
    )
}

/// A column of the table: heading, whether it is aligned as a number, and the cell of a row.
type Column<'a> = (&'a str, bool, Box<dyn Fn(&Row) -> String + 'a>);

/// Rows as a table: at most [`COLUMNS`] columns, none that no row uses. `shown` are extra columns; if there are too
/// many columns, `worst`, `n` and `p99` make room for them. Also returns the names of the columns that are not in the
/// table.
fn rows<'a>(rows: &'a [Row], shown: &'a [String]) -> (String, Vec<String>) {
    let mut columns: Vec<Column<'_>> = vec![
        ("group", false, Box::new(|row| row.group.clone().unwrap_or_default())),
        ("row", false, Box::new(|row| row.name.clone())),
        ("unit", false, Box::new(|row| row.unit.clone())),
        (
            "n",
            true,
            Box::new(|row| match &row.n_of {
                Some(what) => format!("{} {what}", row.n),
                None => row.n.to_string(),
            }),
        ),
        ("median", true, Box::new(|row| number(row.median))),
        ("interval", true, Box::new(|row| row.ci95.map(number).join(" to "))),
        ("p99", true, Box::new(|row| row.p99.map(number).unwrap_or_default())),
        ("worst", true, Box::new(|row| number(row.worst))),
    ];
    for column in shown {
        let cell = |row: &Row| row.extra.get(column).copied().map(number).unwrap_or_default();
        columns.push((column, true, Box::new(cell)));
    }
    columns.retain(|(_, _, cell)| rows.iter().any(|row| !cell(row).is_empty()));
    let mut absent = vec!["avg".to_owned()];
    for dropped in ["worst", "n", "p99"] {
        if columns.len() > COLUMNS {
            columns.retain(|(heading, ..)| *heading != dropped);
            absent.push(dropped.into());
        }
    }
    let extra: BTreeSet<&String> = rows.iter().flat_map(|row| row.extra.keys()).collect();
    // Older tables repeat the interval's ends.
    let kept = |name: &&String| !shown.contains(*name) && !["low", "high"].contains(&name.as_str());
    absent.extend(extra.into_iter().filter(kept).cloned());

    let mut text = line(columns.iter().map(|column| column.0));
    text += &line(columns.iter().map(|column| if column.1 { "---:" } else { "---" }));
    for row in rows {
        text += &line(columns.iter().map(|(_, _, cell)| cell(row)));
    }
    let absent = absent.iter().map(|name| format!("`{name}`")).collect();
    (text, absent)
}

/// A line of a table.
fn line(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let cells = cells.into_iter().map(|cell| cell.as_ref().replace('|', "\\|"));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// A paragraph in lines of at most [`WIDTH`] columns, if its words allow, the first of them after `mark`.
fn wrap(text: &str, mark: &str) -> String {
    let mut lines = mark.to_owned();
    let mut width = mark.len();
    for (i, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if i > 0 && width + 1 + length > WIDTH {
            lines += &format!("\n{:1$}", "", mark.len());
            width = mark.len();
        } else if i > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += word;
        width += length;
    }
    lines + "\n"
}

/// Integers in full, other numbers to four significant digits.
pub(crate) fn number(value: f64) -> String {
    digits(value, 4)
}

/// Integers in full, other numbers to `significant` digits.
pub(crate) fn digits(value: f64, significant: u32) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let magnitude = value.abs().log10().floor();
    if magnitude < -4.0 {
        return format!("{value:.*e}", significant as usize - 1);
    }
    // Magnitudes are small: an f64 above 2^53 has no fraction.
    let text = format!("{value:.*}", (f64::from(significant - 1) - magnitude).max(0.0) as usize);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').into();
    }
    text
}

#[cfg(test)]
mod tests;
