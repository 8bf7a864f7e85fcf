//! Names of hashed weights, all weights as CSV and JSON, and metrics of recommendations.

use crate::command_line::{self, Files, refused};
use serde_json::Value;

/// Who buys at the Rialto, with a card, on the phone.
fn sales() -> String {
    let line = |i: usize| {
        let (shop, device) = (["Rialto", "Lido"][i % 2], ["phone", "desk"][i / 2 % 2]);
        let tags = ["card|web", "", "card"][i % 3];
        format!("{},{shop},{device},{tags},{}\n", usize::from(i.is_multiple_of(2)), i % 7)
    };
    "y,shop,device,tags,age\n".to_owned() + &(0..120).map(line).collect::<String>()
}

#[test]
fn hashed_weights_are_named_by_a_pass_over_data() {
    let files = Files::new("names");
    let (data, model) = (files.write("sales.csv", &sales()), files.path("model"));
    let schema = "y:label,shop:categorical,device:categorical,tags:list,age:numeric";
    let train = ["--model", "logistic", "--data", &data, "--schema", schema, "--header"];
    let save = ["--save", &model[..], "--cross", "shop,device"];
    command_line::run("train", &[&train[..], &save].concat());
    let shown = command_line::run("inspect", &[&model, "--data", &data, "--top", "12"]);
    for name in ["shop=Rialto", "shop=Lido", "tags=card", "age", "shop=Rialto*device=phone"] {
        assert!(shown.contains(&format!("] {name}\t")), "{name}: {shown}");
    }
    assert!(shown.contains("cross: shop,device\n"), "{shown}");
    let weight = |name: &str| {
        let line = shown.lines().find(|line| line.contains(&format!("] {name}\t"))).unwrap();
        line.rsplit('\t').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(weight("shop=Rialto") > 0.1 && weight("shop=Lido") < -0.1, "{shown}");

    let json = command_line::run("inspect", &[&model, "--data", &data, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["notes"]["format"], "csv");
    let largest = &json["parameters"][0]["weights"][0];
    assert!((largest["weight"].as_f64().unwrap().abs() - weight("shop=Lido").abs()).abs() < 1.0);
    assert!(largest["names"][0].as_str().unwrap().contains("shop="), "{json}");

    let csv = command_line::run("inspect", &[&model, "--data", &data, "--csv"]);
    assert!(csv.starts_with("parameter,row,column,name,weight\nw,"), "{csv}");
    // Two shops, two devices, two tags, a number, four pairs, and the bias.
    assert_eq!(csv.lines().count(), 1 + 11 + 1, "{csv}");
    assert!(csv.lines().last().unwrap().starts_with("b,0,0,,"), "{csv}");

    let svm = files.write("rows.svm", "1 1:1\n0 2:1\n");
    command_line::run("train", &["--model", "logistic", "--data", &svm, "--save", &model]);
    let errors = refused("inspect", &[&model, "--data", &svm]);
    assert!(errors.contains("have numbers and no names: name them by --names"), "{errors}");
}

/// All users like a best, then b, c and d. Of the two first items, b is not relevant.
#[test]
fn recommendations_are_measured_by_hand_counted_lists() {
    let files = Files::new("ranks");
    let rating = |item: char| match item {
        'a' => 5,
        'b' => 4,
        'c' => 3,
        _ => 1,
    };
    let text: String = (0..40)
        .flat_map(|user| "abcd".chars().map(move |item| (user % 4, item)))
        .map(|(user, item)| format!("u{user},{item},{}\n", rating(item)))
        .collect();
    let (data, model) = (files.write("ratings", &text), files.path("model"));
    let train = ["--model", "mf", "--format", "ratings", "--data", &data, "--save", &model];
    command_line::run("train", &[&train[..], &["--factors", "1", "--lr", "0.1"]].concat());
    let test = files.write("test", "u1,a,5\nu1,b,1\nu1,c,5\nu2,d,4\nu3,a,1\n");
    let seen = files.write("seen", "u1,a,5\n");
    let evaluate = ["--model", &model[..], "--data", &test, "--top-k", "2", "--relevant", "3"];
    let found = |more: &[&str]| {
        let found = command_line::run("evaluate", &[&evaluate[..], more, &["--json"]].concat());
        let found: Value = serde_json::from_str(&found).unwrap();
        ["precision@2", "recall@2", "ndcg@2"].map(|name| found[name].as_f64().unwrap())
    };
    // u1: a and b, of a and c; u2: d is not among them; u3 has no relevant item.
    let second = 1.0 / 3f64.log2();
    let close = |found: [f64; 3], expected: [f64; 3]| {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    };
    close(found(&[]), [0.25, 0.25, 0.5 / (1.0 + second)]);
    // Without a: b and c, of c.
    close(found(&["--seen", &seen]), [0.25, 0.5, second / 2.0]);
    let table = command_line::run("evaluate", &evaluate);
    assert!(table.contains("precision@2  0.250000\n"), "{table}");
    let none = command_line::run("evaluate", &[&evaluate[..7], &["9"]].concat());
    assert!(none.contains("ndcg@2       none: no user has a relevant item"), "{none}");

    let svm = files.write("rows.svm", "1 1:1\n0 2:1\n");
    command_line::run("train", &["--model", "logistic", "--data", &svm, "--save", &model]);
    let errors = refused("evaluate", &["--model", &model, "--data", &svm, "--top-k", "2"]);
    assert!(errors.contains("--top-k is for models of ratings"), "{errors}");
}
