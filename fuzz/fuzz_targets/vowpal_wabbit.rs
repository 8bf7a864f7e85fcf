#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    nnz_fuzz::vowpal_wabbit(bytes);
});
