//! A writer of SVG: shapes and text in whole pixels, and an estimate of the width of text.

use std::fmt::Write;

/// Width of a plot.
pub(super) const WIDTH: i32 = 860;
/// Free space at the left and right edges.
pub(super) const MARGIN: i32 = 12;
/// Colour of text and of intervals.
pub(super) const INK: &str = "#222222";
/// Colour of the grid.
pub(super) const GRID: &str = "#dddddd";

/// A position: pixels from the left and from the top.
pub(super) type At = (i32, i32);

/// Which part of a text is at its position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shapes so far, in the order of drawing.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    /// The image: `height` pixels high, called `title` for readers who cannot see it.
    pub(super) fn finish(self, title: &str, height: i32) -> String {
        let title = escape(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>{title}</title>\n\
             <rect x=\"0\" y=\"0\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }

    /// One line of text, centred vertically at its position.
    pub(super) fn text(&mut self, (x, y): At, anchor: Anchor, size: i32, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        // The baseline is below the centre of the letters: `dominant-baseline` is not supported everywhere.
        let y = y + (size * 35 + 50) / 100;
        let text = escape(text);
        self.add(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{text}</text>"
        ));
    }

    /// A filled rectangle between two corners.
    pub(super) fn rect(&mut self, (x1, y1): At, (x2, y2): At, colour: &str) {
        let (x, y, width, height) = (x1.min(x2), y1.min(y2), (x2 - x1).abs(), (y2 - y1).abs());
        self.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"
        ));
    }

    /// A line of `width` pixels.
    pub(super) fn line(&mut self, (x1, y1): At, (x2, y2): At, colour: &str, width: i32) {
        self.add(format_args!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    /// A line through several points, dashed unless `dash` is empty.
    pub(super) fn path(&mut self, points: &[At], colour: &str, width: i32, dash: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let points = points.join(" ");
        let dash = match dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>"
        ));
    }

    /// A dot with a thin edge.
    pub(super) fn dot(&mut self, (x, y): At, radius: i32, colour: &str) {
        self.add(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\" stroke=\"{INK}\" stroke-width=\"1\"/>"
        ));
    }

    fn add(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{shape}");
    }
}

/// The text as XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Maximum width of a text in pixels. The font is the reader's: these are the widths of DejaVu Sans, a wide one.
pub(super) fn width(text: &str, size: i32) -> i32 {
    let hundredths = |letter: char| match letter {
        'i' | 'j' | 'l' | '\'' | '|' => 32,
        ' ' | ',' | '.' | ':' | ';' | '!' | '(' | ')' | '[' | ']' | '-' | '/' | 'f' | 't' | 'r' => {
            42
        }
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 102,
        'A'..='Z' | '+' | '=' | '<' | '>' => 84,
        letter if letter.is_ascii() => 65,
        _ => 102,
    };
    (text.chars().map(hundredths).sum::<i32>() * size + 99) / 100
}

/// The text, cut to `limit` pixels if it is longer.
pub(super) fn fit(text: &str, size: i32, limit: i32) -> String {
    if width(text, size) <= limit {
        return text.into();
    }
    let mut kept: String = text.into();
    while !kept.is_empty() && width(&kept, size) + width("…", size) > limit {
        kept.pop();
    }
    kept.truncate(kept.trim_end().len());
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fit("short", 12, 100), "short");
        let text = fit(&"long ".repeat(50), 12, 100);
        assert!(text.starts_with("long long") && text.ends_with('…'), "{text}");
        assert!(width(&text, 12) <= 100);
    }

    #[test]
    fn text_is_escaped() {
        let mut canvas = Canvas::default();
        canvas.text((10, 10), Anchor::Start, 12, "a < b & c");
        let svg = canvas.finish("\"t\"", 20);
        assert!(svg.contains(">a &lt; b &amp; c</text>") && svg.contains("&quot;t&quot;"), "{svg}");
    }
}
