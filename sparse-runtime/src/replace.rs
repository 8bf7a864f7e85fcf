//! Files that are written whole or not at all.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Writes a file beside `path` and renames it onto `path` once its bytes are on the disk: whatever happens,
/// `path` is the old file or the new one, whole. After an error nothing is left behind. Of a link the file that it leads to is replaced; the
/// new file may be read and written by whom the old one could. What is there and no file, such as a pipe or a device, is written to.
///
/// A process that is killed leaves what it was writing. The next one that writes to `path` removes that: O(files of the folder), once a
/// process.
pub(crate) fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // Of a path that leads nowhere there is nothing to keep.
    let there = fs::canonicalize(path).ok();
    let path = there.as_deref().unwrap_or(path);
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir()) {
        let mut writer = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        return write(&mut writer).and_then(|()| writer.flush());
    }
    let (beside, file) = create_beside(path)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let result = write(&mut writer)
        .and_then(|()| writer.flush())
        .and_then(|()| match before {
            Some(before) => writer.get_ref().set_permissions(before.permissions()),
            None => Ok(()),
        })
        .and_then(|()| writer.get_ref().sync_all())
        .and_then(|()| fs::rename(&beside, path))
        .and_then(|()| sync_folder(path));
    if result.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    result
}

/// Puts the new name on the disk as well, where a folder can be opened.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// A new file in the folder of `path`: a rename within a folder is atomic. It is locked, which tells others that somebody writes it.
fn create_beside(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file")
    })?;
    remove_abandoned(path, name);
    loop {
        let mut beside = OsString::from(".");
        beside.push(name);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        beside.push(format!(".{}-{count}.tmp", std::process::id()));
        let beside = path.with_file_name(beside);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(file) => {
                match file.try_lock() {
                    // Before it was locked, it was taken for abandoned.
                    Err(TryLockError::WouldBlock) => continue,
                    Ok(()) if !beside.exists() => continue,
                    // Where a file system has no locks, nothing is removed either.
                    Ok(()) | Err(TryLockError::Error(_)) => {}
                }
                return Ok((beside, file));
            }
            // Left behind by a process that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes what processes that are no more have begun to write beside `path`: files with such names that nobody has locked. What cannot be
/// removed is left.
fn remove_abandoned(path: &Path, name: &OsStr) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()) {
        return;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
    let abandoned = entries.flatten().filter(|entry| is_beside(&entry.file_name(), name));
    for entry in abandoned.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
        // Locked until it is removed: whoever has just made it sees that.
        if let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a file is called as those that are written beside `name`: `.name.PROCESS-COUNT.tmp`.
fn is_beside(file: &OsStr, name: &OsStr) -> bool {
    let (file, name) = (file.as_encoded_bytes(), name.as_encoded_bytes());
    let is_number = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    let numbers = file
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_prefix(name))
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(b".tmp"));
    let mut parts = numbers.unwrap_or_default().split(|byte| *byte == b'-');
    parts.next().is_some_and(is_number)
        && parts.next().is_some_and(is_number)
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_leaves_the_old_file_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("nnz-replace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        replace_file(&path, |writer| writer.write_all(b"old")).unwrap();
        let error = replace_file(&path, |writer| {
            writer.write_all(b"half of the ne")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        replace_file(&path, |writer| writer.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(replace_file(Path::new("/"), |_| Ok(())).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt, symlink};
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let link = folder.join("link");
            symlink("file", &link).unwrap();
            replace_file(&link, |writer| writer.write_all(b"by the link")).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"by the link");
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            replace_file(Path::new("/dev/null"), |writer| writer.write_all(b"gone")).unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_killed_processes_have_begun_is_removed() {
        let folder = std::env::temp_dir().join(format!("nnz-abandoned-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let put = |name: &str| fs::write(folder.join(name), "half").unwrap();
        let others =
            [".file.7-8-9.tmp", ".file.7-.tmp", ".file.x-8.tmp", ".other.7-8.tmp", "file.7-8.tmp"];
        others.into_iter().for_each(put);
        put(".file.7-8.tmp");
        put(".file.4000000000-12.tmp");
        put(".file.7-9.tmp");
        // Somebody else writes.
        let writer = OpenOptions::new().write(true).open(folder.join(".file.7-9.tmp")).unwrap();
        writer.lock().unwrap();
        let path = folder.join("file");
        replace_file(&path, |writer| writer.write_all(b"new")).unwrap();
        let names = || {
            let entries = fs::read_dir(&folder).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut expected: BTreeSet<String> = others.into_iter().map(str::to_owned).collect();
        expected.extend(["file", ".file.7-9.tmp"].map(str::to_owned));
        assert_eq!(names(), expected);
        drop(writer);
        replace_file(&path, |writer| writer.write_all(b"newer")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), names()), (b"newer".to_vec(), expected));
        fs::remove_dir_all(&folder).unwrap();
    }
}
