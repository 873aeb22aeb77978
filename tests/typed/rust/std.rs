// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that uses Rust's standard library: prints what it finds, and leaves files in the folder of its argument.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("an argument: a folder");
    for argument in arguments {
        println!("argument {argument:?}");
    }
    println!(
        "GREETING {}, missing {}",
        std::env::var("GREETING").unwrap_or_default(),
        std::env::var("MISSING").is_err()
    );
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).expect("standard input");
    println!("{read} bytes: {line:?}");
    if let Err(error) = files(Path::new(&folder)) {
        println!("error {:?}: {error}", error.kind());
        std::process::exit(1);
    }
    memory();
    clocks();
    numbers();
    eprintln!("to standard error");
    std::process::exit(7);
}

fn files(folder: &Path) -> io::Result<()> {
    let sub = folder.join("sub/deeper");
    fs::create_dir_all(&sub)?;
    let mut writer = BufWriter::new(File::create(sub.join("lines"))?);
    for n in 0..10_000 {
        writeln!(writer, "line {n}")?;
    }
    writer.flush()?;
    let sum: usize = BufReader::new(File::open(sub.join("lines"))?)
        .lines()
        .map(|l| l.map_or(0, |l| l.len()))
        .sum();
    println!("{sum} bytes in lines");
    let mut file = OpenOptions::new().read(true).write(true).open(sub.join("lines"))?;
    file.seek(SeekFrom::Start(5))?;
    file.write_all(b"zero")?;
    file.seek(SeekFrom::End(-5))?;
    let mut end = String::new();
    file.read_to_string(&mut end)?;
    file.set_len(100)?;
    println!("end {end:?}, now {} bytes", file.metadata()?.len());
    fs::rename(sub.join("lines"), folder.join("renamed"))?;
    fs::copy(folder.join("renamed"), folder.join("copy"))?;
    fs::hard_link(folder.join("copy"), folder.join("link"))?;
    fs::remove_file(folder.join("copy"))?;
    fs::remove_dir(&sub)?;
    let mut names = fs::read_dir(folder)?
        .map(|entry| entry.map(|e| (e.file_name(), e.metadata().map(|m| m.is_dir()).ok())))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    println!("{names:?}");
    for (what, result) in [
        ("missing", File::open(folder.join("missing")).map(drop)),
        ("exists", fs::create_dir(folder.join("sub"))),
        ("a folder", fs::write(folder.join("sub"), "text")),
        ("not a folder", File::open(folder.join("renamed/file")).map(drop)),
    ] {
        println!("{what}: {:?}", result.map_err(|error| error.kind()));
    }
    Ok(())
}

fn memory() {
    let mut words: HashMap<String, usize> = HashMap::new();
    for n in 0..200_000usize {
        *words.entry(format!("word{}", n * 7919 % 5003)).or_default() += n;
    }
    let sorted: BTreeMap<_, _> = words.iter().collect();
    println!("{} words, {:?}", sorted.len(), sorted.iter().nth(1000));
    let mut blocks: Vec<Vec<u8>> = (0..64).map(|n| vec![n as u8; 1 << 20]).collect();
    blocks.retain(|block| block[0] % 3 == 0);
    let sum: u64 = blocks.iter().flatten().map(|&b| u64::from(b)).sum();
    println!("{} blocks, {sum}", blocks.len());
    let shared: Vec<Rc<dyn Fn(u32) -> u32>> =
        vec![Rc::new(|x| x + 1), Rc::new(|x| x * 3), Rc::new(u32::reverse_bits)];
    println!("{:?}", shared.iter().cycle().take(20).fold(1, |x, f| f(x) % 1_000_003));
    println!("{}", (0..1000).collect::<HashSet<_>>().len());
}

fn clocks() {
    let (begin, wall) = (Instant::now(), SystemTime::now());
    std::thread::sleep(Duration::from_millis(20));
    let slept = begin.elapsed() >= Duration::from_millis(20)
        && wall.elapsed().is_ok_and(|t| t.as_millis() >= 19);
    let years =
        wall.duration_since(SystemTime::UNIX_EPOCH).map(|t| t.as_secs() / 31_557_600).unwrap_or(0);
    println!("slept {slept}, after 2025: {}", years >= 55);
}

fn numbers() {
    let x = (1..=50).fold(1.0f64, |a, n| (a + f64::from(n)).sqrt() * 1.25);
    println!("{x:.12} {:e} {:?} {}", x.powi(20), f32::MAX, i128::MAX / 3);
    println!("{:?} {:?}", "3.25e-3".parse::<f64>(), "x".parse::<u8>().map_err(|e| e.to_string()));
    println!("{:?}", u64::MAX.checked_add(1).is_none() && (u128::from(u64::MAX) * 3) >> 64 == 2);
}
