//! The entry of a program.

/// Makes a function of type `fn() -> u8` the program's main function. Its value is the exit status.
#[cfg(feature = "image")]
#[macro_export]
macro_rules! program {
    ($run:path) => {
        kyozon_unikernel::main!($run);
    };
}

/// Makes a function of type `fn() -> u8` the program's main function. Its value is the exit status.
#[cfg(not(feature = "image"))]
#[macro_export]
macro_rules! program {
    ($run:path) => {
        fn main() -> std::process::ExitCode {
            std::process::ExitCode::from($run())
        }
    };
}
