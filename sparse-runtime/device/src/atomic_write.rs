//! Atomic file writes: a file is replaced as a whole or not at all.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Writes a file beside `path` and renames it onto `path` once its bytes are on the disk: at any
/// time `path` is the old file or the new one, whole. After an error nothing is left behind. For a
/// link the file at its end is replaced, or created if it does not exist yet. A `path` that is no
/// file, such as a pipe or a device, is written to.
///
/// The new file has the permissions of the old one; while it is written, its owner alone has
/// access. It has the old owner and group if this process may give files away. Otherwise a warning
/// says so, and the group gets no more access than everybody.
///
/// A killed process leaves its unfinished file. The next process that writes to `path` removes it:
/// O(files of the folder), once a process.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    replace(path, Access::Usual, write)
}

/// [`replace_file`]; a new file is private to its owner.
pub fn replace_private_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    replace(path, Access::Private, write)
}

/// The access to a new file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The system's default for new files.
    Usual,
    /// Its owner alone.
    Private,
}

fn replace(
    path: &Path,
    of_new: Access,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let path = &destination(path)?;
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir()) {
        let mut writer = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        return write(&mut writer).and_then(|()| writer.flush());
    }
    let access = if before.is_some() { Access::Private } else { of_new };
    let (beside, file) = create_beside(path, access)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let result = write(&mut writer)
        .and_then(|()| writer.flush())
        .and_then(|()| match before {
            Some(before) => give_access(path, writer.get_ref(), &before),
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

/// The file at the end of a path's links, existing or not.
fn destination(path: &Path) -> io::Result<PathBuf> {
    /// The limit of Linux.
    const MOST_LINKS: usize = 40;
    if let Ok(there) = fs::canonicalize(path) {
        return Ok(there);
    }
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        // Relative to the folder of the link.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("the links that it names lead in a circle"))
}

/// Gives a new file the access of an old one.
#[cfg(unix)]
fn give_access(path: &Path, file: &fs::File, before: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let now = file.metadata()?;
    let mut mode = before.mode() & 0o7777;
    if (now.uid(), now.gid()) != (before.uid(), before.gid())
        && let Err(error) = fchown(file, Some(before.uid()), Some(before.gid()))
    {
        let keeps_group =
            now.gid() == before.gid() || fchown(file, None, Some(before.gid())).is_ok();
        // Neither bits that lend an identity, nor a group's rights for another group.
        mode &= 0o777;
        if !keeps_group {
            mode &= 0o707 | (mode & 0o007) << 3;
        }
        let group = if keeps_group { "" } else { " and group" };
        tracing::warn!(
            path = %path.display(), %error,
            "the file was replaced, and its owner{group} could not be kept: it is yours now",
        );
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn give_access(_: &Path, file: &fs::File, before: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(before.permissions())
}

/// Options for creating a new file.
pub fn new_private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Flushes the new name to disk as well, if a folder can be opened.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// A new file in the folder of `path`: a rename within a folder is atomic. It is locked, which
/// tells other processes that it is being written.
fn create_beside(path: &Path, access: Access) -> io::Result<(PathBuf, fs::File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file")
    })?;
    remove_abandoned(path, name);
    let mut options = OpenOptions::new();
    let options = match access {
        Access::Usual => options.write(true).create_new(true),
        Access::Private => &new_private_file(),
    };
    loop {
        let mut beside = OsString::from(".");
        beside.push(name);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        beside.push(format!(".{}-{count}.tmp", std::process::id()));
        let beside = path.with_file_name(beside);
        match options.open(&beside) {
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

/// Removes unfinished files of ended processes beside `path`: files with such names that are not
/// locked. Files that cannot be removed are left.
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

/// Whether a file has the name of an unfinished one beside `name`: `.name.PROCESS-COUNT.tmp`.
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
            let ahead = folder.join("ahead");
            symlink("link-ahead", &ahead).unwrap();
            symlink("not-yet", folder.join("link-ahead")).unwrap();
            replace_file(&ahead, |writer| writer.write_all(b"made")).unwrap();
            assert_eq!(fs::read(folder.join("not-yet")).unwrap(), b"made");
            assert!(fs::symlink_metadata(&ahead).unwrap().is_symlink());
            symlink("circle", folder.join("circle")).unwrap();
            let error = replace_file(&folder.join("circle"), |_| Ok(())).unwrap_err();
            assert_eq!(error.to_string(), "the links that it names lead in a circle");
            replace_file(Path::new("/dev/null"), |writer| writer.write_all(b"gone")).unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// The modes of the files of a folder, while one of them is written.
    #[cfg(unix)]
    #[test]
    fn a_private_file_is_private_while_it_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("nnz-private-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let modes = || -> BTreeSet<u32> {
            let entries = fs::read_dir(&folder).unwrap().map(Result::unwrap);
            entries.map(|entry| entry.metadata().unwrap().permissions().mode() & 0o777).collect()
        };
        let check = |expected: BTreeSet<u32>| {
            assert_eq!(modes(), expected);
            Ok(())
        };
        replace_private_file(&path, |_| check([0o600].into())).unwrap();
        assert_eq!(modes(), [0o600].into());
        for mode in [0o600, 0o640, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            replace_file(&path, |_| check([0o600, mode].into())).unwrap();
            assert_eq!(modes(), [mode].into());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A test that is run by root can give files away.
    #[cfg(unix)]
    #[test]
    fn the_owner_of_a_file_is_kept_where_that_is_allowed() {
        use std::os::unix::fs::{MetadataExt, chown};
        let path = std::env::temp_dir().join(format!("nnz-owner-{}", std::process::id()));
        fs::write(&path, "old").unwrap();
        if chown(&path, Some(12_345), Some(23_456)).is_ok() {
            replace_file(&path, |writer| writer.write_all(b"new")).unwrap();
            let there = fs::metadata(&path).unwrap();
            assert_eq!((there.uid(), there.gid()), (12_345, 23_456));
        }
        assert!(replace_file(&path, |_| Ok(())).is_ok());
        fs::remove_file(&path).unwrap();
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
