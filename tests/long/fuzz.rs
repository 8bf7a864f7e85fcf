//! The fuzz targets without a fuzzer: the kept inputs in `fuzz/corpus`, and some thousand mutations
//! of each.
//!
//! The mutations are the same in every run. One that fails is printed as bytes: keep it in the
//! corpus, with the cause mended.

// An input that cannot be read fails the test. The targets are a library elsewhere.
#![allow(clippy::unwrap_used, unreachable_pub)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[path = "../../fuzz/src/lib.rs"]
mod targets;

/// The mutations of all kept inputs of a target together.
const MUTATIONS: usize = 10_000;

/// Those of targets that write files and start threads for each input.
const MUTATIONS_IN_FILES: usize = 1_000;

#[test]
fn kept_inputs_and_mutations_of_them() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (seed, (name, target)) in targets::TARGETS.iter().enumerate() {
        let kept = read_folder(&corpus.join(name));
        let accepted = kept.iter().filter(|bytes| run(name, *target, bytes)).count();
        // Inputs that have all become invalid, or that are all valid, exercise half of the code.
        assert!(accepted > 0, "no kept input of `{name}` is valid any more");
        assert!(accepted < kept.len(), "no kept input of `{name}` is refused");
        let mut random = ChaCha8Rng::seed_from_u64(seed as u64);
        let in_files = ["stream", "cache", "compressed"].contains(name);
        for _ in 0..if in_files { MUTATIONS_IN_FILES } else { MUTATIONS } {
            run(name, *target, &mutated(&kept, &mut random));
        }
    }
}

/// Runs a target, and tells the input if that panics.
fn run(name: &str, target: fn(&[u8]) -> bool, bytes: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| target(bytes)))
        .unwrap_or_else(|_| panic!("target `{name}` failed on \"{}\"", bytes.escape_ascii()))
}

fn read_folder(folder: &Path) -> Vec<Vec<u8>> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// One of the inputs with up to four changes.
fn mutated(kept: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    /// Pieces that mean something in some format.
    const PIECES: &[&[u8]] = &[
        b" ",
        b"\n",
        b"\r\n",
        b"\t",
        b"#",
        b":",
        b"-",
        b"+",
        b".",
        b"e",
        b"0",
        b"1",
        b"1:1",
        b"qid:1",
        b"nan",
        b"inf",
        b"1e39",
        b"1e-50",
        b"4294967296",
        b"9223372036854775808",
        b"18446744073709551616",
        b"%",
        b"symmetric",
        b"pattern",
        b"integer",
        b"'",
        b"(",
        b",)",
        b"<i8",
        b">f4",
        b"|b1",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\x01",
        b"{",
        b"}",
        b"\"",
        b"[0,",
        b"F64",
        b"PK\x03\x04",
        b"\xef\xbb\xbf",
    ];
    let mut below = |bound: usize| (random.next_u64() % bound.max(1) as u64) as usize;
    let mut bytes = kept[below(kept.len())].clone();
    for _ in 0..=below(4) {
        let at = below(bytes.len() + 1);
        let end = (at + below(9)).min(bytes.len());
        match below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(8),
            1 if at < bytes.len() => bytes[at] = below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 => {
                let other = &kept[below(kept.len())];
                let from = below(other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let to = if below(2) == 0 { at } else { end };
                let piece = PIECES[below(PIECES.len())];
                bytes.splice(at..to, piece.iter().copied());
            }
        }
    }
    bytes
}
