//! Numbers in JSON reports: names for those that are not finite.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A number, or its name: `"NaN"`, `"inf"`, `"-inf"`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Other(String),
}

impl Number {
    fn of(value: f64) -> Self {
        if value.is_finite() { Number::Finite(value) } else { Number::Other(value.to_string()) }
    }

    fn value<E: serde::de::Error>(self) -> Result<f64, E> {
        match self {
            Number::Finite(value) => Ok(value),
            Number::Other(name) => {
                name.parse().map_err(|_| E::custom(format_args!("`{name}` is not a number")))
            }
        }
    }
}

pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number::of(*value).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer)?.value()
}

/// Values by name, as an object in their order.
pub(super) mod metrics {
    use super::*;

    type Metrics = Vec<(Cow<'static, str>, f64)>;

    pub(in super::super) fn serialize<S: Serializer>(
        metrics: &Metrics,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(metrics.len()))?;
        for (name, value) in metrics {
            map.serialize_entry(name, &Number::of(*value))?;
        }
        map.end()
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Metrics, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::new();
                while let Some((name, value)) = map.next_entry::<String, Number>()? {
                    metrics.push((Cow::Owned(name), value.value()?));
                }
                Ok(metrics)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
