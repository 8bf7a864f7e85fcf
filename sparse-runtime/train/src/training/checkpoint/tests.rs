//! Round trips, and files that are not what they should be.

use super::file::write;
use super::metadata::RUN;
use super::run_file::{RunFile, history_names, settled_name};
use super::tensor::Tensor;
use super::*;
use crate::predictor::Predictor;
use crate::training::tests::linear::Linear;
use nnz_arrays::bytes::Checksum;
use nnz_data::IdMap;
use nnz_optim::Sgd;
use nnz_step::optimizer::Updater;
use proptest::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own for each test, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let name = format!("nnz-checkpoint-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("model.safetensors")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A model with values of every kind, in a table of more than one piece.
fn model<T: Float, const GRAPH: u64>() -> Linear<T, GRAPH> {
    let mut model = Linear::<T, GRAPH>::new(5000);
    for (i, w) in model.w.values_mut().iter_mut().enumerate() {
        *w = T::of((i as f64 * 0.7).sin());
    }
    let odd = [f64::NAN, f64::INFINITY, -0.0, 1e-42, 1e-320];
    for (w, odd) in model.w.values_mut().iter_mut().zip(odd) {
        *w = T::of(odd);
    }
    model.b.values_mut()[0] = T::of(0.1);
    model
}

fn bits<T: Float>(model: &Linear<T, 1>) -> Vec<u64> {
    let values = model.w.values().iter().chain(model.b.values());
    values.map(|value| value.as_f64().to_bits()).collect()
}

/// The message of what must be refused, with the path and the model's untouched values checked.
#[track_caller]
fn refused(path: &Path) -> String {
    let mut into = model::<f32, 1>();
    let before = bits(&into);
    let error = load(&mut into, path).unwrap_err().to_string();
    assert_eq!(bits(&into), before, "half loaded: {error}");
    let prefix = format!("{}: ", path.display());
    let rest = error.strip_prefix(&prefix);
    rest.unwrap_or_else(|| panic!("no path in: {error}")).to_owned()
}

#[test]
fn what_was_saved_is_loaded_to_the_bit() {
    fn check<T: Float>(test: &str) {
        let folder = Folder::new(test);
        let saved = model::<T, 1>();
        save(&saved, folder.file()).unwrap();
        let mut loaded = Linear::<T>::new(5000);
        let metadata = load(&mut loaded, folder.file()).unwrap();
        assert_eq!(bits(&loaded), bits(&saved));
        assert_eq!(metadata, read_metadata(folder.file()).unwrap());
        assert_eq!((metadata.model.as_str(), metadata.fingerprint), ("Linear", 1));
        assert_eq!(metadata.dims.get("d"), Some(5000));
        let parameters = metadata.parameters.iter();
        let parameters: Vec<_> =
            parameters.map(|p| (p.name.as_str(), p.storage, p.element)).collect();
        assert_eq!(
            parameters,
            [("w", Storage::RowSparse, T::TYPE), ("b", Storage::Dense, T::TYPE)]
        );
    }
    check::<f32>("round-trip-f32");
    check::<f64>("round-trip-f64");
}

/// Other readers of safetensors understand the file; the same model gives the same bytes; nothing
/// else is left in the folder.
#[test]
fn a_file_is_plain_safetensors_and_deterministic() {
    let folder = Folder::new("plain");
    save(&model::<f32, 1>(), folder.file()).unwrap();
    let bytes = fs::read(folder.file()).unwrap();
    save(&model::<f32, 1>(), folder.file()).unwrap();
    assert_eq!(fs::read(folder.file()).unwrap(), bytes);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let w = tensors.tensor("w").unwrap();
    assert_eq!((w.dtype(), w.shape()), (Dtype::F32, &[5000, 1][..]));
    let expected = model::<f32, 1>();
    let values = w.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    assert!(values.zip(expected.w.values()).all(|(a, b)| a.to_bits() == b.to_bits()));
    assert_eq!(tensors.tensor("b").unwrap().data(), 0.1f32.to_le_bytes());
}

#[test]
fn another_graph_is_refused_with_what_differs() {
    let folder = Folder::new("graph");
    save(&model::<f32, 0xabc>(), folder.file()).unwrap();
    assert_eq!(
        refused(&folder.file()),
        "saved from model `Linear` (graph 0000000000000abc), which is another graph than model \
         `Linear` (0000000000000001)"
    );
    save(&model::<f64, 0xabc>(), folder.file()).unwrap();
    assert!(
        refused(&folder.file())
            .ends_with(": parameter `w` has elements of type f64 in the file and f32 in the model")
    );
}

#[test]
fn other_dimensions_are_refused_by_parameter() {
    let folder = Folder::new("dims");
    save(&Linear::<f32>::new(30), folder.file()).unwrap();
    assert_eq!(
        refused(&folder.file()),
        "parameter `w` has shape [30, 1] in the file and [5000, 1] in the model: make the model with the \
         dimensions of the file (d = 30)"
    );
    save(&model::<f64, 1>(), folder.file()).unwrap();
    assert!(refused(&folder.file()).contains("`w` has elements of type f64"));
}

#[test]
fn a_file_cut_short_or_grown_is_refused() {
    let folder = Folder::new("cut");
    save(&model::<f32, 1>(), folder.file()).unwrap();
    let bytes = fs::read(folder.file()).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for length in [0, 1, 7, 8, 9, header / 2, 8 + header - 1, 8 + header, bytes.len() - 1] {
        fs::write(folder.file(), &bytes[..length]).unwrap();
        let message = refused(&folder.file());
        assert!(message.starts_with("not a checkpoint: "), "{length}: {message}");
        assert!(read_metadata(folder.file()).is_err());
    }
    let mut grown = bytes.clone();
    grown.push(0);
    fs::write(folder.file(), grown).unwrap();
    assert!(refused(&folder.file()).contains("but has"));
}

#[test]
fn garbage_is_refused() {
    let folder = Folder::new("garbage");
    let with_header = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    };
    let huge = r#"{"w":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,16]}}"#;
    let overlapping = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    for bytes in [
        b"not a model at all, but text that is long enough".to_vec(),
        vec![0xff; 64],
        u64::MAX.to_le_bytes().to_vec(),
        with_header("", 0),
        with_header("{}", 0),
        with_header("[1, 2]", 0),
        with_header("{\"\u{0}\"", 0),
        with_header(huge, 16),
        with_header(overlapping, 4),
        with_header(r#"{"__metadata__":{"nnz":"{}"}}"#, 0),
        with_header(r#"{"__metadata__":{"nnz":"{\"format\":1,\"fingerprint\":\"xyz\"}"}}"#, 0),
    ] {
        fs::write(folder.file(), &bytes).unwrap();
        let message = refused(&folder.file());
        assert!(message.starts_with("not a checkpoint: "), "{message}");
    }
    assert!(refused(&folder.0.join("absent")).starts_with("cannot read"));
    assert!(refused(&folder.0).starts_with("cannot read"), "a folder");
}

#[test]
fn one_damaged_bit_is_found() {
    let folder = Folder::new("damaged");
    save(&model::<f32, 1>(), folder.file()).unwrap();
    let bytes = fs::read(folder.file()).unwrap();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for (position, parameter) in [(start, "w"), (start + 12_345, "w"), (bytes.len() - 1, "b")] {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        fs::write(folder.file(), damaged).unwrap();
        let message = refused(&folder.file());
        let expected = format!("the values of `{parameter}` are damaged");
        assert!(message.starts_with(&expected), "{message}");
    }
}

/// Of the header as well: whatever is changed in what it says of the model, the file is refused.
#[test]
fn one_damaged_byte_of_the_header_is_found() {
    let folder = Folder::new("header");
    let notes = [("index_base", "zero"), ("hash bits", "20")];
    save_with_notes(&model::<f32, 1>(), folder.file(), &notes).unwrap();
    let saved = read_metadata(folder.file()).unwrap();
    let found: Vec<_> = saved.notes.iter().map(|(name, note)| (&name[..], &note[..])).collect();
    assert_eq!(found, notes);
    let bytes = fs::read(folder.file()).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for position in 8..8 + length {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        fs::write(folder.file(), damaged).unwrap();
        // What is not refused says the same: a blank after the header, say.
        if let Ok(found) = read_metadata(folder.file()) {
            assert_eq!(found, saved, "byte {position}");
        }
    }
}

/// What a file calls a model or a parameter does not reach a terminal as it is.
#[test]
fn names_of_a_file_are_printed_with_their_escapes_escaped() {
    let folder = Folder::new("escapes");
    let entry = r#"{"format":1,"model":"\u001b[2J","fingerprint":"2","dims":[["d\u0007",1]],"parameters":[]}"#;
    write_with(&folder.file(), entry, &[]);
    let message = refused(&folder.file());
    assert!(message.starts_with(r"saved from model `\u{1b}[2J` (graph"), "{message}");
    assert_eq!(read_metadata(folder.file()).unwrap().dims.to_string(), r"d\u{7} = 1");
    write_with(&folder.file(), entry, &[("a\rb", Dtype::F32, &[1])]);
    assert_eq!(refused(&folder.file()), r"not a checkpoint: tensor `a\rb` is no parameter");
    let storage = r#"{"format":1,"fingerprint":"1","parameters":[{"name":"w","storage":"\u009b","checksum":"0"}]}"#;
    write_with(&folder.file(), storage, &[("w", Dtype::F32, &[1])]);
    assert_eq!(refused(&folder.file()), r"not a checkpoint: `\u{9b}` is not a storage type");
}

/// A file of our form with other contents.
fn write_with(path: &Path, entry: &str, tensors: &[(&str, Dtype, &[usize])]) {
    let data = vec![0; 1 << 16];
    let views = tensors.iter().map(|(name, dtype, shape)| {
        let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
        (*name, TensorView::new(*dtype, shape.to_vec(), &data[..bytes]).unwrap())
    });
    let metadata = HashMap::from([("nnz".to_owned(), entry.to_owned())]);
    let bytes = safetensors::serialize(views, Some(metadata)).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn each_way_in_which_parameters_can_differ_is_named() {
    let folder = Folder::new("differ");
    let entry = |parameters: &[(&str, &str)]| {
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, storage)| {
                format!(r#"{{"name":"{name}","storage":"{storage}","checksum":"0"}}"#)
            })
            .collect();
        let parameters = parameters.join(",");
        format!(r#"{{"format":1,"model":"Linear","fingerprint":"1","parameters":[{parameters}]}}"#)
    };
    let w: (&str, Dtype, &[usize]) = ("w", Dtype::F32, &[5000, 1]);
    let b: (&str, Dtype, &[usize]) = ("b", Dtype::F32, &[1]);
    let cases = [
        (entry(&[("b", "dense")]), vec![b], "parameter `w` is not in the file"),
        (
            entry(&[("w", "dense"), ("b", "dense")]),
            vec![w, b],
            "parameter `w` is dense in the file and row_sparse in the model",
        ),
        (
            entry(&[("w", "row_sparse"), ("b", "dense"), ("c", "dense")]),
            vec![w, b, ("c", Dtype::F32, &[2])],
            "the file has a parameter `c`, which the model has not",
        ),
        (
            entry(&[("w", "row_sparse"), ("b", "dense")]),
            vec![w, ("b", Dtype::U32, &[1])],
            "parameter `b` has elements of type u32 in the file and f32 in the model",
        ),
        (
            entry(&[("w", "row_sparse"), ("b", "dense")]),
            vec![w, ("b", Dtype::BF16, &[1])],
            "parameter `b` has elements of type bf16 in the file and f32 in the model",
        ),
        (
            entry(&[("w", "row_sparse"), ("b", "dense")]),
            vec![w, ("b", Dtype::I32, &[1])],
            "not a checkpoint: parameter `b` has elements of type I32",
        ),
        (
            entry(&[("w", "row_sparse"), ("b", "dense")]),
            vec![w],
            "not a checkpoint: parameter `b` has no tensor",
        ),
        (entry(&[("w", "row_sparse")]), vec![w, b], "not a checkpoint: tensor `b` is no parameter"),
        (
            entry(&[("w", "coo"), ("b", "dense")]),
            vec![w, b],
            "not a checkpoint: `coo` is not a storage type",
        ),
        (
            r#"{"format":3,"models":[]}"#.to_owned(),
            vec![w, b],
            "written in format 3, but this version of the library reads formats up to 2: update it",
        ),
    ];
    for (entry, tensors, message) in cases {
        write_with(&folder.file(), &entry, &tensors);
        assert_eq!(refused(&folder.file()), message);
    }
}

proptest! {
    /// Whatever stands in the header, loading does not panic and does not load by halves.
    #[test]
    fn any_header_is_loaded_or_refused(changes in proptest::collection::vec((0usize..500, any::<u8>()), 1..4)) {
        let folder = Folder::new("any");
        let saved = model::<f32, 1>();
        save(&saved, folder.file()).unwrap();
        let mut bytes = fs::read(folder.file()).unwrap();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (position, byte) in changes {
            bytes[position % header] = byte;
        }
        fs::write(folder.file(), &bytes).unwrap();
        let mut into = Linear::<f32>::new(5000);
        let before = bits(&into);
        let result = load(&mut into, folder.file());
        prop_assert_eq!(bits(&into), if result.is_ok() { bits(&saved) } else { before });
    }
}

#[test]
fn a_failed_save_leaves_the_old_file() {
    let folder = Folder::new("failed");
    let into = folder.0.join("absent").join("model.safetensors");
    let error = save(&model::<f32, 1>(), &into).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: cannot write: ", into.display())), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn element_types_have_one_checksum_each() {
    let values = [1.0f32, -2.5, 3.25];
    let wide = values.map(f64::from);
    assert_ne!(Checksum::of(&values), Checksum::of(&wide));
    assert_ne!(Checksum::of(&[0.0f32]), Checksum::of(&[0.0f32; 2]));
    assert_ne!(Checksum::of(&values), Checksum::of(&[-2.5f32, 1.0, 3.25]));
}

/// A run of an updater that keeps a history of idle steps, with what it says of itself changed.
fn crafted(path: &Path, change: impl FnOnce(&mut RunFile)) {
    let mut model = Linear::<f64>::new(5);
    let mut updater = updater(&model);
    for _ in 0..3 {
        updater.begin_step().unwrap();
        let mut rows = updater.rows(0, model.w.table_mut()).unwrap();
        rows.settle(2);
        rows.update(2, 0, 0.5);
        rows.finish();
        updater.end_step().unwrap();
    }
    let tables = [model.w.table(), model.b.table()];
    let mut file = RunFile {
        run: Run::default(),
        updater: updater.snapshot(&tables),
        reduction: Default::default(),
        settings: updater.settings(),
    };
    file.updater.parameters.iter_mut().for_each(|parameter| parameter.has_states = false);
    change(&mut file);
    let text = file.text(path).unwrap();
    let mut tensors = vec![];
    for (index, group) in file.updater.groups.iter().enumerate() {
        let [starts, maps] = history_names(index);
        tensors.push(Tensor::of_integers(starts, Dtype::U64, &group.starts, u64::to_le_bytes));
        tensors.push(Tensor::of_values(maps, vec![group.maps.len()], &group.maps));
    }
    for (parameter, name) in file.updater.parameters.iter().zip(["w", "b"]) {
        if !parameter.last.is_empty() {
            let (name, last) = (settled_name(name), &parameter.last);
            tensors.push(Tensor::of_integers(name, Dtype::U32, last, u32::to_le_bytes));
        }
    }
    tensors.push(Tensor::new(RUN.to_owned(), Dtype::U8, vec![text.len()], |take| take(&text)));
    write(&model, path, false, &tensors, &[]).unwrap();
}

fn updater(model: &Linear<f64>) -> Updater<Sgd, f64> {
    let rule = Sgd { weight_decay: 0.01, ..Sgd::default() };
    Updater::for_model(rule, model).unwrap()
}

#[test]
fn a_crafted_run_is_refused_before_anything_is_changed() {
    let folder = Folder::new("crafted");
    let path = &folder.file();
    let load = || {
        let mut model = Linear::<f64>::new(5);
        let mut updater = updater(&model);
        let run = load_run(&mut model, &mut updater, path);
        // What is accepted can be gone on with.
        run.inspect(|_| updater.flush_model(&mut model).unwrap())
    };
    crafted(path, |_| {});
    load().unwrap();
    type Change = fn(&mut RunFile);
    let changes: &[(Change, &str)] = &[
        (|file| file.updater.clock = u64::MAX, "it has made 18446744073709551615 steps"),
        (
            |file| {
                file.updater.clock = u64::MAX;
                file.updater.groups[0].starts = vec![0];
            },
            "no run makes more",
        ),
        (|file| file.updater.groups[0].starts[0] = u64::MAX, "must ascend up to step 3"),
        (
            |file| {
                let group = &mut file.updater.groups[0];
                group.starts = vec![2, 1];
                group.maps = [&group.maps[..], &group.maps].concat();
            },
            "must ascend up to step 3",
        ),
        (|file| file.updater.groups[0].maps.push(1.0), "the numbers of one map"),
        (|file| file.updater.groups[0].activated = 4, "begins at step 4, but 3 were made"),
        (
            |file| file.updater.parameters[0].base = u64::MAX,
            "settled up to step 18446744073709551615",
        ),
        (
            |file| file.updater.parameters[0].last = vec![0, 0, u32::MAX, 0, 0],
            "row 2 of parameter `w`",
        ),
        (|file| file.updater.parameters[0].last = vec![0], "it knows 1 rows"),
        (|file| file.updater.learning_rate = f64::NAN.to_bits(), "learning rate is NaN"),
        (|file| file.run.position.epoch = u64::MAX, "18446744073709551615 epochs"),
        (|file| file.run.position.batch = u64::MAX, "18446744073709551615 epochs"),
        (|file| file.run.totals.n_batches = u64::MAX, "18446744073709551615 epochs"),
        (|file| file.run.totals.n_rows = u64::MAX, "18446744073709551615 epochs"),
        (|file| file.reduction.n_samples = usize::MAX, "18446744073709551615 epochs"),
        (|file| file.reduction.n_samples = 1 << 50, "no memory for what it keeps of"),
    ];
    for (index, (change, message)) in changes.iter().enumerate() {
        crafted(path, change);
        let error = load().unwrap_err().to_string();
        assert!(error.contains(message), "{index}: {error}");
    }
}

/// Nothing is made of a header that contradicts itself, whatever it promises.
#[test]
fn dimensions_of_a_file_are_compared_with_its_shapes() {
    let folder = Folder::new("promises");
    let model = Linear::<f32>::new(5);
    save(&model, folder.file()).unwrap();
    let mut saved = read_metadata(folder.file()).unwrap();
    saved.check_dims::<Linear<f32>>().unwrap();
    saved.dims = saved.dims.with("d", 1 << 40);
    let error = saved.check_dims::<Linear<f32>>().unwrap_err().to_string();
    assert_eq!(
        error,
        "parameter `w` has shape [5, 1] in the file and [1099511627776, 1] in the model: make the model with \
         the dimensions of the file (d = 1099511627776)"
    );
    saved.parameters.remove(0);
    let error = saved.check_dims::<Linear<f32>>().unwrap_err().to_string();
    assert_eq!(error, "parameter `w` is not in the file");
}

#[test]
fn ids_are_in_the_file_of_the_model() {
    let folder = Folder::new("ids");
    let users: IdMap = (0..9000)
        .map(|i| format!("user {i} \n é"))
        .collect::<Vec<_>>()
        .iter()
        .map(String::as_str)
        .collect();
    let (items, none): (IdMap, IdMap) = (["", "Solaris"].into_iter().collect(), IdMap::new());
    let saved = model::<f32, 1>();
    let ids = [("user", &users), ("item", &items), ("none", &none)];
    let notes = [("format", "ratings")];
    save_with(&saved, folder.file(), Attachments { notes: &notes, ids: &ids }).unwrap();
    let (metadata, found) = read_ids(folder.file()).unwrap();
    let found: Vec<_> = found.iter().map(|(name, map)| (&name[..], map)).collect();
    assert_eq!(found, ids);
    assert!(!metadata.has_run() && metadata.notes.len() == 1);
    let mut loaded = Linear::<f32>::new(5000);
    assert_eq!(load(&mut loaded, folder.file()).unwrap(), metadata);
    assert_eq!(bits(&loaded), bits(&saved));
    // Others see tensors like any.
    let bytes = fs::read(folder.file()).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("ids.item.text").unwrap().data(), b"Solaris");
    assert_eq!(
        tensors.tensor("ids.item.ends").unwrap().data(),
        [[0; 8], 7u64.to_le_bytes()].concat()
    );
    // A byte of them.
    let mut damaged = bytes.clone();
    let position = bytes.windows(7).rposition(|bytes| bytes == b"Solaris").unwrap();
    damaged[position] ^= 1;
    fs::write(folder.file(), damaged).unwrap();
    let error = read_ids(folder.file()).unwrap_err().to_string();
    assert!(error.contains("the values of `ids.item.text` are damaged"), "{error}");
    save(&saved, folder.file()).unwrap();
    assert_eq!(read_ids(folder.file()).unwrap().1, []);
}

/// Header and values are of one file, whichever is there when it is opened.
#[test]
fn a_model_is_opened_while_others_are_saved_in_its_place() {
    let folder = Folder::new("opened");
    let models = [1.0, 2.0].map(|value| {
        let mut model = Linear::<f32>::new(3000);
        model.w.values_mut().fill(value);
        model
    });
    save(&models[0], folder.file()).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..60 {
                save(&models[round % 2], folder.file()).unwrap();
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            let opened = Predictor::<Linear<f32>>::open(folder.file()).unwrap();
            let mut scorer = opened.scorer().unwrap();
            let weights = scorer.model().w.values();
            assert!(weights.iter().all(|weight| *weight == weights[0]));
            load(&mut Linear::<f32>::new(3000), folder.file()).unwrap();
        }
    });
}

/// The sums of the first format were computed by a program in Python, of zeros and of the entry.
#[test]
fn files_of_the_first_format_are_read_by_its_checksums() {
    let folder = Folder::new("format-1");
    let entry = concat!(
        r#"{"format":1,"model":"Linear","fingerprint":"0000000000000001","dims":[["d",5]],"parameters":["#,
        r#"{"name":"w","storage":"row_sparse","checksum":"96662485be5ba450"},"#,
        r#"{"name":"b","storage":"dense","checksum":"2fe94f82ae8bef77"}],"checksum":"677cee1096a4004b"}"#,
    );
    let tensors: [(&str, Dtype, &[usize]); 2] =
        [("w", Dtype::F32, &[5, 1]), ("b", Dtype::F32, &[1])];
    write_with(&folder.file(), entry, &tensors);
    let mut into = Linear::<f32>::new(5);
    into.w.values_mut().fill(1.0);
    load(&mut into, folder.file()).unwrap();
    assert!(into.w.values().iter().all(|weight| *weight == 0.0));
    let opened = Predictor::<Linear<f32>>::open(folder.file()).unwrap();
    assert!(opened.scorer().is_ok());
    write_with(&folder.file(), &entry.replace(r#"["d",5]"#, r#"["d",6]"#), &tensors);
    assert_eq!(refused(&folder.file()), "not a checkpoint: its entry `nnz` is damaged");
    let mut bytes = {
        write_with(&folder.file(), entry, &tensors);
        fs::read(folder.file()).unwrap()
    };
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(folder.file(), bytes).unwrap();
    assert!(load(&mut into, folder.file()).unwrap_err().to_string().contains("are damaged"));
}

/// 1.3 kB of header that promise a table of 785 MB, and one of 4 TB.
#[test]
fn nothing_is_made_of_a_header_that_contradicts_itself() {
    let folder = Folder::new("contradicts");
    for d in [196_250_000usize, 1 << 40, usize::MAX] {
        let entry = format!(
            r#"{{"format":1,"model":"Linear","fingerprint":"1","dims":[["d",{d}]],"parameters":[
            {{"name":"w","storage":"row_sparse","checksum":"0"}},{{"name":"b","storage":"dense","checksum":"0"}}]}}"#
        );
        write_with(&folder.file(), &entry, &[("w", Dtype::F32, &[5, 1]), ("b", Dtype::F32, &[1])]);
        let Err(error) = Predictor::<Linear<f32>>::open(folder.file()) else { panic!("{d}") };
        let expected =
            format!("parameter `w` has shape [5, 1] in the file and [{d}, 1] in the model");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
