//! Quoted fields of a stream, in which a line end is the end of a sample.

use super::*;

fn error(name: &str, text: &[u8]) -> String {
    let file = TempFile::new(name, text);
    let format = Delimited::csv(Hashing::new(8).unwrap()).label("y").categorical("x");
    let data = Stream::new(format).file(&file.0).buffer(1 << 20).open().unwrap();
    error_of(&data, &[]).replace(&file.0.display().to_string(), "file")
}

#[test]
fn a_line_end_within_quotes_is_refused_with_what_to_do() {
    let found = error("quoted-line", b"1,a\n0,\"b\nc\"\n");
    let expected =
        "file:2:3: a quoted field does not end in its line: in a stream every line end is";
    assert!(found.starts_with(expected), "{found}");
    let found = error("quoted-end", b"1,\"a\"b\n");
    assert!(found.starts_with("file:1:6: a quoted field must end with"), "{found}");
}

/// The byte stands for a line end within quotes where text is read into memory.
#[test]
fn a_byte_that_stands_for_a_line_end_is_refused_in_a_stream() {
    for text in [&b"1,a\n0,\"b\xffc\"\n"[..], b"1,a\n0,b\xffc\n"] {
        let found = error("ff", text);
        assert!(found.starts_with("file:2:"), "{found}");
        assert!(found.contains("expected text in UTF-8"), "{found}");
    }
}
