//! Makes a profile of a kernel, and runs the checks over a dump of its memory.
//!
//! `cargo run -p kyozon-monitor --example dump -- BTF KALLSYMS IOMEM RELEASE [MEMORY]`: files with the contents of
//! `/sys/kernel/btf/vmlinux`, `/proc/kallsyms`, `/proc/iomem` and the output of `uname -r` on the target, and its
//! physical memory from address 0 on, as QEMU's `pmemsave` writes it.

use kyozon_monitor::check::{Budget, Check, Step};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::memory::{KernelMemory, Page, PAGE_BYTES, PAGE_WORDS};
use kyozon_monitor::profile::build::{build, Sources};
use kyozon_monitor::profile::Profile;
use kyozon_monitor::tasks::TaskCheck;
use std::error::Error;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// Passes over a dump; enough to confirm a finding.
const PASSES: usize = 5;

struct Dump(Vec<Page>);

impl Dump {
    fn read(name: &str) -> std::io::Result<Self> {
        let bytes = std::fs::read(name)?;
        let word = |page: &[u8], i: usize| {
            page[8 * i..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
        };
        let page =
            |page| std::array::from_fn::<_, PAGE_WORDS, _>(|i| AtomicU64::new(word(page, i)));
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

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [btf, kallsyms, iomem, release] =
        names.first_chunk().ok_or("usage: dump BTF KALLSYMS IOMEM RELEASE [MEMORY]")?;
    let btf = std::fs::read(btf)?;
    let [kallsyms, iomem, release] = [kallsyms, iomem, release].map(std::fs::read_to_string);
    let (kallsyms, iomem, release) = (kallsyms?, iomem?, release?);
    let start = Instant::now();
    let bytes = build(&Sources {
        btf: &btf,
        kallsyms: &kallsyms,
        iomem: &iomem,
        release: &release,
        image: None,
    })?;
    let built = start.elapsed();
    let start = Instant::now();
    let profile = Profile::decode(&bytes)?;
    println!(
        "{}: {} bytes, built in {built:?}, decoded in {:?}",
        profile.release(),
        bytes.len(),
        start.elapsed()
    );
    println!("{} symbols, image at {:#x}", profile.symbol_count(), profile.text_base());
    let Some(memory) = names.get(4) else { return Ok(()) };
    let memory = Dump::read(memory)?;
    let kernel = Kernel::new(&profile, &memory);
    let version = profile.symbol("linux_banner").and_then(|banner| kernel.c_string(banner, 60));
    println!("memory holds: {}", version.ok_or("the dump is not of this kernel")?);
    let mut tasks = TaskCheck::new(&profile, 0)?;
    let (mut passes, mut slices, mut retries, mut findings) = (0, 0, 0, 0);
    let start = Instant::now();
    while passes < PASSES {
        let mut found = |finding: kyozon_monitor::finding::Finding| {
            findings += 1;
            println!("{finding:?}");
        };
        slices += 1;
        if let Step::Done(count) =
            tasks.step(&kernel, &mut CallBudget(200), &mut found, &mut retries)
        {
            passes += 1;
            println!("tasks: {count} in pass {passes}");
        }
    }
    println!("{slices} slices, {retries} retries, {findings} findings, {:?}", start.elapsed());
    Ok(())
}
