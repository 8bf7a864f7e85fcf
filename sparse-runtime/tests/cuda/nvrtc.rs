//! Every text through the real compiler, which needs no GPU.

use sparse_runtime::device::cuda::compile;
use sparse_runtime::kernels::cuda::for_each_unit;
use std::collections::BTreeMap;

/// The numbers before a word in what the compiler says, `Used 56 registers`.
fn numbers<'a>(log: &'a str, before: &str, after: &str) -> impl Iterator<Item = u32> + 'a {
    let (before, after) = (before.to_owned(), after.to_owned());
    log.lines().filter_map(move |line| {
        let end = line.find(&after)?;
        line[..end].rsplit(&before).next()?.trim().rsplit(' ').next()?.parse().ok()
    })
}

/// Compiles for each architecture, prints the most registers of each file, and refuses spills and
/// warnings. Only without the emulation in the same process, so by itself:
/// `cargo test … --test cuda -- --ignored`.
#[test]
#[ignore = "needs libnvrtc on the library path"]
fn every_kernel_compiles_without_spills() {
    std::thread::scope(|scope| {
        for architecture in ["sm_80", "sm_90"] {
            scope.spawn(move || every_kernel_compiles_for(architecture));
        }
    });
}

fn every_kernel_compiles_for(architecture: &str) {
    let mut registers = BTreeMap::<_, (usize, u32)>::new();
    for_each_unit(&mut |unit| {
        let log = compile(unit, architecture, true).expect("a kernel compiles").log;
        let what = format!("{} for {architecture}: {log}", unit.file);
        assert!(!log.contains("warning"), "{what}");
        assert!(numbers(&log, "", " bytes spill stores").all(|bytes| bytes == 0), "{what}");
        let most = numbers(&log, "Used ", " registers").max().expect(&what);
        let (units, of_file) = registers.entry(unit.file).or_default();
        *units += 1;
        *of_file = most.max(*of_file);
    });
    for (file, (units, most)) in registers {
        println!("{architecture} {file}: {units} units, at most {most} registers, no spills");
    }
}
