//! The cells of a column of Arrow, as a line of CSV would have them.

use crate::delimited::cells::Cell;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow_array::{BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow_array::{LargeStringArray, StringArray, StringViewArray};
use arrow_schema::DataType;
use std::borrow::Cow;
use std::fmt::Write;

/// A column whose cells are numbers or texts.
pub(super) enum Cells<'a> {
    /// All are missing.
    Nothing,
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt8(&'a PrimitiveArray<UInt8Type>),
    UInt16(&'a PrimitiveArray<UInt16Type>),
    UInt32(&'a PrimitiveArray<UInt32Type>),
    UInt64(&'a PrimitiveArray<UInt64Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Date(&'a PrimitiveArray<Date32Type>),
    /// With the digits behind the point.
    Decimal(&'a Decimal128Array, i8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Bytes(&'a BinaryArray),
    LargeBytes(&'a LargeBinaryArray),
    BytesView(&'a BinaryViewArray),
    /// The positions of the values.
    Dictionary(&'a dyn Array, Vec<usize>, Box<Cells<'a>>),
    /// The lists and, for each, where its elements begin and end.
    List(&'a dyn Array, Vec<(usize, usize)>, Box<Cells<'a>>),
}

/// How the cells of a type are read: as numbers, as texts, as lists of these, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellType {
    Nothing,
    Number,
    Text,
    List,
    Other,
}

/// How the cells of a type are read.
pub(crate) fn cell_type(data_type: &DataType) -> CellType {
    match data_type {
        DataType::Null => CellType::Nothing,
        DataType::Boolean | DataType::Decimal128(..) => CellType::Number,
        data_type if data_type.is_integer() => CellType::Number,
        DataType::Float32 | DataType::Float64 => CellType::Number,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => CellType::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => CellType::Text,
        DataType::Date32 => CellType::Text,
        DataType::Dictionary(_, values) => match cell_type(values) {
            CellType::Number | CellType::Text => CellType::Text,
            _ => CellType::Other,
        },
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            match cell_type(of.data_type()) {
                CellType::Nothing | CellType::Number | CellType::Text => CellType::List,
                _ => CellType::Other,
            }
        }
        _ => CellType::Other,
    }
}

impl<'a> Cells<'a> {
    /// The cells of a column, of a type that is no [`CellType::Other`].
    pub(super) fn of(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Boolean => Cells::Boolean(array.as_boolean()),
            DataType::Int8 => Cells::Int8(array.as_primitive()),
            DataType::Int16 => Cells::Int16(array.as_primitive()),
            DataType::Int32 => Cells::Int32(array.as_primitive()),
            DataType::Int64 => Cells::Int64(array.as_primitive()),
            DataType::UInt8 => Cells::UInt8(array.as_primitive()),
            DataType::UInt16 => Cells::UInt16(array.as_primitive()),
            DataType::UInt32 => Cells::UInt32(array.as_primitive()),
            DataType::UInt64 => Cells::UInt64(array.as_primitive()),
            DataType::Float32 => Cells::Float32(array.as_primitive()),
            DataType::Float64 => Cells::Float64(array.as_primitive()),
            DataType::Date32 => Cells::Date(array.as_primitive()),
            DataType::Decimal128(_, scale) => {
                Cells::Decimal(array.as_primitive::<Decimal128Type>(), *scale)
            }
            DataType::Utf8 => Cells::Text(array.as_string()),
            DataType::LargeUtf8 => Cells::LargeText(array.as_string()),
            DataType::Utf8View => Cells::TextView(array.as_string_view()),
            DataType::Binary => Cells::Bytes(array.as_binary()),
            DataType::LargeBinary => Cells::LargeBytes(array.as_binary()),
            DataType::BinaryView => Cells::BytesView(array.as_binary_view()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                if dictionary.values().is_empty() {
                    return Cells::Nothing;
                }
                let values = Box::new(Cells::of(dictionary.values()));
                Cells::Dictionary(dictionary.keys(), dictionary.normalized_keys(), values)
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                match list_of(array) {
                    Some((ranges, elements)) => {
                        Cells::List(array, ranges, Box::new(Cells::of(elements)))
                    }
                    None => Cells::Nothing,
                }
            }
            _ => Cells::Nothing,
        }
    }

    /// The number of a row, if it has a finite one that is stored as such.
    #[inline]
    pub(super) fn number(&self, row: usize) -> Option<f64> {
        macro_rules! as_f64 {
            ($array:expr) => {
                $array.is_valid(row).then(|| $array.value(row) as f64)
            };
        }
        let value = match self {
            Cells::Int8(array) => as_f64!(array),
            Cells::Int16(array) => as_f64!(array),
            Cells::Int32(array) => as_f64!(array),
            Cells::Int64(array) => as_f64!(array),
            Cells::UInt8(array) => as_f64!(array),
            Cells::UInt16(array) => as_f64!(array),
            Cells::UInt32(array) => as_f64!(array),
            Cells::UInt64(array) => as_f64!(array),
            Cells::Float64(array) => as_f64!(array),
            // The shortest text of another number has other bits in `f64`.
            Cells::Float32(array) => {
                let value = as_f64!(array)?;
                let is_exact = value.fract() == 0.0 && value.abs() < f64::from(1u32 << 24);
                is_exact.then_some(value)
            }
            Cells::Boolean(array) => {
                array.is_valid(row).then(|| f64::from(u8::from(array.value(row))))
            }
            _ => None,
        };
        value.filter(|value| value.is_finite())
    }

    /// The text of a row: nothing where it is missing. `buffer` is for texts that are not stored.
    pub(super) fn text<'b>(&'b self, row: usize, buffer: &'b mut String) -> Cow<'b, [u8]> {
        buffer.clear();
        // A string takes whatever is written to it.
        macro_rules! shown {
            ($array:expr) => {{
                if $array.is_valid(row) {
                    let _ = write!(buffer, "{}", $array.value(row));
                }
            }};
        }
        macro_rules! float {
            ($array:expr) => {{
                if $array.is_valid(row) {
                    let _ = write!(buffer, "{:?}", $array.value(row));
                }
            }};
        }
        macro_rules! stored {
            ($array:expr) => {{
                let is_there = $array.is_valid(row);
                let text: &[u8] = if is_there { $array.value(row).as_ref() } else { b"" };
                return Cow::Borrowed(text);
            }};
        }
        match self {
            Cells::Nothing => {}
            Cells::Boolean(array) => shown!(array),
            Cells::Int8(array) => shown!(array),
            Cells::Int16(array) => shown!(array),
            Cells::Int32(array) => shown!(array),
            Cells::Int64(array) => shown!(array),
            Cells::UInt8(array) => shown!(array),
            Cells::UInt16(array) => shown!(array),
            Cells::UInt32(array) => shown!(array),
            Cells::UInt64(array) => shown!(array),
            Cells::Float32(array) => float!(array),
            Cells::Float64(array) => float!(array),
            Cells::Date(array) => {
                if array.is_valid(row) {
                    let (year, month, day) = civil_day(array.value(row).into());
                    let _ = write!(buffer, "{year:04}-{month:02}-{day:02}");
                }
            }
            Cells::Decimal(array, scale) => {
                if array.is_valid(row) {
                    write_decimal(array.value(row), *scale, buffer);
                }
            }
            Cells::Text(array) => stored!(array),
            Cells::LargeText(array) => stored!(array),
            Cells::TextView(array) => stored!(array),
            Cells::Bytes(array) => stored!(array),
            Cells::LargeBytes(array) => stored!(array),
            Cells::BytesView(array) => stored!(array),
            Cells::Dictionary(keys, positions, values) => {
                if keys.is_valid(row) {
                    return values.text(positions[row], buffer);
                }
            }
            Cells::List(lists, ranges, elements) => {
                if lists.is_valid(row) {
                    return Cow::Owned(joined(elements, ranges[row]));
                }
            }
        }
        Cow::Borrowed(buffer.as_bytes())
    }

    /// The first element of a list that has the separator of lists in it.
    pub(super) fn divided_element(&self, row: usize) -> Option<String> {
        let Cells::List(_, ranges, elements) = self else { return None };
        let (start, end) = ranges[row];
        let mut buffer = String::new();
        (start..end).find_map(|element| {
            let text = elements.text(element, &mut buffer);
            text.contains(&b'|').then(|| String::from_utf8_lossy(&text).into_owned())
        })
    }

    /// A cell for a column whose numbers are read as such.
    #[inline]
    pub(super) fn number_cell<'b>(&'b self, row: usize, buffer: &'b mut String) -> Cell<'b> {
        if let Some(value) = self.number(row) {
            return Cell::Number(value);
        }
        Cell::Text(self.text(row, buffer))
    }
}

/// The elements of lists, and where those of each list begin and end.
pub(super) fn list_of(array: &dyn Array) -> Option<(Vec<(usize, usize)>, &ArrayRef)> {
    let range = |ends: [usize; 2]| (ends[0], ends[1]);
    if let Some(lists) = array.as_list_opt::<i32>() {
        let ends = lists.value_offsets().windows(2);
        Some((ends.map(|w| range([w[0] as usize, w[1] as usize])).collect(), lists.values()))
    } else if let Some(lists) = array.as_list_opt::<i64>() {
        let ends = lists.value_offsets().windows(2);
        Some((ends.map(|w| range([w[0] as usize, w[1] as usize])).collect(), lists.values()))
    } else if let Some(lists) = array.as_fixed_size_list_opt() {
        let starts = (0..lists.len()).map(|row| lists.value_offset_at(row));
        let size = lists.value_length() as usize;
        Some((starts.map(|start| (start, start + size)).collect(), lists.values()))
    } else {
        None
    }
}

/// Elements with `|` between them, as a field of text has them.
fn joined(elements: &Cells<'_>, (start, end): (usize, usize)) -> Vec<u8> {
    let (mut text, mut buffer) = (Vec::new(), String::new());
    for element in start..end {
        if element > start {
            text.push(b'|');
        }
        text.extend_from_slice(&elements.text(element, &mut buffer));
    }
    text
}

/// Writes a decimal number with all of its digits: `-1.50`.
fn write_decimal(value: i128, scale: i8, text: &mut String) {
    let Ok(scale) = usize::try_from(scale) else {
        let zeros = "0".repeat(scale.unsigned_abs().into());
        let _ = write!(text, "{value}{}", if value == 0 { "" } else { &zeros });
        return;
    };
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, rest) = digits.split_at(digits.len() - scale);
    let _ = if scale == 0 {
        write!(text, "{sign}{whole}")
    } else {
        write!(text, "{sign}{whole}.{rest}")
    };
}

/// Year, month and day of a number of days since 1970-01-01 (Hinnant, *chrono-compatible low-level
/// date algorithms*, `civil_from_days`).
fn civil_day(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        // By Python's `datetime.date(1970, 1, 1) + timedelta(days)`.
        assert_eq!(civil_day(0), (1970, 1, 1));
        assert_eq!(civil_day(18_321), (2020, 2, 29));
        assert_eq!(civil_day(-1), (1969, 12, 31));
        assert_eq!(civil_day(-719_162), (1, 1, 1));
    }

    #[test]
    fn decimals_have_all_their_digits() {
        for (value, scale, expected) in
            [(150, 2, "1.50"), (-5, 2, "-0.05"), (7, 0, "7"), (7, -2, "700"), (0, 1, "0.0")]
        {
            let mut text = String::new();
            write_decimal(value, scale, &mut text);
            assert_eq!(text, expected);
        }
    }
}
