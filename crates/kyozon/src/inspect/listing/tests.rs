use super::*;

fn row(absent: &[&'static str], object: Value) -> Row {
    Row { absent: absent.iter().copied().collect(), object, ..Row::default() }
}

fn look(rows: &[(&str, Row)]) -> Look {
    rows.iter().map(|(key, row)| ((*key).to_owned(), row.clone())).collect()
}

/// The rows on which looks agree: what each lacks.
fn agreed(looks: Vec<Look>) -> Vec<Vec<&'static str>> {
    let agreed = looks.into_iter().reduce(|before, now| agree(&before, now)).unwrap_or_default();
    agreed.into_values().map(|row| row.absent.into_iter().collect()).collect()
}

#[test]
fn only_differences_of_every_look_count() {
    let known = || json!({"pid": 1});
    let hidden = look(&[("a", row(&["/proc", "the PID index"], known()))]);
    let seen = look(&[("a", row(&["the PID index"], known()))]);
    assert_eq!(agreed(vec![hidden.clone(); 3]), [["/proc", "the PID index"]]);
    assert_eq!(agreed(vec![hidden.clone(), seen, hidden.clone()]), [["the PID index"]]);
    // It was not there at an earlier look: it has just begun.
    assert_eq!(agreed(vec![Look::new(), hidden.clone()]), [[""; 0]]);
    // It is gone by now.
    assert_eq!(agreed(vec![hidden, Look::new()]), [[""; 0]; 0]);
    assert_eq!(agreed(Vec::new()), [[""; 0]; 0]);
}

#[test]
fn what_linux_tells_of_must_be_in_memory() {
    let told = look(&[("1/1", row(&[NOWHERE], Value::Null))]);
    assert_eq!(agreed(vec![told.clone(); 2]), [[NOWHERE]]);
    assert_eq!(agreed(vec![Look::new(), told]), [[""; 0]; 0]);
}

fn listing(rows: Vec<Row>, is_complete: bool) -> Listing {
    Listing { titles: &["PID", "NAME", "NOT IN"], name: "task", rows, is_complete, warning: None }
}

#[test]
fn the_table_names_what_differs() {
    let cells = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
    let rows = || {
        vec![
            Row {
                cells: cells(["1", "init"]),
                is_shown: true,
                object: json!({"pid": 1}),
                ..Row::default()
            },
            Row { cells: cells(["17", "thread"]), object: json!({"pid": 17}), ..Row::default() },
            Row { cells: cells(["9", "evil"]), ..row(&["/proc"], json!({"pid": 9})) },
            Row { cells: cells(["22", "-"]), ..row(&[NOWHERE], Value::Null) },
        ]
    };
    let all = listing(rows(), true);
    assert_eq!(
        all.to_string(),
        "PID  NAME  NOT IN\n1    init\n9    evil  /proc\n22   -     any structure of the kernel\n\
         verdict: 4 tasks, 2 differences"
    );
    assert_eq!(all.status(), FOUND);
    let json = all.json();
    assert_eq!(
        (&json["rows"][2]["pid"], &json["rows"][2]["not_in"][0]),
        (&json!(9), &json!("/proc"))
    );
    assert_eq!(json["rows"][3], json!({"line": ["22", "-"], "not_in": [NOWHERE]}));
    let intact = |is_complete| listing(rows().into_iter().take(1).collect(), is_complete);
    assert_eq!((intact(true).status(), intact(false).status()), (0, UNJUDGED));
    let verdict =
        "verdict: 1 task, 0 differences, but not every structure could be walked to its end";
    assert!(intact(false).to_string().ends_with(verdict));
}
