//! What was done to images of one file system, over all runs: a file of lines with a word and a number. Several runs
//! may share it: each reads and writes it anew, under a lock, whenever it takes a seed and whenever it counts an image.

use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;

/// Counts of one file system.
#[derive(Debug, Default, PartialEq)]
pub struct Totals {
    file: Option<PathBuf>,
    first: u64,
    /// Seeds that were taken, also by runs that ended before they counted the image.
    taken: u64,
    images: u64,
    usable: u64,
    failed: Vec<u64>,
}

impl Totals {
    /// Those in the folder `KYOZON_TOTALS`, if that is set; new ones begin with the seed `first`.
    pub fn open(name: &str, first: u64) -> Self {
        let file = std::env::var_os("KYOZON_TOTALS").map(|folder| PathBuf::from(folder).join(name));
        Self::at(file, first)
    }

    fn at(file: Option<PathBuf>, first: u64) -> Self {
        let mut totals = Self { file, first, ..Self::default() };
        totals.change(|_| ());
        totals
    }

    fn parse(text: &str) -> Self {
        let mut totals = Self::default();
        for (word, number) in text.lines().filter_map(|line| line.split_once(' ')) {
            let number = number.parse().unwrap_or_else(|_| panic!("{word} {number}: no number"));
            match word {
                "first" => totals.first = number,
                "taken" => totals.taken = number,
                "images" => totals.images = number,
                "usable" => totals.usable = number,
                "failed" => totals.failed.push(number),
                _ => panic!("{word}: no such word"),
            }
        }
        totals.taken = totals.taken.max(totals.images);
        totals
    }

    /// Changes the counts that the file has now, and writes it anew. Without a file, changes these.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let Some(file) = self.file.clone() else { return change(self) };
        // The file itself is replaced, so a lock on it would not stay.
        let lock = File::create(file.with_extension("lock")).expect("the totals' folder");
        lock.lock().expect("a lock");
        if let Ok(text) = fs::read_to_string(&file) {
            *self = Self { file: Some(file.clone()), ..Self::parse(&text) };
        }
        let result = change(self);
        let new = file.with_extension("new");
        fs::write(&new, self.text()).and_then(|()| fs::rename(&new, &file)).expect("the totals");
        result
    }

    /// Takes the seed of the next image.
    pub fn take_seed(&mut self) -> u64 {
        self.change(|totals| {
            totals.taken += 1;
            totals.first.wrapping_add(totals.taken - 1)
        })
    }

    /// Images so far.
    pub fn images(&self) -> u64 {
        self.images
    }

    /// Whether there is a file.
    pub fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Counts the image of a seed that was taken.
    pub fn add(&mut self, seed: u64, usable: bool, failed: bool) {
        self.change(|totals| {
            totals.images += 1;
            totals.usable += u64::from(usable);
            if failed {
                totals.failed.push(seed);
            }
        });
    }

    fn text(&self) -> String {
        let Self { first, taken, images, usable, failed, .. } = self;
        let failed: String = failed.iter().map(|seed| format!("failed {seed}\n")).collect();
        format!("first {first}\ntaken {taken}\nimages {images}\nusable {usable}\n{failed}")
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, images, usable, failed, .. } = self;
        write!(
            f,
            "{images} images from seed {first}, {usable} of them usable, {} failed",
            failed.len()
        )
    }
}

#[test]
fn totals_go_on_where_they_stopped() {
    let mut totals = Totals { first: 7, ..Totals::default() };
    for (usable, failed) in [(true, false), (false, true)] {
        let seed = totals.take_seed();
        totals.add(seed, usable, failed);
    }
    assert_eq!(totals.text(), "first 7\ntaken 2\nimages 2\nusable 1\nfailed 8\n");
    let mut again = Totals::parse(&totals.text());
    assert_eq!(again, totals);
    assert_eq!(again.take_seed(), 9);
    // Files from before have no seeds that were taken.
    assert_eq!(Totals::parse("first 7\nimages 2\nusable 1\n").take_seed(), 9);
}

#[test]
fn runs_at_once_lose_no_image() {
    const RUNS: u64 = 4;
    const IMAGES: u64 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("totals");
    let run = |number: u64| {
        let mut totals = Totals::at(Some(file.clone()), 100 * number);
        for image in 0..IMAGES {
            let seed = totals.take_seed();
            totals.add(seed, image % 2 == 0, image == number);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..RUNS {
            scope.spawn(move || run(number));
        }
    });
    let totals = Totals::at(Some(file.clone()), 0);
    assert_eq!((totals.images, totals.taken, totals.usable), (200, 200, 100));
    // Each seed was taken once, so those of the failed images differ.
    let mut failed = totals.failed.clone();
    failed.sort_unstable();
    failed.dedup();
    assert_eq!(failed.len() as u64, RUNS);
}
