use super::*;
use crate::pages::Pages;
use crate::{bounds, pages};
use canvas::width;
use std::collections::BTreeMap;
use std::path::Path;

type Attributes = BTreeMap<String, String>;

/// The elements of a document with their attributes and the text directly behind them; panics unless it is well formed.
fn elements(svg: &str) -> Vec<(String, Attributes, String)> {
    let mut open: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("an end of each tag");
        assert!(!text.contains('>'), "{text}");
        for reference in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|name| reference.starts_with(name)));
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {svg}");
            continue;
        }
        let empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let quoted: Vec<&str> = rest.split('"').collect();
        assert!(quoted.len() % 2 == 1 && quoted.last().unwrap().is_empty() || rest.is_empty());
        let pair = |pair: &[&str]| {
            let attribute = pair[0].trim().strip_suffix('=').expect("a value of each attribute");
            (attribute.to_string(), pair[1].to_string())
        };
        let attributes: Attributes = quoted.chunks_exact(2).map(pair).collect();
        if !empty {
            open.push(name);
        }
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        all.push((name.into(), attributes, text.replace("&amp;", "&")));
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    all
}

/// The texts of a plot, after checks that it is well formed, has a title and keeps within its view box.
fn texts(svg: &str) -> Vec<String> {
    let all = elements(svg);
    let (name, root, _) = &all[0];
    assert!(name == "svg" && root["role"] == "img" && all[1].0 == "title" && !all[1].2.is_empty());
    let (right, bottom) = (WIDTH, root["height"].parse::<i32>().unwrap());
    assert_eq!(root["viewBox"], format!("0 0 {right} {bottom}"));
    for (name, attributes, text) in &all[2..] {
        let get = |name: &str| attributes[name].parse::<i32>().unwrap();
        let points: Vec<(i32, i32)> = match name.as_str() {
            "rect" => {
                let (x, y) = (get("x"), get("y"));
                vec![(x, y), (x + get("width"), y + get("height"))]
            }
            "line" => vec![(get("x1"), get("y1")), (get("x2"), get("y2"))],
            "circle" => {
                let (x, y, r) = (get("cx"), get("cy"), get("r"));
                vec![(x - r, y - r), (x + r, y + r)]
            }
            "polyline" => {
                let pair = |point: &str| {
                    let (x, y) = point.split_once(',').unwrap();
                    (x.parse().unwrap(), y.parse().unwrap())
                };
                attributes["points"].split(' ').map(pair).collect()
            }
            "text" => {
                let (x, y, size) = (get("x"), get("y"), get("font-size"));
                let long = width(text, size);
                let left = match attributes["text-anchor"].as_str() {
                    "start" => x,
                    "middle" => x - long / 2,
                    _ => x - long,
                };
                vec![(left, y - size), (left + long, y + 3)]
            }
            other => panic!("unexpected element {other}"),
        };
        for (x, y) in points {
            let within = (0..=right).contains(&x) && (0..=bottom).contains(&y);
            assert!(within, "{name} {attributes:?} {text} at {x},{y} of {right},{bottom}");
        }
    }
    all.into_iter().filter(|(name, ..)| name == "text").map(|(.., text)| text).collect()
}

fn plots(text: &str) -> Vec<Plot> {
    let pages: Pages = toml::from_str(&format!(
        "[table.t]\ntitle = 't'\nexplanation = 'e'\n{}",
        text.replace("[plot]", "[[table.t.plot]]")
    ))
    .unwrap();
    pages.table.into_values().flat_map(|description| description.plot).collect()
}

fn table(rows: Vec<Row>) -> Table {
    Table { rows, ..Table::new("t", "t", "e", "c") }
}

fn row(group: &str, name: &str, unit: &str, samples: &[f64]) -> Row {
    Row::from_samples(name, unit, samples).unwrap().group(group)
}

fn drawn(rows: Vec<Row>, plot: &str, bounds: &str) -> (String, Vec<String>) {
    let bounds = if bounds.is_empty() { Vec::new() } else { bounds::parse(bounds).unwrap() };
    let svg = svg(&table(rows), "A < b & \"c\"", &plots(plot), &bounds);
    let texts = texts(&svg);
    (svg, texts)
}

#[track_caller]
fn has(texts: &[String], expected: &[&str]) {
    for text in expected {
        assert!(texts.iter().any(|other| other == text), "no `{text}` in {texts:?}");
    }
}

#[test]
fn unchosen_tables_have_bars_for_each_unit() {
    let long = "long ".repeat(50);
    let rows = vec![
        row("g", "a < b & c", "us", &[0.0, 0.0, 3.0]),
        row("g", "difference", "us", &[-5.0]),
        row("h", &long, "instructions", &[2_245_297_702.0]),
    ];
    let (_, texts) = drawn(rows, "", "");
    has(&texts, &["A < b & \"c\"", "us", "a < b & c", "difference", "-5", "2245 M"]);
    assert!(texts.iter().any(|text| text.starts_with("long long") && text.ends_with('…')));
}

#[test]
fn ratios_show_one_and_their_bounds() {
    let rows = vec![row("g", "vm : threads", "ratio", &[0.9, 0.95, 1.1])];
    let bound = "[[bound]]\nrow = 'g/vm : threads'\nat_most = 1.3\nat_least = 0.5\nwhy = 'w'";
    let plot = "[plot]\nkind = 'ratios'\ntitle = 'Heading'\nunit = 'ratio'\n";
    let (with, texts) = drawn(rows.clone(), plot, bound);
    has(&texts, &["Heading", "vm : threads", "0.95"]);
    let (without, _) = drawn(rows, plot, "");
    let count = |svg: &str| svg.matches("<polyline").count();
    assert_eq!((count(&with), count(&without)), (2, 0));
}

#[test]
fn per_cent_are_of_the_base() {
    let rows = vec![
        row("6.12", "work, bare", "instructions", &[1000.0]),
        row("6.12", "work, guest", "instructions", &[1020.0, 1030.0, 1040.0]),
        row("6.1", "without a base, guest", "instructions", &[1.0]),
    ];
    let plot =
        "[plot]\nkind = 'percent'\ntitle = 'Heading'\nunit = 'instructions'\nbase = 'bare'\n";
    let bound =
        "[[bound]]\nratio = ['6.12/work, guest', '6.12/work, bare']\nat_most = 1.02\nwhy = 'w'";
    let (svg, texts) = drawn(rows, plot, bound);
    has(&texts, &["6.12: work, bare", "base", "6.12: work, guest", "+3.000 %"]);
    assert_eq!(svg.matches("<polyline").count(), 1);
}

#[test]
fn bars_have_parts() {
    let rows = vec![
        row("alone", "to", "instructions", &[71.0]),
        row("none", "to", "instructions", &[357.0]),
        row("none", "Linux", "instructions", &[265.0]),
    ];
    let plot = "[plot]\nkind = 'stack'\ntitle = 'Heading'\nunit = 'instructions'\nparts = [\
        { name = 'entry', colour = 'linux', plus = ['Linux'] },\
        { name = 'Kyozon', colour = 'kyozon', plus = ['to'], minus = ['Linux'] }]\n";
    let (_, texts) = drawn(rows, plot, "");
    has(&texts, &["entry", "Kyozon", "alone", "71", "none", "265", "92", "357", "instructions"]);
}

#[test]
fn lines_are_over_sizes() {
    let at = |group: &str, figure: f64| row(group, "vm", "us", &[1.0]).extra("MB_per_s", figure);
    let rows = vec![
        at("ring, 64 B", 100.0),
        at("ring, 1 KiB", 9000.0),
        at("copy, 1 MiB", 8990.0),
        at("wake-up, asleep", 1.0),
    ];
    let plot = "[plot]\nkind = 'lines'\ntitle = 'Heading'\nunit = 'us'\nvalue = 'MB_per_s'\n";
    let (svg, texts) = drawn(rows, plot, "");
    has(&texts, &["64 B", "1 KiB", "1 MiB", "ring, vm", "copy, vm", "MB per s"]);
    assert_eq!(svg.matches("<circle").count(), 3);
}

#[test]
fn distributions_are_curves_or_dots() {
    let samples: Vec<f64> = (1..=1000).map(f64::from).collect();
    let curve = row("g", "none", "us", &samples).distribution(&samples).unwrap();
    let rows = vec![curve, row("g", "vmm", "us", &samples)];
    let plot = "[plot]\nkind = 'distribution'\ntitle = 'Heading'\nunit = 'us'\n";
    let (svg, texts) = drawn(rows, plot, "");
    has(&texts, &["none", "vmm", "500.5 / 990 / 1000", "part of the samples"]);
    assert!(svg.contains("<polyline"));
}

#[test]
fn plots_of_this_repository_keep_within_their_view_boxes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/results");
    let files = pages(&dir).unwrap();
    for (name, svg) in files.iter().filter(|(name, _)| name.ends_with(".svg")) {
        println!("{name}");
        assert!(texts(svg).len() > 5);
    }
    assert_eq!(files, pages(&dir).unwrap());
}

#[test]
fn incomplete_choices_are_errors() {
    for (kind, expected) in [("percent", "base"), ("lines", "value"), ("stack", "parts")] {
        let text = format!("[plot]\nkind = '{kind}'\ntitle = 'Heading'\nunit = 'us'\n");
        let error = plots(&text)[0].validate().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
