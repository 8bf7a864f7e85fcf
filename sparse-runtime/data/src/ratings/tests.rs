//! Ratings as they are read.

use super::*;
use crate::{ColumnValues, Dataset, OnError, ReadError, TextReader};
use nnz_arrays::formats;

fn read(format: Ratings, text: &str) -> Result<Dataset, ReadError> {
    TextReader::new(format).read_bytes("file", text.as_bytes())
}

/// Users, items and ratings.
fn content(data: &Dataset) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let ids = |name| match data.column(name).unwrap().values() {
        ColumnValues::Ids(formats::Ids::U32(ids)) => ids.values().to_vec(),
        _ => panic!("ids are u32"),
    };
    let Some(ColumnValues::Dense(ratings)) = data.labels() else { panic!("ratings are numbers") };
    (ids("user"), ids("item"), ratings.values().to_vec())
}

#[test]
fn lines_without_ratings_are_enough_to_predict() {
    let map = |ids: [&'static str; 2]| IdMap::from_iter(ids);
    let known = Ratings::new().users(map(["u", "v"])).items(map(["i", "j"])).without_labels();
    for text in ["v,i\nu,j\n", "v i\nu j\n", "user,item,rating\nv,i,5\nu,j,?\n"] {
        let data = read(known.clone(), text).unwrap();
        assert_eq!((data.n_rows(), data.columns().len()), (2, 2), "{text}");
        assert!(data.labels().is_none());
    }
    let error = read(known, "v,i\nw,j\n").unwrap_err().to_string();
    assert!(error.contains("file:2:1"), "{error}");
}

#[test]
fn separators_and_headers() {
    let expected = (vec![0, 1, 0], vec![0, 0, 1], vec![5.0, 3.5, -1.0]);
    for text in [
        "u,i,5\nv,i,3.5\nu,j,-1\n",
        "user,item,rating\r\nu,i,5\r\nv,i,3.5\r\nu,j,-1",
        "u\ti\t5\t0\nv\ti\t3.5\t1\n\nu\tj\t-1\n",
        "u::i::5::0\nv::i::3.5::1\nu::j::-1::2\n",
        " u  i 5 977\nv i\t3.5\nu j -1\n",
        "userId movieId rating\nu i 5\nv i 3.5\nu j -1\n",
        "\"user\",\"item\",\"rating\"\nu,i,5\nv,i,3.5\nu,j,-1\n",
    ] {
        let data = read(Ratings::new(), text).unwrap();
        assert_eq!(content(&data), expected, "{text}");
        assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["u", "v"]);
        assert_eq!(data.id_map("item").unwrap().ids().collect::<Vec<_>>(), ["i", "j"]);
        // Other labels are of the same users and items.
        let tags = Dataset::features_only(formats::Csr::zeros(data.n_rows(), 3)).unwrap();
        let tagged = data.with_labels_from(tags).unwrap();
        assert_eq!(tagged.id_map("user").unwrap().len(), 2);
    }
    let text = "a b,c::d,4\n";
    let data = read(Ratings::new().separator(Separator::Comma), text).unwrap();
    assert_eq!(data.id_map("user").unwrap().id(0), Some("a b"));
    assert_eq!(data.id_map("item").unwrap().id(0), Some("c::d"));
}

#[test]
fn what_is_wrong_is_named() {
    let refused = |text: &str| read(Ratings::new(), text).unwrap_err().to_string();
    for (text, message) in [
        ("u,i,5\nu,i\n", "file:2:4: expected a number in the column `rating`, found nothing"),
        ("u,i,5\nu,,x\n", "file:2:4: expected a number in the column `rating`, found `x`"),
        ("u,i,5\nu,,5\n", "file:2:3: expected an id in the column `item`, found nothing"),
        ("u,i,nan\nu,j,1\n", "file:1:5: label `nan` is not a finite number"),
        ("u,i,Inf\nu,j,1\n", "file:1:5: label `Inf` is not a finite number"),
        ("u,i,N/A\n", "file:1:5: expected a number in the column `rating`, found `N/A`"),
        ("user,item,rating\n", "`file` has no rows"),
        ("u,i,5\nu,i,nan\n", "file:2:5: label `nan` is not a finite number"),
        ("u\0,i,5\n", "file:1:2: a NUL byte"),
        ("\n\n", "`file` has no rows"),
    ] {
        assert!(refused(text).starts_with(message), "{}", refused(text));
    }
    let error = TextReader::new(Ratings::new()).read_bytes("file", b"\xffu,i,5\n").unwrap_err();
    assert!(error.to_string().starts_with("file:1:1: expected text in UTF-8"), "{error}");
}

#[test]
fn d9_titles_of_other_columns_are_refused() {
    let refused = |format: Ratings, text: &str| read(format, text).unwrap_err().to_string();
    for (text, message) in [
        (
            ",User_id,Item_id,Score\n0,303,103,0\n",
            "file:1:1: the first line has 4 titles, of which number 1 is nothing: a line begins",
        ),
        ("\"\",\"user\",\"item\"\n0,303,103\n", "file:1:1: the first line has 3 titles"),
        ("id,user,item,rating\n0,3,1,5\n", "file:1:4: the first line has 4 titles, of which"),
        ("movieId\tuserId\trating\n3\t1\t5\n", "file:1:9: the first line has 3 titles"),
    ] {
        assert!(refused(Ratings::new(), text).starts_with(message), "{text}");
        assert!(refused(Ratings::new(), text).contains("in this order"));
    }
    let map = |ids: [&'static str; 1]| IdMap::from_iter(ids);
    let known = Ratings::new().users(map(["0"])).items(map(["303"])).without_labels();
    assert!(refused(known, ",user,item\n0,303,103\n").contains("number 1 is nothing"));
    // Titles in words of their own, and more columns after the three, say nothing against it.
    for text in ["who,what,stars\na,b,1\n", "user_id,movie,score,timestamp\na,b,1,9\n"] {
        assert_eq!(read(Ratings::new(), text).unwrap().n_rows(), 1, "{text}");
    }
}

#[test]
fn d8_a_byte_order_mark_before_a_line_is_not_part_of_an_id() {
    let text = "\u{feff}anna,x,1\n\u{feff}anna,y,2\nbert,x,3\n";
    let data = read(Ratings::new(), text).unwrap();
    assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["anna", "bert"]);
    let error = read(Ratings::new(), "a,x,1\n\u{feff}b,y,?\n").unwrap_err().to_string();
    assert!(error.starts_with("file:2:"), "{error}");
}

#[test]
fn d7_lines_that_end_in_carriage_returns_are_refused() {
    for text in ["1,10,5,100\r2,11,3,101\r", "user,item,rating\r1,10,5\r2,11,3\r"] {
        let error = read(Ratings::new(), text).unwrap_err().to_string();
        assert!(error.contains("carriage return (CR) within a line"), "{error}");
    }
    assert_eq!(read(Ratings::new(), "1,10,5,a\r\r\n2,11,3,b\r\n").unwrap().n_rows(), 2);
}

#[test]
fn test_data_has_the_ids_of_the_training_data() {
    let train = read(Ratings::new(), "u,i,5\nv,j,3\n").unwrap();
    let map = |name| train.id_map(name).unwrap().clone();
    let known = Ratings::new().users(map("user")).items(map("item"));
    let test = read(known.clone(), "v,i,1\n").unwrap();
    assert_eq!(content(&test), (vec![1], vec![0], vec![1.0]));
    let error = read(known.clone(), "v,i,1\nw,i,1\n").unwrap_err();
    assert_eq!(error.to_string(), "file:2:1: the user `w` is not among the 2 that are known");
    let reader = TextReader::new(known).on_error(OnError::Skip(9));
    let test = reader.read_bytes("file", b"w,i,1\nv,k,1\nu,j,2\n").unwrap();
    assert_eq!(content(&test), (vec![0], vec![1], vec![2.0]));
    assert_eq!(test.report().unwrap().n_skipped, 2);
}

#[test]
fn unknown_ids_have_the_number_behind_the_known_ones() {
    let map = |ids: [&'static str; 2]| IdMap::from_iter(ids);
    let known = Ratings::new().users(map(["u", "v"])).items(map(["i", "j"])).number_unknown();
    let data = read(known, "v,k,1\nw,i,2\nx,j,3\n").unwrap();
    assert_eq!(content(&data), (vec![1, 2, 2], vec![2, 0, 1], vec![1.0, 2.0, 3.0]));
    assert_eq!(data.id_map("user").unwrap().len(), 2);
}

#[test]
fn a_skipped_line_numbers_no_ids() {
    let reader = TextReader::new(Ratings::new()).on_error(OnError::Skip(9));
    let data = reader.read_bytes("file", b"u,i,5\nv,j,?\nw,,1\nx,i,1\n").unwrap();
    assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["u", "x"]);
    assert_eq!(data.id_map("item").unwrap().len(), 1);
}

#[test]
fn a_field_behind_the_rating_is_the_weight() {
    let weights = |text: &str| {
        let data = read(Ratings::new().weight(4), text)?;
        Ok(match data.column(WEIGHT).unwrap().values() {
            ColumnValues::Dense(weights) => weights.values().to_vec(),
            _ => panic!("weights are numbers"),
        })
    };
    let found: Result<_, ReadError> = weights("u,i,5,77,0.5\nv,i,3,78,2\n");
    assert_eq!(found.unwrap(), [0.5, 2.0]);
    for (text, place) in [("u,i,5,77,-1\n", "file:1:10"), ("u,i,5,77\n", "file:1:9")] {
        let error = weights(text).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("a weight of at least 0"), "{error}");
    }
    let known = || IdMap::from_iter(["u"]);
    let format = Ratings::new().weight(3).users(known()).items(known()).without_labels();
    assert_eq!(read(format, "u,u\n").unwrap().columns().len(), 2);
}
