//! Metrics against numbers computed by other means, and against their own definition.

use super::*;
use nnz_arrays::formats::Dense;
use proptest::prelude::*;

/// Metrics that have a meaning for one probability a row.
const ALL: [&dyn Metric; 15] = [
    &Mse,
    &Rmse,
    &Mae,
    &Pearson,
    &Accuracy,
    &LogLoss,
    &Perplexity { ignore_label: None },
    &Auc,
    &PrAuc,
    &F1,
    &Matthews,
    &Precision { threshold: 0.25 },
    &Recall { threshold: 0.25 },
    &Calibration { n_bins: 4 },
    &Loss,
];

fn dense<T: Float>(shape: &[usize], values: &[f64]) -> Dense<T> {
    let values = values.iter().map(|&value| T::of(value)).collect();
    Dense::new(nnz_arrays::formats::Shape::new(shape), values).unwrap()
}

#[track_caller]
fn check(metric: &impl Metric, outputs: (&[usize], &[f64]), labels: &[f64], expected: f64) {
    let outputs = dense::<f64>(outputs.0, outputs.1);
    let labels = dense(&[labels.len()], labels);
    let found = metric.evaluate(outputs.view(), LabelsView::Real(labels.view())).unwrap();
    assert!((found - expected).abs() < 1e-14, "{found}");
}

#[track_caller]
fn check_classes(metric: &impl Metric, scores: &Dense<f64>, classes: &[u32], expected: f64) {
    let classes = Dense::new([classes.len()], classes.to_vec()).unwrap();
    let found = metric.evaluate(scores.view(), LabelsView::Classes((&classes).into())).unwrap();
    assert!((found - expected).abs() < 1e-14, "{found}");
}

#[test]
fn squared_errors() {
    let labels = [1.0, -1.0, 0.0, 7.0];
    let outputs = [1.5, -2.0, 0.25, 4.0];
    check(&Mse, (&[4], &outputs), &labels, 2.578125);
    check(&Rmse, (&[4, 1], &outputs), &labels, 1.605_654_072_333_141_2);
    check(&Mae, (&[4], &outputs), &labels, 1.1875);
    check(&Pearson, (&[4, 1], &outputs), &labels, 0.924_004_812_004_348_7);
    check(&Loss, (&[4], &outputs), &labels, 0.9375);
    // Several columns: the mean over all elements.
    let (outputs, labels) = (dense(&[2, 2], &outputs), dense(&[2, 2], &labels));
    let labels = LabelsView::Real(labels.view());
    assert_eq!(Mse.evaluate::<f32>(outputs.view(), labels).unwrap(), 2.578125);
}

#[test]
fn binary_metrics_understand_both_labellings() {
    let probabilities = (&[5, 1][..], &[0.9, 0.2, 0.65, 0.5, 0.1][..]);
    for labels in [[1.0, 0.0, 0.0, 1.0, 1.0], [1.0, -1.0, -1.0, 1.0, 1.0]] {
        check(&LogLoss, probabilities, &labels, 0.874_811_693_004_941);
        check(&Accuracy, probabilities, &labels, 0.6);
        check(&Auc, probabilities, &labels, 0.5);
        // Two rightly positive, one wrongly, one missed.
        check(&F1, probabilities, &labels, 2.0 / 3.0);
        check(&Matthews, probabilities, &labels, 1.0 / 6.0);
    }
    check_classes(&Accuracy, &dense(&[2], &[0.5, 0.4]), &[1, 1], 0.5);
}

#[test]
fn precision_and_recall_are_of_a_threshold_of_the_probability() {
    let (outputs, labels) =
        ((&[5, 1][..], &[0.9, 0.2, 0.65, 0.5, 0.1][..]), [1.0, 0.0, 0.0, 1.0, 1.0]);
    // Predicted positive: 0.9, 0.65 and 0.5, of which two are; of three positive samples.
    check(&Precision::default(), outputs, &labels, 2.0 / 3.0);
    check(&Recall::default(), outputs, &labels, 2.0 / 3.0);
    // 0.9 alone; everything; nothing.
    check(&Precision { threshold: 0.7 }, outputs, &labels, 1.0);
    check(&Recall { threshold: 0.7 }, outputs, &labels, 1.0 / 3.0);
    check(&Precision { threshold: 0.0 }, outputs, &labels, 0.6);
    check(&Precision { threshold: 1.0 }, outputs, &labels, 0.0);
    check(&Recall { threshold: 1.0 }, outputs, &labels, 0.0);
    // ln 3 is the score of 3/4.
    let scores = dense::<f32>(&[3, 1], &[1.0, 1.2, -1.0]);
    let of = |metric: &dyn Metric| see_scores(metric, Link::Sigmoid, &scores, &[0.0, 1.0, 1.0]);
    assert_eq!(of(&Precision { threshold: 0.75 }), 1.0);
    assert_eq!(of(&Recall { threshold: 0.75 }), 0.5);
    assert_eq!(of(&Recall { threshold: 0.0 }), 1.0);
    // With two outputs the larger is predicted.
    let scores = dense(&[3, 2], &[0.4, 0.6, 0.6, 0.4, 0.3, 0.7]);
    check_classes(&Precision { threshold: 0.9 }, &scores, &[1, 1, 0], 0.5);
}

#[test]
fn calibration_compares_mean_predictions_with_shares_of_positives() {
    // Bins [0, 1/2) and [1/2, 1]: 0.1 and 0.3 beside half, 0.5, 0.8 and 1 beside a third.
    let (outputs, labels) = ([0.1, 0.3, 0.5, 0.8, 1.0], [1.0, -1.0, 0.0, 0.0, 1.0]);
    let two = Calibration { n_bins: 2 };
    let expected = 0.4 * (0.5 - 0.2) + 0.6 * (2.3 / 3.0 - 1.0 / 3.0);
    check(&two, (&[5], &outputs), &labels, expected);
    let mut seen = two.seen();
    let (outputs, labels) = (dense::<f64>(&[5, 1], &outputs), dense(&[5], &labels));
    seen.update(outputs.view(), LabelsView::Real(labels.view())).unwrap();
    let bins = seen.bins();
    let ends: Vec<_> = bins.iter().map(|bin| (bin.low, bin.high, bin.weight)).collect();
    assert_eq!(ends, [(0.0, 0.5, 2.0), (0.5, 1.0, 3.0)]);
    assert_eq!(bins[0].mean_prediction(), Some(0.2));
    assert_eq!(
        (bins[0].share_of_positives(), bins[1].share_of_positives()),
        (Some(0.5), Some(1.0 / 3.0))
    );
    assert_eq!(Calibration { n_bins: 4 }.seen().bins()[1].share_of_positives(), None);
    // 0 from 1 of 0.5; a sigmoid of 0 is in the upper bin.
    let scores = dense::<f32>(&[1, 1], &[0.0]);
    assert_eq!(see_scores(&two, Link::Sigmoid, &scores, &[1.0]), 0.5);
    let beyond = dense::<f64>(&[1], &[1.5]);
    let error = two.evaluate(beyond.view(), LabelsView::Real(beyond.view())).unwrap_err();
    assert!(error.to_string().contains("1.5 in row 0 is not a probability"), "{error}");
}

#[test]
fn log_loss_of_labels_that_are_probabilities() {
    check(&LogLoss, (&[2], &[0.4, 0.9]), &[0.3, 0.75], 0.643_565_908_095_160_6);
}

#[test]
fn class_metrics() {
    let scores = dense(&[3, 3], &[0.7, 0.2, 0.1, 0.1, 0.3, 0.6, 0.3, 0.4, 0.3]);
    check_classes(&LogLoss, &scores, &[0, 2, 0], 0.690_491_124_010_219_7);
    check_classes(&Accuracy, &scores, &[0, 2, 0], 2.0 / 3.0);
    check_classes(&Perplexity::default(), &scores, &[0, 2, 0], 1.994_694_935_295_251_7);
    // What is ignored need not be a class.
    check_classes(&Perplexity { ignore_label: Some(0) }, &scores, &[0, 2, 0], 1.0 / 0.6);
    check_classes(&Perplexity { ignore_label: Some(9) }, &scores, &[9, 2, 9], 1.0 / 0.6);
    // Of equal scores the first is predicted.
    let equal = dense(&[2, 2], &[0.5, 0.5, 0.5, 0.5]);
    check_classes(&Accuracy, &equal, &[0, 1], 0.5);
}

/// Scores as a model has them, in f32, with the labels.
fn see_scores(metric: &dyn Metric, link: Link, scores: &Dense<f32>, labels: &[f64]) -> f64 {
    let mut seen = [metric.start()];
    let labels = dense(&[labels.len()], labels);
    let scores = Predicted::Scores(Scores { link, values: scores.view() });
    let labels = LabelsView::Real(labels.view());
    Widened::default().update(scores, labels, None, &mut seen).unwrap();
    seen[0].value().unwrap()
}

const SATURATED: [f64; 8] = [-40.0, -20.0, -18.0, -17.5, 17.5, 18.0, 20.0, 40.0];
const OF_SATURATED: [f64; 8] = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0];

#[test]
fn n4_metrics_of_probabilities_that_are_one_in_f32_are_those_of_the_scores() {
    let scores = dense::<f32>(&[8, 1], &SATURATED);
    let of = |metric: &dyn Metric| see_scores(metric, Link::Sigmoid, &scores, &OF_SATURATED);
    assert_eq!(of(&Auc), 0.75);
    assert!((of(&LogLoss) - 4.750_000_01).abs() < 1e-8, "{}", of(&LogLoss));
    assert_eq!(of(&Accuracy), 0.75);
    assert_eq!(of(&F1), 0.75);
    // The others see probabilities that f64 tells apart.
    let mut rows: Vec<_> = SATURATED.iter().zip(OF_SATURATED).collect();
    rows.sort_by(|a, b| b.0.total_cmp(a.0));
    let (mut positives, mut precision) = (0.0, 0.0);
    for (at, (_, label)) in rows.iter().enumerate() {
        positives += label;
        precision += label * positives / (at + 1) as f64;
    }
    assert!((of(&PrAuc) - precision / 4.0).abs() < 1e-15);
    let squares = SATURATED.iter().zip(OF_SATURATED);
    let squares: f64 = squares.map(|(s, t)| (1.0 / (1.0 + (-s).exp()) - t).powi(2)).sum();
    assert!((of(&Mse) - squares / 8.0).abs() < 1e-15);
    assert_eq!(of(&BatchMean(Auc)), 0.75);
    let named = Named { name: "again", metric: Auc };
    assert_eq!(of(&named), 0.75);
}

#[test]
fn n4_class_metrics_see_scores_whose_probabilities_are_zero() {
    let scores = dense::<f32>(&[2, 3], &[900.0, 1.0, 2.0, -900.0, 3.0, 900.0]);
    let classes = Dense::new([2], vec![2u32, 1]).unwrap();
    let of = |metric: &dyn Metric| {
        let mut seen = [metric.start()];
        let scores = Scores { link: Link::Softmax, values: scores.view() };
        let labels = LabelsView::Classes((&classes).into());
        let scores = Predicted::Scores(scores);
        Widened::default().update(scores, labels, None, &mut seen).unwrap();
        seen[0].value().unwrap()
    };
    assert_eq!(of(&LogLoss), (898.0 + 897.0) / 2.0);
    assert_eq!(of(&TopKAccuracy { k: 2 }), 1.0);
    assert_eq!(of(&Accuracy), 0.0);
}

#[test]
fn n4_counts_are_computed_in_f64() {
    let scores = dense::<f32>(&[2], &[100.0, -1.0]);
    let found = see_scores(&Mae, Link::Exp, &scores, &[0.0, 0.0]);
    assert!((found - (100.0f64.exp() + (-1.0f64).exp()) / 2.0).abs() < 1e30, "{found}");
    // The order of the scores, of which f32 has no exponentials.
    let scores = dense::<f32>(&[3], &[100.0, 99.0, -99.0]);
    assert_eq!(see_scores(&Auc, Link::Exp, &scores, &[1.0, 0.0, 0.0]), 1.0);
}

#[test]
fn n8_labels_and_predictions_are_of_a_class_by_one_half() {
    let outputs = (&[4, 1][..], &[0.1, 0.3, 0.7, 0.8][..]);
    let labels = [0.1, 0.2, 0.8, 0.9];
    check(&Accuracy, outputs, &labels, 1.0);
    check(&Auc, outputs, &labels, 1.0);
    check(&PrAuc, outputs, &labels, 1.0);
    check(&F1, outputs, &labels, 1.0);
    check(&Matthews, outputs, &labels, 1.0);
    // One half is positive, on either side.
    check(&Accuracy, (&[2], &[0.5, 0.49]), &[0.5, 0.49], 1.0);
}

#[test]
fn n9_softmax_over_one_class_has_accuracy_one() {
    let scores = dense(&[3, 1], &[1.0, 1.0, 1.0]);
    check_classes(&Accuracy, &scores, &[0, 0, 0], 1.0);
    check_classes(&TopKAccuracy { k: 1 }, &scores, &[0, 0, 0], 1.0);
    check_classes(&Perplexity::default(), &scores, &[0, 0, 0], 1.0);
    let refused = |metric: &dyn Metric, ids: Vec<u32>| {
        let classes = Dense::new([3], ids).unwrap();
        let labels = LabelsView::Classes((&classes).into());
        metric.start().update(scores.view(), labels).unwrap_err().to_string()
    };
    // An id that no column stands for is not wrong without a word.
    for metric in [&Accuracy as &dyn Metric, &LogLoss, &TopKAccuracy { k: 1 }] {
        let message = refused(metric, vec![0, 1, 0]);
        assert!(message.contains("row 1 has class 1, but the outputs have 1 columns"), "{message}");
    }
    assert!(refused(&F1, vec![0, 1, 2]).contains("row 2 has class 2"));
    let classes = Dense::new([3], vec![0u32; 3]).unwrap();
    let labels = || LabelsView::Classes((&classes).into());
    let scores = Scores { link: Link::Softmax, values: scores.view() };
    let mut seen = Accuracy.start();
    assert!(seen.update_scores(scores, labels(), RowWeights::ONES).unwrap());
    assert_eq!(seen.value(), Ok(1.0));
    let error = F1.start().update_scores(scores, labels(), RowWeights::ONES).unwrap_err();
    assert!(error.to_string().contains("is of two classes"), "{error}");
}

#[test]
fn n6_a_metric_without_a_value_says_why() {
    let value = |metric: &dyn Metric, outputs: &[f64], labels: &[f64]| {
        let (outputs, labels) = (dense::<f64>(&[2], outputs), dense(&[2], labels));
        let mut seen = metric.start();
        seen.update(outputs.view(), LabelsView::Real(labels.view())).unwrap();
        seen.value()
    };
    let both = [0.25, 0.75];
    assert_eq!(value(&Auc, &both, &[0.0, 0.0]), Err(NoValue::NoPositive));
    assert_eq!(value(&Auc, &both, &[1.0, 1.0]), Err(NoValue::NoNegative));
    assert_eq!(value(&PrAuc, &both, &[0.0, -1.0]), Err(NoValue::NoPositive));
    assert_eq!(value(&Pearson, &both, &[1.0, 1.0]), Err(NoValue::EqualLabels));
    let inf = f64::INFINITY;
    assert_eq!(value(&Mse, &[inf, 0.0], &[0.0, 0.0]), Err(NoValue::NotFinite(inf)));
    assert_eq!(value(&BatchMean(Auc), &both, &[1.0, 1.0]), Err(NoValue::NoNegative));
}

#[test]
fn the_best_k_classes() {
    let scores = dense(&[2, 3], &[0.2, 0.5, 0.3, 0.4, 0.2, 0.4]);
    for (k, first, second) in [(1, 1, 0), (2, 2, 2), (3, 0, 1)] {
        check_classes(&TopKAccuracy { k }, &scores, &[first, second], 1.0);
    }
    check_classes(&TopKAccuracy { k: 1 }, &scores, &[1, 2], 0.5);
    check_classes(&TopKAccuracy { k: 2 }, &scores, &[0, 1], 0.0);
    check_classes(&TopKAccuracy { k: 9 }, &scores, &[0, 1], 1.0);
    // Of equal scores the first counts, as for accuracy.
    let equal = dense(&[3, 3], &[0.5; 9]);
    check_classes(&TopKAccuracy { k: 2 }, &equal, &[0, 1, 2], 2.0 / 3.0);
}

#[test]
fn two_columns_are_scores_of_two_classes() {
    let scores = [0.1, 0.9, 0.8, 0.2, 0.35, 0.65, 0.5, 0.5, 0.9, 0.1];
    let (scores, classes) = (dense(&[5, 2], &scores), [1, 0, 0, 0, 1]);
    // One rightly positive, one wrongly, one missed; equal scores are class 0.
    check_classes(&F1, &scores, &classes, 0.5);
    check_classes(&Matthews, &scores, &classes, 1.0 / 6.0);
}

#[test]
fn one_class_alone_has_no_correlation() {
    for (labels, outputs) in [([1.0, 1.0], [0.9, 0.9]), ([0.0, 0.0], [0.1, 0.1])] {
        check(&Matthews, (&[2], &outputs), &labels, 0.0);
        let outputs = dense::<f64>(&[2], &outputs);
        let labels = dense(&[2], &labels);
        let error = Pearson.evaluate(outputs.view(), LabelsView::Real(labels.view())).unwrap_err();
        assert!(error.to_string().contains("outputs that are all equal"), "{error}");
    }
    check(&F1, (&[2], &[0.9, 0.9]), &[1.0, 1.0], 1.0);
    check(&F1, (&[2], &[0.1, 0.1]), &[0.0, 0.0], 0.0);
}

#[test]
fn correlation_survives_large_means_and_numbers() {
    let labels = dense(&[4], &[1.0, -1.0, 0.0, 7.0]);
    for (scale, mean) in [(0.125, 1e9), (1e150, 0.0)] {
        let outputs = [1.5, -2.0, 0.25, 4.0].map(|output: f64| output * scale + mean);
        let outputs = dense::<f64>(&[4], &outputs);
        let found = Pearson.evaluate(outputs.view(), LabelsView::Real(labels.view())).unwrap();
        assert!((found - 0.924_004_812_004_348_7).abs() < 1e-6, "{found}");
    }
}

#[test]
fn the_mean_over_batches_counts_batches_alike() {
    let mut halves = [BatchMean(Rmse).start(), BatchMean(Rmse).start()];
    for (half, errors) in halves.iter_mut().zip([&[3.0, 3.0, 3.0][..], &[5.0]]) {
        let outputs = dense(&[errors.len()], errors);
        let labels = dense(&[errors.len()], &[0.0; 3][..errors.len()]);
        half.update(outputs.view(), LabelsView::Real(labels.view())).unwrap();
        let empty = dense(&[0], &[]);
        half.update(empty.view(), LabelsView::Real(empty.view())).unwrap();
    }
    let [first, second] = &mut halves;
    first.merge(&**second).unwrap();
    assert_eq!((first.value(), second.value()), (Ok(4.0), Ok(5.0)));
    let refused = first.merge(&*BatchMean(Mse).start()).unwrap_err().to_string();
    assert!(refused.contains("`rmse` cannot take in"));
    first.reset();
    assert_eq!(first.value(), Err(NoValue::NothingSeen));
}

#[test]
fn other_settings_are_other_metrics() {
    let (two, three) = (TopKAccuracy { k: 2 }, TopKAccuracy { k: 3 });
    assert!(two.start().merge(&*three.start()).is_err());
    assert!(two.start().merge(&*two.start()).is_ok());
    let ignoring = Perplexity { ignore_label: Some(0) };
    assert!(ignoring.start().merge(&*Perplexity::default().start()).is_err());
    assert!(F1.start().merge(&*Matthews.start()).is_err());
}

#[test]
fn a_wrong_certainty_is_clipped() {
    check(&LogLoss, (&[1], &[0.0]), &[1.0], 34.538_776_394_910_684);
    check(&LogLoss, (&[1], &[1.0]), &[1.0], 1e-15);
}

#[test]
fn auc_of_ties_and_of_one_class() {
    check(&Auc, (&[4], &[1.0, 2.0, 2.0, 3.0]), &[0.0, 0.0, 1.0, 1.0], 0.875);
    check(&Auc, (&[2], &[0.0, -0.0]), &[0.0, 1.0], 0.5);
    check(&Auc, (&[2], &[f64::INFINITY, f64::NEG_INFINITY]), &[1.0, 0.0], 1.0);
    let (scores, labels) = (dense::<f64>(&[2], &[1.0, 2.0]), dense(&[2], &[1.0, 1.0]));
    let error = Auc.evaluate(scores.view(), LabelsView::Real(labels.view())).unwrap_err();
    let expected =
        "metric `auc` has no value: the data has no negative sample: no label is below 1/2";
    assert_eq!(error.to_string(), expected);
}

/// By hand: after each distinct score from the largest on, what it adds to recall times precision.
#[test]
fn average_precision_of_ties() {
    check(&PrAuc, (&[4], &[0.1, 0.4, 0.35, 0.8]), &[0.0, 0.0, 1.0, 1.0], 0.5 + 0.5 * 2.0 / 3.0);
    // Two rows of score 2, one of them positive: precision 2/3 with the one above.
    check(&PrAuc, (&[4], &[1.0, 2.0, 2.0, 3.0]), &[0.0, 0.0, 1.0, 1.0], 0.5 + 0.5 * 2.0 / 3.0);
    check(&PrAuc, (&[3], &[0.5; 3]), &[1.0, 0.0, 0.0], 1.0 / 3.0);
    check(&PrAuc, (&[2], &[1.0, 2.0]), &[1.0, 1.0], 1.0);
}

/// A row of weight 3 is three rows, one of weight 0 is none.
#[test]
fn weights_count_rows() {
    let (scores, labels) = ([0.9, 0.2, 0.65, 0.5, 0.1], [1.0, 0.0, 0.0, 1.0, 1.0]);
    let weights = [3.0, 1.0, 0.0, 2.0, 1.0];
    let repeated = |of: &[f64; 5]| -> Vec<f64> {
        let rows = of.iter().zip(weights);
        rows.flat_map(|(value, weight)| vec![*value; weight as usize]).collect()
    };
    let see = |metric: &dyn Metric, scores: &[f64], labels: &[f64], weights: Option<&[f64]>| {
        let (scores, labels) = (dense(&[scores.len()], scores), dense(&[labels.len()], labels));
        let weights = weights.map_or(RowWeights::ONES, |w| RowWeights::new(w, w.len()).unwrap());
        let mut seen = metric.start();
        seen.update_weighted(scores.view(), LabelsView::Real(labels.view()), weights).unwrap();
        seen.value().unwrap()
    };
    for metric in ALL {
        let weighted = see(metric, &scores, &labels, Some(&weights));
        let expected = see(metric, &repeated(&scores), &repeated(&labels), None);
        assert!((weighted - expected).abs() < 1e-14, "{}: {weighted} {expected}", metric.name());
    }
    let refused = |weights: &[f64]| RowWeights::new(weights, 2).unwrap_err().to_string();
    assert_eq!(
        refused(&[1.0, -2.0]),
        "the weight of row 1 is -2, but must be at least 0 and finite"
    );
    assert_eq!(refused(&[1.0]), "there are 1 weights for 2 rows");
}

#[test]
fn nothing_seen_is_no_value() {
    for metric in ALL {
        let mut seen = metric.start();
        assert_eq!(seen.value(), Err(NoValue::NothingSeen), "{}", metric.name());
        let outputs = dense(&[2], &[0.25, 0.75]);
        let labels = dense(&[2], &[0.0, 1.0]);
        seen.update(outputs.view(), LabelsView::Real(labels.view())).unwrap();
        assert!(seen.value().is_ok(), "{}", metric.name());
        // A batch without rows, as padding alone leaves it, changes nothing.
        let (value, empty) = (seen.value(), dense(&[0, 1], &[]));
        seen.update(empty.view(), LabelsView::Real(empty.view())).unwrap();
        assert_eq!(seen.value(), value, "{}", metric.name());
        seen.reset();
        assert_eq!(seen.value(), Err(NoValue::NothingSeen), "{}", metric.name());
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let (two, three) = (dense(&[2], &[0.5, 0.5]), dense(&[3], &[1.0, 0.0, 1.0]));
    let columns = dense(&[2, 3], &[0.1; 6]);
    let message = |metric: &dyn Metric, outputs: &Dense<f64>, labels| {
        let error = metric.start().update(outputs.view(), labels).unwrap_err();
        error.to_string()
    };
    for metric in ALL {
        let refused = message(metric, &two, LabelsView::Real(three.view()));
        let expected =
            format!("metric `{}`: 2 rows of outputs, but 3 rows of labels", metric.name());
        assert_eq!(refused, expected);
    }
    let top = TopKAccuracy { k: 1 };
    let ids = Dense::new([2], vec![0i64, 3]).unwrap();
    let classes = || LabelsView::Classes((&ids).into());
    assert!(message(&top, &two, classes()).contains("needs scores of classes"));
    assert!(message(&top, &columns, LabelsView::Real(two.view())).contains("class ids"));
    assert!(message(&top, &columns, classes()).contains("row 1 has class 3"));
    assert!(message(&TopKAccuracy { k: 0 }, &columns, classes()).contains("k is at least 1"));
    let pairs = dense(&[2, 2], &[0.5; 4]);
    for metric in [&F1 as &dyn Metric, &Matthews] {
        assert!(message(metric, &columns, classes()).contains("is of two classes"));
        assert!(message(metric, &pairs, classes()).contains("row 1 has class 3"));
        assert!(message(metric, &pairs, LabelsView::Real(two.view())).contains("class ids"));
    }
    let labels = LabelsView::Real(two.view());
    for metric in [&Mae as &dyn Metric, &Pearson] {
        assert!(message(metric, &columns, labels).contains("shape [2, 3], but labels with 1"));
    }
    assert!(message(&Mse, &columns, labels).contains("shape [2, 3], but labels with 1 elements"));
    assert!(message(&Auc, &columns, labels).contains("one score a row"));
    assert!(message(&Accuracy, &columns, labels).contains("class ids"));
    assert!(message(&LogLoss, &columns, labels).contains("class ids"));
    let wide = LabelsView::Real(columns.view());
    assert!(message(&Accuracy, &two, wide).contains("one label a row, but there are 3"));
    let classes = Dense::new([2], vec![0u64, 3]).unwrap();
    let refused = message(&LogLoss, &columns, LabelsView::Classes((&classes).into()));
    assert!(refused.contains("row 1 has class 3, but the outputs have 3 columns"));
    let score = dense(&[2], &[0.5, 1.5]);
    assert!(message(&LogLoss, &score, labels).contains("output 1.5 in row 1"));
    let nan = dense(&[2], &[0.5, f64::NAN]);
    let zeros = Dense::new([2], vec![0u64; 2]).unwrap();
    for metric in [&Auc as &dyn Metric, &Accuracy, &F1, &Matthews] {
        assert!(message(metric, &nan, labels).contains("row 1 is NaN"));
    }
    let nan = dense(&[2, 2], &[0.5, 0.5, 0.5, f64::NAN]);
    for metric in [&Accuracy as &dyn Metric, &F1, &TopKAccuracy { k: 1 }] {
        let refused = message(metric, &nan, LabelsView::Classes((&zeros).into()));
        assert!(refused.contains("row 1 is NaN"));
    }
    let refused = Mse.start().merge(&*Auc.start()).unwrap_err().to_string();
    assert!(refused.contains("`mse` cannot take in"));
}

/// The definition, pair by pair.
fn auc_by_pairs(rows: &[(f64, bool)]) -> f64 {
    let (mut won, mut pairs) = (0.0, 0.0);
    for (positive, _) in rows.iter().filter(|row| row.1) {
        for (negative, _) in rows.iter().filter(|row| !row.1) {
            pairs += 1.0;
            won += match positive.partial_cmp(negative) {
                Some(std::cmp::Ordering::Greater) => 1.0,
                Some(std::cmp::Ordering::Equal) => 0.5,
                _ => 0.0,
            };
        }
    }
    won / pairs
}

proptest! {
    #[test]
    fn auc_is_the_share_of_pairs_won(
        rows in proptest::collection::vec(((-6i32..6).prop_map(|s| f64::from(s) / 4.0), any::<bool>()), 0..60),
    ) {
        let scores: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let labels: Vec<f64> = rows.iter().map(|row| f64::from(u8::from(row.1))).collect();
        let (scores, labels) = (dense::<f32>(&[rows.len()], &scores), dense(&[rows.len()], &labels));
        let found = Auc.evaluate(scores.view(), LabelsView::Real(labels.view()));
        let expected = auc_by_pairs(&rows);
        match found {
            Ok(found) => prop_assert!((found - expected).abs() < 1e-12),
            Err(_) => prop_assert!(expected.is_nan()),
        }
    }

    /// Any cut into batches, merged halves, and what went through a checkpoint give the value of
    /// the whole, those that are exact to the bit.
    #[test]
    fn batches_and_merging_change_nothing(
        rows in proptest::collection::vec((0.0..=1.0f64, any::<bool>()), 1..40),
        cut in 0usize..40,
    ) {
        let cut = cut.min(rows.len());
        for metric in ALL {
            let mut parts = [&rows[..], &rows[..cut], &rows[cut..]].map(|rows| {
                let mut seen = metric.start();
                for (score, label) in rows {
                    let (score, label) = (dense(&[1], &[*score]), dense(&[1], &[f64::from(u8::from(*label))]));
                    seen.update(score.view(), LabelsView::Real(label.view())).unwrap();
                }
                seen
            });
            let [whole, first, second] = &mut parts;
            let mut half = metric.start();
            half.set_numbers(&first.numbers()).unwrap();
            half.merge(&**second).unwrap();
            let or_nan = |seen: &dyn Accumulator| seen.value().unwrap_or(f64::NAN);
            let (a, b) = (or_nan(&**whole), or_nan(&*half));
            if metric.name() != "pearson" {
                prop_assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{}: {a} {b}", metric.name());
            }
            prop_assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()) || a.is_nan() && b.is_nan(), "{}", metric.name());
        }
    }
}
