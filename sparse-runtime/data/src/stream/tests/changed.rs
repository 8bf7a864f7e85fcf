//! Files that change while a stream reads them, between epochs and within one.

use super::*;
use std::time::SystemTime;

/// What the next epoch of a stream says once `change` has changed its file between two epochs.
fn after_change(name: &str, kept: bool, change: impl FnOnce(&std::path::Path)) -> String {
    // So many that the rows of a pool are a part of them.
    let file = TempFile::new(name, text(if kept { N } else { 3000 }));
    let stream = Stream::new(format()).file(&file.0).buffer(1 << 20);
    let stream = if kept { stream.cache_in(std::env::temp_dir()) } else { stream };
    let data = stream.open().unwrap();
    let options = options(77, Order::Shuffled { seed: 5 }, LastBatch::Short);
    let mut batches = data.batches(INPUTS, &options).unwrap();
    if kept {
        // An epoch that is not read to its end keeps a part.
        batches.start_epoch(0).unwrap();
        batches.next_batch().unwrap().unwrap();
    } else {
        epoch(&mut batches, 0);
    }
    change(&file.0);
    let error = error_in(&mut batches, 1);
    assert!(error.contains(&file.0.display().to_string()), "{error}");
    // Nor is what was read before taken for the file.
    assert_eq!(error_in(&mut batches, 2), error);
    error
}

fn error_in(batches: &mut impl Batches<f32>, epoch: u64) -> String {
    batches.start_epoch(epoch).unwrap();
    loop {
        match batches.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("epoch {epoch} ended without an error"),
            Err(error) => return error.to_string(),
        }
    }
}

/// Some rows fewer, the last of them whole.
fn cut(path: &std::path::Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let end = text[..text.len() / 2].rfind('\n').unwrap() + 1;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(end as u64).unwrap();
}

#[test]
fn a_stream_whose_file_is_cut_between_epochs_is_an_error() {
    let error = after_change("changed-cut", false, cut);
    assert!(error.contains("` has changed while it was read: it had "), "{error}");
    assert!(error.contains(" bytes and has "), "{error}");
}

#[cfg(unix)]
#[test]
fn a_stream_whose_file_is_replaced_by_rename_is_an_error() {
    let error = after_change("changed-renamed", false, |path| {
        // Of the same length and time.
        let other = path.with_extension("new");
        let old = std::fs::read_to_string(path).unwrap();
        std::fs::write(&other, old.replace(":0.5\n", ":0.6\n")).unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
        std::fs::rename(&other, path).unwrap();
    });
    assert!(error.contains("another file was put in its place"), "{error}");
}

#[test]
fn a_stream_whose_file_is_overwritten_is_an_error() {
    let error = after_change("changed-written", false, |path| {
        let old = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, old.replace(":0.5\n", ":0.6\n")).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    });
    assert!(error.contains("it was written to"), "{error}");
}

#[test]
fn a_stream_whose_file_is_gone_is_an_error() {
    let error = after_change("changed-gone", false, |path| std::fs::remove_file(path).unwrap());
    assert!(error.contains("No such file") || cfg!(not(unix)), "{error}");
}

#[test]
fn rows_of_a_file_that_changes_while_they_are_kept_are_an_error() {
    let error = after_change("changed-kept", true, cut);
    assert!(error.contains("` has changed while it was read: it had "), "{error}");
}

/// The file is cut while it is open: the epoch sees it in the end, whatever it read.
#[test]
fn a_file_that_is_cut_within_an_epoch_is_an_error() {
    let file = TempFile::new("changed-within", text(N));
    let data = open(&[&file], 1);
    let options = options(77, Order::Sequential, LastBatch::Short);
    let mut batches = data.batches(INPUTS, &options).unwrap();
    batches.start_epoch(0).unwrap();
    batches.next_batch().unwrap().unwrap();
    cut(&file.0);
    let error = loop {
        match batches.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("no error"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("changed-within") && error.contains("has changed"), "{error}");
}
