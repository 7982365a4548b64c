//! A table for people and the same numbers for machines.

use std::fmt;

use serde_json::{Map, Value, json};

/// What a benchmark has found.
pub(crate) struct Report {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<(String, Vec<f64>)>,
    notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new(), notes: Vec::new() }
    }

    /// One number per column.
    pub(crate) fn row(&mut self, name: impl Into<String>, numbers: impl Into<Vec<f64>>) {
        self.rows.push((name.into(), numbers.into()));
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(crate) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|(name, numbers)| {
            let numbers =
                self.columns.iter().zip(numbers).map(|(column, number)| ((*column).to_owned(), json!(number)));
            (name.clone(), Value::Object(numbers.collect()))
        });
        json!({ "title": self.title, "rows": rows.collect::<Map<_, _>>(), "notes": self.notes })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        writeln!(f, "{}\n", self.title)?;
        write!(f, "  {:width$}", "")?;
        for column in &self.columns {
            write!(f, "  {column:>12}")?;
        }
        writeln!(f)?;
        for (name, numbers) in &self.rows {
            write!(f, "  {name:width$}")?;
            for (number, column) in numbers.iter().zip(&self.columns) {
                write!(f, "  {:>1$}", shown(*number), column.len().max(12))?;
            }
            writeln!(f)?;
        }
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        Ok(())
    }
}

/// Three digits or so.
fn shown(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&mut numbers.into_iter().collect::<Vec<_>>(), 0.5)
}

/// The smallest number that is not below so much of the others.
pub(crate) fn quantile(numbers: &mut [f64], part: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index into a short list")]
    let place = (numbers.len() as f64 * part).ceil() as usize;
    numbers.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}
