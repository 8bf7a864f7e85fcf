//! What `tracing` is told of a run.

use super::{data, model};
use nnz::prelude::*;
use std::sync::{Arc, Mutex};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The names of spans where they are entered and left.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<(Vec<&'static str>, Vec<String>)>>);

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let names = &mut self.0.lock().unwrap().0;
        names.push(span.metadata().name());
        Id::from_u64(names.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        let (names, told) = &mut *self.0.lock().unwrap();
        told.push(format!("{} {{", names[span.into_u64() as usize - 1]));
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().1.push("}".to_owned());
    }
}

#[test]
fn a_run_its_epochs_and_evaluations_are_spans() {
    let (data, spans) = (data(), Spans::default());
    let svrg = Svrg { update_freq: 2, rule: Sgd::default() };
    tracing::subscriber::with_default(spans.clone(), || {
        let trainer = Trainer::new(svrg).epochs(2).batch_size(8).evaluation(&data);
        trainer.progress(Progress::Silent).fit(&mut model(), &data).unwrap();
    });
    let told = spans.0.lock().unwrap().1.join(" ");
    let expected = "fit { epoch { full gradient { } evaluation { } } epoch { evaluation { } } }";
    assert_eq!(told, expected);
}
