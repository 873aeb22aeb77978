//! `kyozon top`: the status, the checks and the latest events in a terminal, live.

use crate::checks::Check;
use crate::colocation::{self, Snapshot};
use crate::events::{self, Format};
use crate::machine::Machine;
use crate::report;
use anyhow::{ensure, Result};
use kyozon_abi::events::CHECK_LEARNING;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use std::io::{stdout, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time from one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
const TITLES: [&str; 9] =
    ["CHECK", "STATE", "ITEMS", "PASS", "AGE", "CPU %", "FINDINGS", "OPEN", "NOT JUDGED"];
/// Columns of the table, in characters.
const WIDTHS: [u16; 9] = [12, 11, 10, 9, 8, 6, 8, 6, 10];

/// Shows the cokernel until a key ends it, or the cokernel is unloaded.
///
/// # Errors
///
/// Standard output is no terminal, or the status cannot be read.
pub fn run(machine: &mut impl Machine) -> Result<ExitCode> {
    let Some(first) = colocation::status(machine)? else {
        eprintln!("kyozon: nothing is loaded");
        return Ok(ExitCode::from(3));
    };
    ensure!(stdout().is_terminal(), "standard output is no terminal: use kyozon status");
    let mut terminal = ratatui::try_init()?;
    let result = show(machine, &mut terminal, first);
    ratatui::restore();
    if !result? {
        println!("the cokernel was unloaded");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns false if the cokernel was unloaded.
fn show(
    machine: &mut impl Machine,
    terminal: &mut DefaultTerminal,
    mut snapshot: Snapshot,
) -> Result<bool> {
    loop {
        let mut lines = Vec::new();
        events::print(machine, &mut lines, false, Format::Text)?;
        let lines = String::from_utf8_lossy(&lines);
        terminal.draw(|frame| draw(frame, &snapshot, &lines))?;
        let next = Instant::now() + PERIOD;
        while event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if ends(key) => return Ok(true),
                Event::Resize(..) => {
                    terminal.draw(|frame| draw(frame, &snapshot, &lines))?;
                }
                _ => {}
            }
        }
        match colocation::status(machine)? {
            Some(now) => snapshot = now,
            None => return Ok(false),
        }
    }
}

fn ends(key: KeyEvent) -> bool {
    let is_control_c =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && (is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

/// Draws `snapshot`, and as many of the last lines of `events` as there is room for.
fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, events: &str) {
    let is_blind = snapshot.monitor.as_ref().is_some_and(|monitor| monitor.is_blind());
    let head = report::head(snapshot);
    let areas = Layout::vertical([
        Constraint::Length(head.len() as u16),
        Constraint::Length(snapshot.checks.len() as u16 + 2),
        Constraint::Min(3),
    ]);
    let [status, checks, log] = areas.areas(frame.area());
    let style = if is_blind { Style::new().fg(Color::Red) } else { Style::new() };
    let head: Vec<Line<'_>> = head.into_iter().map(Line::raw).collect();
    frame.render_widget(Paragraph::new(head).style(style), status);
    let rows = snapshot.checks.iter().map(row);
    let table = Table::new(rows, WIDTHS.map(Constraint::Length))
        .header(Row::new(TITLES).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::new().borders(Borders::TOP));
    frame.render_widget(table, checks);
    let room = usize::from(log.height).saturating_sub(1);
    let all: Vec<&str> = events.lines().collect();
    let lines: Vec<Line<'_>> = all[all.len().saturating_sub(room)..].iter().map(colored).collect();
    let block = Block::new().borders(Borders::TOP).title(" events; q ends ");
    frame.render_widget(Paragraph::new(lines).block(block), log);
}

fn row(check: &Check) -> Row<'static> {
    let counts = &check.counts;
    let state = match counts.state {
        CHECK_LEARNING => format!("learns {} %", check.learned_percent()),
        _ => "watches".into(),
    };
    let seconds = |ns: u64| format!("{:.2} s", ns as f64 / 1e9);
    let cells = [
        check.name.clone(),
        state,
        counts.items.to_string(),
        if counts.passes > 0 { seconds(check.wall_ns) } else { "-".into() },
        check.age_ns.map_or("-".into(), seconds),
        format!("{:.2}", check.cpu_percent),
        counts.findings.to_string(),
        counts.open.to_string(),
        counts.unjudged.to_string(),
    ];
    let style = if counts.open > 0 { Style::new().fg(Color::Red) } else { Style::new() };
    Row::new(cells.map(Cell::from)).style(style)
}

/// A line of `kyozon events`, by its kind.
fn colored<'l>(line: &&'l str) -> Line<'l> {
    let color = match line.split_whitespace().nth(1) {
        Some("FINDING" | "WALL" | "FAULT" | "RESTART") => Color::Red,
        Some("REPAIR") => Color::Green,
        _ => return Line::raw(*line),
    };
    Line::styled(*line, Style::new().fg(color))
}

#[cfg(test)]
mod tests;
