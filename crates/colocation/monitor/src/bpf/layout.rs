//! Where Linux keeps BPF programs.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::Owners;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{List, XArrays};
use alloc::string::String;

/// Maximum length of the name of a program's code, with its end (`KSYM_NAME_LEN` in Linux's `kallsyms.h` is longer).
const NAME_BYTES: usize = 64;

/// No program has this ID or a higher one, and user space cannot ask for it (`INT_MAX`, `bpf_prog_alloc_id` in Linux's
/// `syscall.c`).
const MAX_ID: u64 = 0x7fff_ffff;

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("bpf_prog", "aux", Optional),
        ("bpf_prog", "bpf_func", Optional),
        ("bpf_prog_aux", "func", Optional),
        ("bpf_prog_aux", "func_cnt", Optional),
        ("bpf_prog_aux", "id", Optional),
        ("bpf_prog_aux", "poke_tab", Optional),
        ("bpf_prog_aux", "real_func_cnt", Optional),
        ("bpf_prog_aux", "size_poke_tab", Optional),
        ("bpf_jit_poke_descriptor", "tailcall_bypass", Optional),
        ("bpf_jit_poke_descriptor", "tailcall_target", Optional),
        ("bpf_prog_aux", "ksym", Optional),
        ("idr", "idr_rt", Optional),
    ],
    constants: &[],
};

#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The list of code, of programs and other.
    pub list: List,
    /// Address of the index of IDs.
    pub ids: u64,
    pub index: XArrays,
    owners: Owners,
    /// In `struct bpf_ksym`: whether the code is a program's.
    is_program: u64,
    /// In `struct bpf_prog`.
    aux: u64,
    entry: u64,
    /// In `struct bpf_prog_aux`.
    id: u64,
    ksym: u64,
    /// The pointer to the functions of a program of several, and their number.
    functions: Option<(u64, u64)>,
    /// The pointer to the table of tail calls, and the number of its entries; size of an entry, and the two places in
    /// it that Linux patches.
    tail_calls: Option<(u64, u64, u64, [u64; 2])>,
}

impl Layout {
    /// Looks it up in `profile`; `None` if the kernel has no BPF, or does not describe it.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
        let owners = Owners::new(profile).ok()?;
        Some(Self {
            list: owners.bpf?,
            ids: profile.symbol("prog_idr")? + offset("idr", "idr_rt")?,
            index: XArrays::new(profile).ok()?,
            owners,
            is_program: offset("bpf_ksym", "prog")?,
            aux: offset("bpf_prog", "aux")?,
            entry: offset("bpf_prog", "bpf_func")?,
            id: offset("bpf_prog_aux", "id")?,
            ksym: offset("bpf_prog_aux", "ksym")?,
            functions: offset("bpf_prog_aux", "func").zip(
                // With those that the loader of the program did not write.
                offset("bpf_prog_aux", "real_func_cnt").or(offset("bpf_prog_aux", "func_cnt")),
            ),
            tail_calls: tail_calls(profile),
        })
    }

    /// The `struct bpf_prog_aux` that the entry `ksym` of the list is in, if it is a program's.
    pub fn aux_of<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, ksym: u64) -> Option<u64> {
        let is_program = kernel.u8(ksym.wrapping_add(self.is_program))? != 0;
        is_program.then(|| ksym.wrapping_sub(self.ksym))
    }

    /// The `struct bpf_prog_aux` of `program`.
    pub fn aux<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, program: u64) -> Option<u64> {
        kernel.u64(program.wrapping_add(self.aux))
    }

    /// The `struct bpf_prog_aux` of function `number` of a program.
    pub fn function<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        aux: u64,
        number: u64,
    ) -> Option<u64> {
        let (functions, count) = self.functions?;
        let count = kernel.u32(aux.wrapping_add(count)).map(u64::from)?;
        let functions = kernel.u64(aux.wrapping_add(functions)).filter(|_| number < count)?;
        let program = kernel.u64(functions.wrapping_add(8 * number)).filter(|&it| it != 0)?;
        self.aux(kernel, program)
    }

    /// The places of tail call `number` of a program that Linux patches.
    pub fn tail_call<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        aux: u64,
        number: u64,
    ) -> Option<[u64; 2]> {
        let (table, count, bytes, places) = self.tail_calls?;
        let count = kernel.u32(aux.wrapping_add(count)).map(u64::from)?;
        let table = kernel.u64(aux.wrapping_add(table)).filter(|_| number < count)?;
        let entry = table.wrapping_add(number * bytes);
        // A tail call that was compiled as a plain jump has none.
        Some(places.map(|place| kernel.u64(entry.wrapping_add(place)).unwrap_or(0)))
    }

    /// Start and end of the code that the entry `ksym` of the list is about.
    pub fn range<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, ksym: u64) -> Option<(u64, u64)> {
        let word = |offset| kernel.u64(ksym.wrapping_add(offset));
        Some((word(self.owners.bpf_start)?, word(self.owners.bpf_end)?))
    }

    /// Whether Linux has listed the code of this program, and has not taken it back. What is interpreted, or compiled
    /// for a user without privileges, is never listed.
    pub fn has_listed_code<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, aux: u64) -> bool {
        let ksym = aux.wrapping_add(self.ksym);
        let start = kernel.u64(ksym.wrapping_add(self.owners.bpf_start));
        start.is_some_and(|start| start != 0) && self.aux_of(kernel, ksym).is_some()
    }

    /// The ID of a program, 0 for a function of one and for one that ends.
    pub fn id<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, aux: u64) -> Option<u64> {
        kernel.u32(aux.wrapping_add(self.id)).map(u64::from)
    }

    /// Whether the program with the ID `id` has it in its own structure, and is at that place of the index.
    pub fn is_at<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, id: u64, aux: u64) -> bool {
        let at = |id| self.index.path_to(kernel, self.ids, id).map(|path| path.value);
        let is_own = |&program: &u64| program != 0 && self.aux(kernel, program) == Some(aux);
        (1..MAX_ID).contains(&id)
            && self.id(kernel, aux) == Some(id)
            && at(id).filter(is_own).is_some()
    }

    /// The address that Linux calls to run the program with the ID `id`.
    pub fn entry<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, id: u64) -> Option<u64> {
        let program = self.index.path_to(kernel, self.ids, id)?.value;
        kernel.u64(program.wrapping_add(self.entry))
    }

    /// The name of a program's code: `bpf_prog_`, its tag, and the name that its loader gave it.
    pub fn name<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, aux: u64) -> Option<String> {
        let at = aux.wrapping_add(self.ksym).wrapping_add(self.owners.bpf_name);
        kernel.c_string(at, NAME_BYTES).filter(|name| !name.is_empty())
    }

    /// The code of a program: its first byte and the one behind.
    pub fn code<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, aux: u64) -> Option<(u64, u64)> {
        self.range(kernel, aux.wrapping_add(self.ksym))
    }
}

fn tail_calls(profile: &Profile<'_>) -> Option<(u64, u64, u64, [u64; 2])> {
    let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
    let place = |member| offset("bpf_jit_poke_descriptor", member);
    Some((
        offset("bpf_prog_aux", "poke_tab")?,
        offset("bpf_prog_aux", "size_poke_tab")?,
        profile.size_of("bpf_jit_poke_descriptor")?,
        [place("tailcall_target")?, place("tailcall_bypass")?],
    ))
}
