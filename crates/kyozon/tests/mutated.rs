//! `kyozon inspect` on an image of a real kernel's memory in which words and pages were changed at random: it ends in
//! time, with a result or an error.
//!
//! `KYOZON_IMAGE` names the image, which is as before at the end. `KYOZON_KERNEL_IMAGE` is the kernel package's,
//! `KYOZON_MODULES` the folder with its modules.
//! `KYOZON_MUTATIONS` (default 20) is the number of mutations, and `KYOZON_SEED` (default 1) the first one's seed.

use kyozon::inspect::{inspect, Sources, FOUND, UNJUDGED};
use kyozon_monitor::random::Random;
use std::env::var;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;
/// A hostile image takes a few seconds; the machine may be busy.
const LIMIT: Duration = Duration::from_secs(120);
/// The lowest virtual address that the kernel uses.
const KERNEL_HALF: u64 = 0xff00_0000_0000_0000;

/// The image, and what was there before.
struct Image {
    file: File,
    pages: u64,
    before: Vec<(u64, Vec<u8>)>,
}

impl Image {
    fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut to = vec![0; bytes];
        self.file.read_exact_at(&mut to, at).expect("read the image");
        to
    }

    fn word(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.read(at, 8).try_into().expect("eight bytes"))
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.before.push((at, self.read(at, bytes.len())));
        self.file.write_all_at(bytes, at).expect("write the image");
    }

    /// A place with a pointer to kernel memory, if one was met.
    fn pointer(&self, random: &mut Random) -> Option<u64> {
        (0..2000).map(|_| 8 * random.below(self.pages * PAGE / 8)).find(|at| {
            let word = self.word(*at);
            (KERNEL_HALF..u64::MAX).contains(&word)
        })
    }

    /// Changes one place.
    fn mutate(&mut self, random: &mut Random) {
        let page = PAGE * random.below(self.pages);
        match random.below(16) {
            0 => self.write(page, &[0; PAGE as usize]),
            1 => self.write(page, &[0xff; PAGE as usize]),
            2 => {
                let other = self.read(PAGE * random.below(self.pages), PAGE as usize);
                self.write(page, &other);
            }
            3 => {
                let word = random.number().to_le_bytes();
                self.write(page + 8 * random.below(PAGE / 8), &word);
            }
            kind => {
                let Some(at) = self.pointer(random) else { return };
                let new = match kind {
                    4..=7 => self.pointer(random).map_or(0, |other| self.word(other)),
                    8 | 9 => 0,
                    10 | 11 => u64::MAX,
                    12 | 13 => self.word(at) ^ 1 << random.below(64),
                    _ => self.word(at).wrapping_add(8 * random.below(64)),
                };
                self.write(at, &new.to_le_bytes());
            }
        }
    }

    /// Undoes all changes.
    fn restore(&mut self) {
        while let Some((at, bytes)) = self.before.pop() {
            self.file.write_all_at(&bytes, at).expect("write the image");
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
#[ignore = "needs an image"]
fn mutated_images_end_in_time() {
    let path = var("KYOZON_IMAGE").expect("KYOZON_IMAGE");
    let named = |name: &str| var(name).ok().map(PathBuf::from);
    let sources = Sources {
        image: Some(PathBuf::from(&path)),
        package: named("KYOZON_KERNEL_IMAGE"),
        modules: named("KYOZON_MODULES"),
    };
    let file = File::options().read(true).write(true).open(path).expect("open the image");
    let pages = file.metadata().expect("its size").len() / PAGE;
    let mut image = Image { file, pages, before: Vec::new() };
    let (first, count) = (number("KYOZON_SEED", 1), number("KYOZON_MUTATIONS", 20));
    let (mut clean, mut unjudged, mut found, mut refused) = (0, 0, 0, 0);
    for seed in first..first + count {
        let mut random = Random::new(seed);
        for _ in 0..=random.below(400) {
            image.mutate(&mut random);
        }
        eprintln!("seed {seed}");
        let began = Instant::now();
        match inspect(&sources).map(|inspection| inspection.status()) {
            Ok(FOUND) => found += 1,
            Ok(UNJUDGED) => unjudged += 1,
            Ok(_) => clean += 1,
            Err(_) => refused += 1,
        }
        assert!(began.elapsed() < LIMIT, "seed {seed} took {:?}", began.elapsed());
        image.restore();
    }
    println!("{count} images: {found} with findings, {unjudged} not judged, {clean} clean, {refused} refused");
}
