//! Multiplies two square matrices; each thread computes some rows. Arguments: threads, rows, `time`.
#![cfg_attr(feature = "image", no_std, no_main)]

extern crate alloc;

use alloc::{vec, vec::Vec};
use kyozon_portable::{fingerprint, machine, program, Arguments, Xorshift};

program!(run);

/// Rows of the second matrix that stay in the cache while they are used.
const BLOCK: usize = 64;

fn run() -> u8 {
    let arguments = Arguments::new();
    let threads = arguments.number(0, 32, 2);
    let rows = arguments.number(1, 4096, 256);
    // Small integers, so that sums are exact in any order.
    let mut numbers = Xorshift::new(3).map(|number| f64::from(number % 16));
    let a: Vec<f64> = numbers.by_ref().take(rows * rows).collect();
    let b: Vec<f64> = numbers.take(rows * rows).collect();
    let mut product = vec![0.0; rows * rows];
    let began = machine::now();
    multiply(&a, &b, &mut product, rows, threads);
    let took = machine::now() - began;
    let print = fingerprint(product.iter().map(|number| *number as u64));
    machine::print_line(format_args!("{rows} rows multiplied: {print:016x}"));
    arguments.print_time(took);
    0
}

fn multiply(a: &[f64], b: &[f64], product: &mut [f64], rows: usize, threads: usize) {
    let share = rows.div_ceil(threads) * rows;
    machine::thread::scope(|scope| {
        let mut parts = a.chunks(share).zip(product.chunks_mut(share));
        let own = parts.next();
        for (a, product) in parts {
            scope.spawn(move || part(a, b, product, rows));
        }
        if let Some((a, product)) = own {
            part(a, b, product, rows);
        }
    });
}

/// Computes some rows of the product.
fn part(a: &[f64], b: &[f64], product: &mut [f64], rows: usize) {
    for first in (0..rows).step_by(BLOCK) {
        for (a, product) in a.chunks(rows).zip(product.chunks_mut(rows)) {
            for k in first..rows.min(first + BLOCK) {
                let factor = a[k];
                for (sum, b) in product.iter_mut().zip(&b[k * rows..][..rows]) {
                    *sum += factor * b;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_matches_the_definition() {
        for (rows, threads) in [(1, 1), (5, 2), (70, 3), (129, 4)] {
            let a: Vec<f64> = (0..rows * rows).map(|i| (i % 7) as f64).collect();
            let b: Vec<f64> = (0..rows * rows).map(|i| (i % 5) as f64).collect();
            let mut product = vec![0.0; rows * rows];
            multiply(&a, &b, &mut product, rows, threads);
            for (index, got) in product.iter().enumerate() {
                let (row, column) = (index / rows, index % rows);
                let want: f64 = (0..rows).map(|k| a[row * rows + k] * b[k * rows + column]).sum();
                assert_eq!(*got, want, "{rows} {threads}");
            }
        }
    }
}
