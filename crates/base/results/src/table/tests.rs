use super::*;

/// A table of two rows, one of them in a group, with fixed origin.
pub(crate) fn example() -> Table {
    let first = Row::from_samples("none", "instructions", &[180u64, 182, 190]).unwrap();
    let alone = Row::from_samples("alone", "instructions", &[91u64]).unwrap();
    Table {
        commit: "0123abc".into(),
        date: "2024-12-31T23:59:59Z".into(),
        load: Load { start: 0.25, end: 1.5 },
        machine: "Some CPU".into(),
        ..Table::new("boot", "Boot", "From reset to main.", "make bench TABLE=boot")
    }
    .version("qemu", "7.2")
    .row(first.group("default").note("a|b").extra("mmio", 2.0))
    .row(alone)
}

#[test]
fn golden_json() {
    let expected = r#"{
  "name": "boot",
  "title": "Boot",
  "explanation": "From reset to main.",
  "command": "make bench TABLE=boot",
  "commit": "0123abc",
  "versions": {
    "qemu": "7.2"
  },
  "date": "2024-12-31T23:59:59Z",
  "load": {
    "start": 0.25,
    "end": 1.5
  },
  "machine": "Some CPU",
  "rows": [
    {
      "name": "none",
      "group": "default",
      "unit": "instructions",
      "n": 3,
      "median": 182.0,
      "ci95": [
        180.0,
        190.0
      ],
      "avg": 184.0,
      "worst": 190.0,
      "note": "a|b",
      "extra": {
        "mmio": 2.0
      }
    },
    {
      "name": "alone",
      "unit": "instructions",
      "n": 1,
      "median": 91.0,
      "ci95": [
        91.0,
        91.0
      ],
      "avg": 91.0,
      "worst": 91.0
    }
  ]
}
"#;
    assert_eq!(example().to_json().unwrap(), expected);
}

#[test]
fn tables_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let path = example().write(&dir.path().join("docs/results")).unwrap();
    let mut read = Table::read(path.parent().unwrap(), "boot").unwrap();
    read.load.end = 1.5;
    assert_eq!(read, example());
    assert_eq!(Table::read_all(path.parent().unwrap()).unwrap().len(), 1);
}

#[test]
fn older_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let old = |n: u64| {
        let text = example().to_json().unwrap();
        let text = text.replace("\"n\": 3,", &format!("\"n\": {n}, \"p99\": 190.0,"));
        fs::write(dir.path().join("boot.json"), text).unwrap();
        Table::read(dir.path(), "boot").unwrap().rows[0].clone()
    };
    let row = old(3);
    assert_eq!((row.p99, row.n_of, row.quantiles.len()), (None, None, 0));
    assert_eq!(old(100).p99, Some(190.0));
}

#[test]
fn errors_name_file_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let text = example().to_json().unwrap();
    let error = |text: &str| {
        fs::write(dir.path().join("boot.json"), text).unwrap();
        let error = format!("{:#}", Table::read(dir.path(), "boot").unwrap_err());
        assert_eq!(error.lines().count(), 1, "{error}");
        error[error.find("boot.json: ").unwrap()..].to_string()
    };
    for (from, to, expected) in [
        ("182.0", "\"182\"", "boot.json: rows[0].median: invalid type: string \"182\""),
        ("182.0", "null", "boot.json: rows[0].median: invalid type: null"),
        ("182.0", "99.0", "boot.json: rows[0].ci95: does not enclose `median`"),
        ("\"alone\"", "\" \"", "boot.json: rows[1].name: empty"),
        ("\"avg\": 91.0", "\"mean\": 91.0", "boot.json: rows[1].mean: unknown field `mean`"),
        ("  \"commit\": \"0123abc\",\n", "", "boot.json: missing field `commit`"),
        ("31T23", "31 23", "boot.json: date: not YYYY"),
        ("\"boot\"", "\"reboot\"", "boot.json: name: `reboot` is not the name of the file"),
        ("]\n}\n", "]\n}\n}", "boot.json: trailing characters"),
        ("]\n}\n", "]", "boot.json: EOF"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = error(&text.replace(from, to));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn invalid_tables_are_not_written() {
    let problem = |table: Table| table.to_json().unwrap_err().to_string();
    let twice = example().row(example().rows[0].clone());
    assert_eq!(problem(twice), "boot.json: rows[2].name: `default/none` again");
    let none = Table { rows: vec![], ..example() };
    assert_eq!(problem(none), "boot.json: rows: none");
    for name in ["", "../boot", "Boot", "7z", "a b"] {
        assert!(problem(Table { name: name.into(), ..example() }).contains("identifier"));
    }
}
