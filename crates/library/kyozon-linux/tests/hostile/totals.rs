//! What was done to images of one file system, over all runs: a file of lines with a word and a number.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Counts of one file system.
#[derive(Debug, Default, PartialEq)]
pub struct Totals {
    file: Option<PathBuf>,
    first: u64,
    images: u64,
    usable: u64,
    failed: Vec<u64>,
}

impl Totals {
    /// Those in the folder `KYOZON_TOTALS`, if that is set; new ones begin with the seed `first`.
    pub fn open(name: &str, first: u64) -> Self {
        let file = std::env::var_os("KYOZON_TOTALS").map(|folder| PathBuf::from(folder).join(name));
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let totals =
            text.map_or_else(|| Self { first, ..Self::default() }, |text| Self::parse(&text));
        Self { file, ..totals }
    }

    fn parse(text: &str) -> Self {
        let mut totals = Self::default();
        for (word, number) in text.lines().filter_map(|line| line.split_once(' ')) {
            let number = number.parse().unwrap_or_else(|_| panic!("{word} {number}: no number"));
            match word {
                "first" => totals.first = number,
                "images" => totals.images = number,
                "usable" => totals.usable = number,
                "failed" => totals.failed.push(number),
                _ => panic!("{word}: no such word"),
            }
        }
        totals
    }

    /// The seed of the next image.
    pub fn next_seed(&self) -> u64 {
        self.first.wrapping_add(self.images)
    }

    /// Images so far.
    pub fn images(&self) -> u64 {
        self.images
    }

    /// Whether there is a file.
    pub fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Counts an image, and writes the file anew.
    pub fn add(&mut self, usable: bool, failed: bool) {
        if failed {
            self.failed.push(self.next_seed());
        }
        self.images += 1;
        self.usable += u64::from(usable);
        if let Some(file) = &self.file {
            let new = file.with_extension("new");
            let text = self.text();
            fs::write(&new, text)
                .and_then(|()| fs::rename(&new, file))
                .expect("the totals' folder");
        }
    }

    fn text(&self) -> String {
        let Self { first, images, usable, .. } = self;
        let failed = self.failed.iter().map(|seed| format!("failed {seed}\n"));
        format!("first {first}\nimages {images}\nusable {usable}\n{}", failed.collect::<String>())
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
    totals.add(true, false);
    totals.add(false, true);
    assert_eq!(totals.text(), "first 7\nimages 2\nusable 1\nfailed 8\n");
    let again = Totals::parse(&totals.text());
    assert_eq!((again.next_seed(), &again), (9, &totals));
}
