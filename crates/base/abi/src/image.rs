//! The header of a flat image, as assembly.

use crate::layer::ImageHeader;
use core::mem::offset_of;

/// Assembles the [`ImageHeader`] of a flat image into the section `.header`.
///
/// `$kind` is an expression for an `IMAGE_*` constant, `$entry` the name of the symbol of the first instruction as a
/// string literal. The image's linker script puts the section first and defines the sizes: `__image_base`,
/// `__text_bytes`, `__rodata_bytes`, `__data_bytes` and `__memory_bytes`.
#[macro_export]
macro_rules! image_header {
    ($kind:expr, $entry:literal) => {
        ::core::arch::global_asm!(
            ".section .header, \"a\"",
            ".quad {magic}",
            ".long {version}, {kind}",
            ".quad __image_base",
            ".quad __text_bytes",
            ".quad __rodata_bytes",
            ".quad __data_bytes",
            ".quad __memory_bytes",
            concat!(".quad ", $entry),
            magic = const $crate::layer::IMAGE_MAGIC,
            version = const $crate::layer::LAYER_VERSION,
            kind = const $kind,
        );
    };
}

// The order of the directives above.
const _: () = {
    assert!(offset_of!(ImageHeader, magic) == 0 && offset_of!(ImageHeader, version) == 8);
    assert!(offset_of!(ImageHeader, kind) == 12 && offset_of!(ImageHeader, base) == 16);
    assert!(
        offset_of!(ImageHeader, text_bytes) == 24 && offset_of!(ImageHeader, rodata_bytes) == 32
    );
    assert!(
        offset_of!(ImageHeader, data_bytes) == 40 && offset_of!(ImageHeader, memory_bytes) == 48
    );
    assert!(offset_of!(ImageHeader, entry) == 56);
};
