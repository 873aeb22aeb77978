//! The images, checked as the module checks them: a cokernel, followed by its tasks, each on a page boundary.

use kyozon_abi::layer::{
    ImageHeader, COKERNEL_BASE, IMAGE_COKERNEL, IMAGE_MAGIC, IMAGE_TASK, LAYER_VERSION, MAX_TASKS,
};

const PAGE: u64 = 4096;
/// Maximum bytes of a part of a file.
const BYTES_MAX: u64 = 64 << 20;
/// Maximum bytes from the image's base to the end of its memory.
const MEMORY_MAX: u64 = 128 << 20;

/// The images of the first module.
#[derive(Debug, PartialEq, Eq)]
pub struct Images<'a> {
    /// The cokernel's header.
    pub header: ImageHeader,
    /// The module, which begins with the cokernel.
    pub cokernel: &'a [u8],
    tasks: [&'a [u8]; MAX_TASKS],
    count: usize,
}

impl<'a> Images<'a> {
    /// The tasks' images.
    pub fn tasks(&self) -> &[&'a [u8]] {
        &self.tasks[..self.count]
    }

    /// Reads `module`: a cokernel that can be mapped, then tasks.
    ///
    /// # Errors
    ///
    /// What is wrong with the module.
    pub fn read(module: &'a [u8]) -> Result<Self, &'static str> {
        let header = check(module)?;
        let mut images = Self { header, cokernel: module, tasks: [&[]; MAX_TASKS], count: 0 };
        let mut at = header.text_bytes + header.rodata_bytes + header.data_bytes;
        loop {
            at = at.next_multiple_of(PAGE);
            let rest = module.get(at as usize..).unwrap_or(&[]);
            if rest.is_empty() {
                return Ok(images);
            }
            let bytes = task_bytes(rest)?;
            let slot = images.tasks.get_mut(images.count).ok_or("there are too many tasks")?;
            *slot = &rest[..bytes];
            images.count += 1;
            at += bytes as u64;
        }
    }
}

/// Bytes of the task's image that `rest` begins with.
fn task_bytes(rest: &[u8]) -> Result<usize, &'static str> {
    let head = read_header(rest).ok_or("what follows the cokernel is too short to be a task")?;
    if head.magic != IMAGE_MAGIC || head.version != LAYER_VERSION || head.kind != IMAGE_TASK {
        return Err("what follows the cokernel is not a task");
    }
    match head.data_bytes.checked_add(PAGE) {
        Some(bytes) if bytes <= rest.len() as u64 => Ok(bytes as usize),
        _ => Err("a task is longer than what follows the cokernel"),
    }
}

fn read_header(image: &[u8]) -> Option<ImageHeader> {
    let head = image.get(..size_of::<ImageHeader>())?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    Some(ImageHeader {
        magic: word(0),
        version: half(8),
        kind: half(12),
        base: word(16),
        text_bytes: word(24),
        rodata_bytes: word(32),
        data_bytes: word(40),
        memory_bytes: word(48),
        entry: word(56),
    })
}

/// The header of `image`, if it is a cokernel that can be mapped; else what is wrong.
pub fn check(image: &[u8]) -> Result<ImageHeader, &'static str> {
    let bytes = image.len() as u64;
    let h = read_header(image).ok_or("it is too short to be an image")?;
    if h.magic != IMAGE_MAGIC {
        return Err("it is not a Kyozon image");
    }
    if h.version != LAYER_VERSION {
        return Err("it is of another version");
    }
    if h.kind != IMAGE_COKERNEL {
        return Err("it is not a cokernel");
    }
    if is_well_formed(&h, bytes) {
        Ok(h)
    } else {
        Err("its header is malformed")
    }
}

fn is_well_formed(h: &ImageHeader, bytes: u64) -> bool {
    // Each term is checked before it is added, so that no sum overflows.
    if [h.text_bytes, h.rodata_bytes, h.data_bytes].iter().any(|&b| b > BYTES_MAX)
        || h.memory_bytes > MEMORY_MAX
    {
        return false;
    }
    let constant = h.text_bytes + h.rodata_bytes;
    h.base == COKERNEL_BASE
        && h.text_bytes != 0
        && [h.text_bytes, h.rodata_bytes, h.memory_bytes].iter().all(|b| b % PAGE == 0)
        && h.data_bytes <= h.memory_bytes
        && constant + h.memory_bytes <= MEMORY_MAX
        && constant + h.data_bytes <= bytes
        && (h.base..h.base + h.text_bytes).contains(&h.entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> ImageHeader {
        ImageHeader {
            magic: IMAGE_MAGIC,
            version: LAYER_VERSION,
            kind: IMAGE_COKERNEL,
            base: COKERNEL_BASE,
            text_bytes: 0x2000,
            rodata_bytes: 0x1000,
            data_bytes: 0x10,
            memory_bytes: 0x3000,
            entry: COKERNEL_BASE + 0x40,
        }
    }

    fn file(h: &ImageHeader) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(h.magic.to_le_bytes());
        bytes.extend(h.version.to_le_bytes());
        bytes.extend(h.kind.to_le_bytes());
        for word in [h.base, h.text_bytes, h.rodata_bytes, h.data_bytes, h.memory_bytes, h.entry] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(0x3010, 0);
        bytes
    }

    #[test]
    fn cokernels_are_accepted() {
        assert_eq!(check(&file(&good())), Ok(good()));
    }

    #[test]
    fn invalid_headers_are_refused() {
        let lies: [fn(&mut ImageHeader); 17] = [
            |h| h.magic ^= 1,
            |h| h.version += 1,
            |h| h.kind = 1,
            |h| h.base += 0x1000,
            |h| h.text_bytes = 0,
            |h| h.text_bytes += 1,
            |h| h.text_bytes = u64::MAX - 0xfff,
            |h| h.rodata_bytes = 0x800,
            |h| h.rodata_bytes = u64::MAX,
            |h| h.data_bytes = 0x3001,
            |h| h.data_bytes = 0x11,
            |h| h.memory_bytes = 0x3001,
            |h| h.memory_bytes = MEMORY_MAX,
            |h| h.memory_bytes = u64::MAX - 0xfff,
            |h| h.entry = COKERNEL_BASE - 1,
            |h| h.entry = COKERNEL_BASE + 0x2000,
            |h| h.entry = u64::MAX,
        ];
        for (i, lie) in lies.iter().enumerate() {
            let mut h = good();
            lie(&mut h);
            assert!(check(&file(&h)).is_err(), "lie {i}");
        }
    }

    #[test]
    fn short_files_are_refused() {
        let whole = file(&good());
        for bytes in [0, 1, 63, 64, 0x300f] {
            assert!(check(&whole[..bytes]).is_err(), "{bytes}");
        }
    }

    fn task(bytes: usize) -> Vec<u8> {
        let h = ImageHeader { kind: IMAGE_TASK, data_bytes: bytes as u64, ..good() };
        let mut task = file(&h);
        task.resize(PAGE as usize + bytes, bytes as u8);
        task
    }

    /// A cokernel and what follows, each from a page on.
    fn module(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut all = file(&good());
        for part in parts {
            all.resize(all.len().next_multiple_of(PAGE as usize), 0);
            all.extend(part);
        }
        all
    }

    #[test]
    fn tasks_follow_the_cokernel() {
        let alone = module(&[]);
        assert!(Images::read(&alone).unwrap().tasks().is_empty());
        let mut parts = vec![task(100), task(0), task(5000)];
        let all = module(&parts);
        assert_eq!(Images::read(&all).unwrap().tasks(), parts);
        parts.resize(MAX_TASKS, task(1));
        let all = module(&parts);
        assert_eq!(Images::read(&all).unwrap().tasks().len(), MAX_TASKS);
        parts.push(task(1));
        assert!(Images::read(&module(&parts)).is_err());
    }

    #[test]
    fn invalid_tasks_are_refused() {
        let huge = {
            let mut t = task(8);
            t[40..48].fill(0xff);
            t
        };
        let short = task(100)[..4195].to_vec();
        let another = {
            let mut t = task(8);
            t[8] = 99;
            t
        };
        for bad in
            [vec![0; 4096], vec![1], task(8)[..63].to_vec(), huge, short, another, file(&good())]
        {
            assert!(Images::read(&module(&[task(5), bad])).is_err());
        }
    }
}
