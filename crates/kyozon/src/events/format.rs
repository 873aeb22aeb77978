//! The forms in which an event leaves this program.

use super::meaning::{confidence, kind, severity, techniques, Severity, ATTACK_VERSION};
use super::provenance::Modules;
use clap::ValueEnum;
use kyozon_abi::events::{EVENT_FINDING, EVENT_NOTE};
use kyozon_monitor::class::Class;
use kyozon_monitor::finding::Parts;
use serde_json::{json, Value};
use std::fmt::Write;

/// The name of the form of JSON objects. The number changes when a field changes its meaning or goes; a new field does
/// not change it.
const SCHEMA: &str = "kyozon.event/1";
/// RFC 5424: facility 10, security messages.
const FACILITY: u32 = 10;
/// RFC 5424 wants a private enterprise number behind names of one's own; this one is for whoever has none.
const STRUCTURE: &str = "kyozon@32473";

/// How events are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for people
    #[default]
    Text,
    /// A JSON object a line
    Json,
    /// A message of RFC 5424 a line
    Syslog,
    /// To the journal of systemd; nothing is printed
    Journal,
}

/// Where events come from.
#[derive(Debug, Default)]
pub struct Origin {
    pub host: String,
    /// Linux's identifier of its boot.
    pub boot_id: String,
    /// Time-stamp counter at the load.
    pub loaded_tsc: u64,
    /// The modules of that kernel; `None` of an image.
    pub modules: Option<Modules>,
}

/// What a reader of the ring is told.
#[derive(Clone, Debug)]
pub enum Line {
    Event(Event),
    /// That many records were overwritten before they were read.
    Lost(u64),
    Unloaded,
}

/// When an event was.
#[derive(Clone, Debug)]
pub enum When {
    /// RFC 3339, UTC, and the time until now.
    Utc { time: String, age_ms: u64 },
    /// The time of an event in an image of memory.
    SinceLoad { ms: u64 },
}

/// An event of the ring.
#[derive(Clone, Debug)]
pub struct Event {
    /// Number of its first record.
    pub sequence: u64,
    /// `EVENT_*`.
    pub kind: u32,
    /// Time-stamp counter.
    pub tsc: u64,
    pub tick: u64,
    /// What it is about, if that is a finding.
    pub class: Option<Class>,
    /// Which check, which vector.
    pub code: u32,
    pub when: When,
    /// Printable ASCII.
    pub text: String,
    /// The number of the finding that it is about, if it is none itself.
    pub finding: Option<u64>,
}

impl Format {
    /// A line with its end, or, for the journal, a message.
    pub fn line(self, origin: &Origin, line: &Line) -> String {
        match self {
            Self::Text => text(line),
            Self::Json => format!("{}\n", json_object(origin, line)),
            Self::Syslog => syslog(origin, line),
            Self::Journal => journal(origin, line),
        }
    }
}

impl Line {
    fn kind(&self) -> String {
        match self {
            Self::Event(event) => kind(event.kind),
            Self::Lost(_) => "lost".into(),
            Self::Unloaded => "unloaded".into(),
        }
    }

    fn severity(&self) -> Severity {
        match self {
            Self::Event(event) => severity(event.kind, event.class),
            Self::Lost(_) => Severity::Warning,
            Self::Unloaded => Severity::Notice,
        }
    }

    fn time(&self) -> Option<&str> {
        match self {
            Self::Event(Event { when: When::Utc { time, .. }, .. }) => Some(time),
            _ => None,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Event(event) => event.text.clone(),
            Self::Lost(records) => {
                format!("{records} records lost: overwritten before they were read")
            }
            Self::Unloaded => "the cokernel was unloaded".into(),
        }
    }

    /// Names and values of what systems may search for; values are printable ASCII.
    fn fields(&self, origin: &Origin) -> Vec<(&'static str, String)> {
        let mut fields = vec![("kind", self.kind())];
        if let Self::Event(event) = self {
            fields.push(("id", id(origin, event.sequence)));
            if let Some(finding) = event.finding {
                fields.push(("finding", id(origin, finding)));
            }
            if let Some(class) = event.class {
                fields.push(("class", class.name().into()));
                fields.push(("attack", techniques(class).join(",")));
            }
        }
        fields
    }
}

/// The same for the same event, whenever and by whomever it is read.
fn id(origin: &Origin, sequence: u64) -> String {
    format!("{}-{}-{sequence}", origin.boot_id, origin.loaded_tsc)
}

fn text(line: &Line) -> String {
    let Line::Event(event) = line else { return format!("-- {}\n", line.message()) };
    let word = match event.kind {
        EVENT_NOTE => "note".into(),
        known => kind(known).to_uppercase(),
    };
    let time = match &event.when {
        When::Utc { time, .. } => time.clone(),
        When::SinceLoad { ms } => format!("{:7}.{:03} s", ms / 1000, ms % 1000),
    };
    format!("{time} {word:7} {}\n", event.text)
}

fn json_object(origin: &Origin, line: &Line) -> Value {
    let mut object = json!({
        "schema": SCHEMA,
        "host": origin.host,
        "boot_id": origin.boot_id,
        "kind": line.kind(),
        "severity": line.severity().name(),
    });
    match line {
        Line::Event(event) => {
            object["id"] = json!(id(origin, event.sequence));
            object["sequence"] = json!(event.sequence);
            object["tsc"] = json!(event.tsc);
            object["tick"] = json!(event.tick);
            match &event.when {
                When::Utc { time, age_ms } => {
                    object["time"] = json!(time);
                    object["age_ms"] = json!(age_ms);
                }
                When::SinceLoad { ms } => object["since_load_ms"] = json!(ms),
            }
            object["code"] = json!(event.code);
            object["text"] = json!(event.text);
            let parts = (event.kind == EVENT_FINDING).then(|| Parts::of(&event.text)).flatten();
            if let Some(parts) = parts {
                object["what"] = json!(parts.what);
                object["object"] = json!(parts.object);
                object["address"] = json!(parts.address.map(|address| format!("{address:#x}")));
                object["expected"] = json!(parts.expected);
                object["found"] = json!(parts.found);
                object["owner"] = json!(parts.owner);
                let module = origin.modules.as_ref().zip(parts.owner);
                let known = module.and_then(|(modules, owner)| modules.provenance(owner));
                if let Some(known) = known {
                    object["module"] = known;
                }
            }
            if let Some(finding) = event.finding {
                object["finding"] = json!(id(origin, finding));
            }
            if let Some(class) = event.class {
                object["class"] = json!(class.name());
                if event.kind == EVENT_FINDING {
                    object["confidence"] = json!(confidence(class));
                }
                object["attack"] =
                    json!({ "version": ATTACK_VERSION, "techniques": techniques(class) });
            }
        }
        Line::Lost(records) => object["records"] = json!(records),
        Line::Unloaded => {}
    }
    object
}

fn syslog(origin: &Origin, line: &Line) -> String {
    let priority = 8 * FACILITY + line.severity() as u32;
    let time = line.time().unwrap_or("-");
    let host = if origin.host.is_empty() { "-" } else { &origin.host };
    let mut structure = String::new();
    for (name, value) in line.fields(origin) {
        let escaped: String = value
            .chars()
            .flat_map(|c| matches!(c, '"' | '\\' | ']').then_some('\\').into_iter().chain([c]))
            .collect();
        write!(structure, " {name}=\"{escaped}\"").expect("a string takes all");
    }
    let message = line.message();
    format!("<{priority}>1 {time} {host} kyozon - - [{STRUCTURE}{structure}] {message}\n")
}

/// A message of the journal's native protocol: fields, one a line.
fn journal(origin: &Origin, line: &Line) -> String {
    let mut message = format!(
        "MESSAGE={}\nPRIORITY={}\nSYSLOG_IDENTIFIER=kyozon\n",
        line.message(),
        line.severity() as u32
    );
    for (name, value) in line.fields(origin) {
        writeln!(message, "KYOZON_{}={value}", name.to_uppercase()).expect("a string takes all");
    }
    if let Some(time) = line.time() {
        writeln!(message, "KYOZON_TIME={time}").expect("a string takes all");
    }
    message
}
