//! The page of all tables.

use crate::error::Result;
use crate::file;
use crate::plot;
use crate::row::Row;
use crate::table::Table;
use std::collections::BTreeSet;
use std::path::Path;

/// Writes `README.md` and a plot `<name>.svg` per table from every `*.json` of `dir`. The same
/// tables give the same bytes.
///
/// # Errors
///
/// As [`Table::read`], or the file system's. A table that is invalid leaves the old page.
pub fn render(dir: &Path) -> Result<()> {
    let tables = Table::read_all(dir)?;
    for table in &tables {
        file::write(dir, &format!("{}.svg", table.name), &plot::svg(table)?)?;
    }
    file::write(dir, "README.md", &page(&tables))?;
    Ok(())
}

fn page(tables: &[Table]) -> String {
    let mut page = String::from(
        "# Results\n\n\
         Written by `make bench` from the JSON files beside this page, not by hand. An interval is\n\
         the 95 % confidence interval of the median, by order statistics.\n",
    );
    if tables.is_empty() {
        page += "\nNo table was measured yet.\n";
    }
    for table in tables {
        page += &section(table);
    }
    page
}

fn section(table: &Table) -> String {
    let Table { name, title, explanation, command, commit, date, load, machine, .. } = table;
    let versions = table.versions.iter().map(|(tool, version)| format!(", {tool} {version}"));
    let versions: String = versions.collect();
    format!(
        "\n## {title}\n\n{explanation}\n\n{rows}\n![{title}]({name}.svg)\n\n\
         - Command: `{command}`\n\
         - Commit: `{commit}`{versions}\n\
         - Date: {date}\n\
         - Machine: {machine}, load {start} at the start and {end} at the end\n",
        rows = rows(&table.rows),
        start = load.start,
        end = load.end,
    )
}

/// A column of the table: heading, whether it is aligned as a number, and the cell of a row.
type Column<'a> = (&'a str, bool, Box<dyn Fn(&Row) -> String + 'a>);

/// Rows as a table, without the columns that no row uses.
fn rows(rows: &[Row]) -> String {
    let mut columns: Vec<Column<'_>> = vec![
        ("group", false, Box::new(|row| row.group.clone().unwrap_or_default())),
        ("row", false, Box::new(|row| row.name.clone())),
        ("unit", false, Box::new(|row| row.unit.clone())),
        ("n", true, Box::new(|row| row.n.to_string())),
        ("median", true, Box::new(|row| number(row.median))),
        ("interval", true, Box::new(|row| row.ci95.map(number).join(" to "))),
        ("p99", true, Box::new(|row| number(row.p99))),
        ("average", true, Box::new(|row| number(row.avg))),
        ("worst", true, Box::new(|row| number(row.worst))),
    ];
    let extra: BTreeSet<&String> = rows.iter().flat_map(|row| row.extra.keys()).collect();
    for column in extra {
        let cell = |row: &Row| row.extra.get(column).copied().map(number).unwrap_or_default();
        columns.push((column, true, Box::new(cell)));
    }
    columns.push(("note", false, Box::new(|row| row.note.clone().unwrap_or_default())));
    columns.retain(|(_, _, cell)| rows.iter().any(|row| !cell(row).is_empty()));

    let line = |cells: Vec<String>| {
        let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut text = line(columns.iter().map(|column| column.0.to_string()).collect());
    let rule = |column: &Column<'_>| if column.1 { "---:" } else { "---" }.to_string();
    text += &line(columns.iter().map(rule).collect());
    for row in rows {
        text += &line(columns.iter().map(|(_, _, cell)| cell(row)).collect());
    }
    text
}

/// Integers in full, other numbers to four significant digits.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let magnitude = value.abs().log10().floor();
    if magnitude < -4.0 {
        return format!("{value:.3e}");
    }
    // Magnitudes are small: an f64 above 2^53 has no fraction.
    let text = format!("{value:.*}", (3.0 - magnitude).max(0.0) as usize);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').into();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::example;
    use std::fs;

    #[test]
    fn golden() {
        let expected = "# Results

Written by `make bench` from the JSON files beside this page, not by hand. An interval is
the 95 % confidence interval of the median, by order statistics.

## Boot

From reset to main.

| group | row | unit | n | median | interval | p99 | average | worst | mmio | note |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| default | none | instructions | 3 | 182 | 180 to 190 | 190 | 184 | 190 | 2 | a\\|b |
|  | alone | instructions | 1 | 91 | 91 to 91 | 91 | 91 | 91 |  |  |

![Boot](boot.svg)

- Command: `make bench TABLE=boot`
- Commit: `0123abc`, qemu 7.2
- Date: 2024-12-31T23:59:59Z
- Machine: Some CPU, load 0.25 at the start and 1.5 at the end
";
        assert_eq!(page(&[example()]), expected);
    }

    #[test]
    fn unused_columns_are_absent() {
        let row = Row::from_samples("none", "us", &[1.5]).unwrap();
        assert!(rows(&[row])
            .starts_with("| row | unit | n | median | interval | p99 | average | worst |\n"));
    }

    #[test]
    fn same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
        render(dir.path()).unwrap();
        assert!(read("README.md").ends_with("\nNo table was measured yet.\n"));

        example().write(dir.path()).unwrap();
        render(dir.path()).unwrap();
        let first = (read("README.md"), read("boot.svg"));
        render(dir.path()).unwrap();
        assert_eq!(first, (read("README.md"), read("boot.svg")));

        fs::write(dir.path().join("bad.json"), "{}").unwrap();
        let error = render(dir.path()).unwrap_err().to_string();
        assert!(error.contains("bad.json: missing field"), "{error}");
        assert_eq!(first.0, read("README.md"));
    }

    #[test]
    fn numbers() {
        for (value, expected) in [
            (0.0, "0"),
            (-3.0, "-3"),
            (1234567.0, "1234567"),
            (1234567.25, "1234567"),
            (2.75, "2.75"),
            (99.999, "100"),
            (1234.5678, "1235"),
            (0.0123456, "0.01235"),
            (0.0000123, "1.230e-5"),
        ] {
            assert_eq!(number(value), expected);
        }
    }
}
