//! Runs the check `text` over dumps of a guest's memory, one after the other.
//!
//! `cargo run --release -p kyozon-monitor --example text -- BTF KALLSYMS IOMEM RELEASE DUMP...`: the first four as for
//! the example `dump`; each dump is physical memory from address 0 on (QEMU's `pmemsave`). The copy is made from the
//! first dump; for the others, every finding is printed. If `VMLINUX` names the unpacked payload of the package's image
//! and `NOTES` the target's `/sys/kernel/notes`, the copy is compared with the image.

use kyozon_monitor::check::{Budget, Check, Step};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::memory::{KernelMemory, Page, PAGE_BYTES, PAGE_WORDS};
use kyozon_monitor::profile::build::{build, Image, Sources};
use kyozon_monitor::profile::fingerprints::ChunkCursor;
use kyozon_monitor::profile::Profile;
use kyozon_monitor::text::TextCheck;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

struct Dump(Vec<Page>);

impl Dump {
    fn read(name: &str) -> std::io::Result<Self> {
        let bytes = std::fs::read(name)?;
        let page = |bytes: &[u8]| -> Page {
            let word = |i: usize| bytes.get(8 * i..8 * i + 8).and_then(|w| w.try_into().ok());
            std::array::from_fn::<_, PAGE_WORDS, _>(|i| {
                AtomicU64::new(word(i).map_or(0, u64::from_le_bytes))
            })
        };
        Ok(Self(bytes.chunks_exact(PAGE_BYTES as usize).map(page).collect()))
    }
}

impl KernelMemory for Dump {
    fn page(&self, physical: u64) -> Option<&Page> {
        self.0.get(usize::try_from(physical / PAGE_BYTES).ok()?)
    }
}

/// A slice that ends at the given number of budget calls.
struct CallBudget(u32);

impl Budget for CallBudget {
    fn spent(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

/// Prints the number of fingerprints and masks.
fn describe(profile: &Profile<'_>) {
    let (mut cursor, mut chunks, mut masked) = (ChunkCursor::default(), 0, BTreeMap::new());
    while let Some(chunk) = profile.next_chunk(&mut cursor) {
        chunks += 1;
        for mask in chunk.masks.iter().filter(|mask| mask.start >= chunk.address) {
            let (sites, bytes): &mut (u64, u64) = masked.entry(mask.kind).or_default();
            *sites += 1;
            *bytes += u64::from(mask.bytes);
        }
    }
    println!("{chunks} chunks, {} bytes of the profile", profile.fingerprint_bytes());
    for (kind, (sites, bytes)) in masked {
        println!("masked, {kind:?}: {sites} sites, {bytes} bytes");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [btf, kallsyms, iomem, release, dumps @ ..] = names.as_slice() else {
        return Err("usage: text BTF KALLSYMS IOMEM RELEASE DUMP...".into());
    };
    let btf = std::fs::read(btf)?;
    let [kallsyms, iomem, release] = [kallsyms, iomem, release].map(std::fs::read_to_string);
    let (kallsyms, iomem, release) = (kallsyms?, iomem?, release?);
    let vmlinux = std::env::var_os("VMLINUX").map(std::fs::read).transpose()?;
    let notes = std::env::var_os("NOTES").map(std::fs::read).transpose()?.unwrap_or_default();
    let image = vmlinux.as_deref().map(|vmlinux| Image {
        vmlinux,
        notes: &notes,
        key: [1, 2],
        calls_changed: false,
    });
    let start = Instant::now();
    let sources =
        Sources { btf: &btf, kallsyms: &kallsyms, iomem: &iomem, release: &release, image };
    let bytes = build(&sources)?;
    println!("a profile of {} bytes, made in {:?}", bytes.len(), start.elapsed());
    let profile = Profile::decode(&bytes)?;
    describe(&profile);
    let mut check = TextCheck::new(&profile)?;
    for name in dumps {
        let memory = Dump::read(name)?;
        let kernel = Kernel::new(&profile, &memory);
        // Enough passes to confirm any change, even if its report is deferred.
        let passes = std::env::var("PASSES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
        for pass in 0..passes {
            let (start, mut slices, mut retries, mut pages) = (Instant::now(), 0, 0, 0);
            let mut found = Vec::new();
            while pages == 0 {
                slices += 1;
                let units = &mut CallBudget(1000);
                match check.step(&kernel, units, &mut |finding| found.push(finding), &mut retries) {
                    Step::Done(all) => pages = all,
                    Step::Spent | Step::Rests => {}
                }
            }
            if pass < 4 || !found.is_empty() {
                println!(
                    "{name} pass {pass}: {pages} pages, {} sites, {slices} slices, {retries} retries, {:?}",
                    check.sites(),
                    start.elapsed()
                );
            }
            for finding in found {
                println!("{finding:#x?}");
            }
        }
    }
    Ok(())
}
