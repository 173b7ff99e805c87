//! One column: its type, and its values until its group is written.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a column holds. Any value may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A list of texts.
    Texts,
    /// 64 bits with a sign.
    Number,
    /// True or false.
    Flag,
}

/// A column and where its values stand in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    name: String,
    path: Vec<String>,
    kind: Kind,
}

impl Column {
    /// A column; its values stand under these keys, one inside another.
    #[must_use]
    pub fn new(name: &str, path: &[&str], kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            kind,
        }
    }

    /// Its place in the schema.
    pub(super) fn field(&self) -> Result<TypePtr, ParquetError> {
        let simple = |name: &str, physical, repetition| {
            let logical = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build();
            field.map(Arc::new)
        };
        match self.kind {
            Kind::Text => simple(&self.name, Physical::BYTE_ARRAY, Repetition::OPTIONAL),
            Kind::Number => simple(&self.name, Physical::INT64, Repetition::OPTIONAL),
            Kind::Flag => simple(&self.name, Physical::BOOLEAN, Repetition::OPTIONAL),
            // the three levels that the format asks of lists
            Kind::Texts => {
                let element = simple("element", Physical::BYTE_ARRAY, Repetition::REQUIRED)?;
                let list = Type::group_type_builder("list")
                    .with_repetition(Repetition::REPEATED)
                    .with_fields(vec![element])
                    .build()?;
                let field = Type::group_type_builder(&self.name)
                    .with_repetition(Repetition::OPTIONAL)
                    .with_logical_type(Some(LogicalType::List))
                    .with_fields(vec![Arc::new(list)])
                    .build();
                field.map(Arc::new)
            }
        }
    }
}

enum Values {
    Texts(Vec<ByteArray>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

/// The values of a column: those that are there, and which are.
pub(super) struct Cells {
    column: Column,
    values: Values,
    /// 0 for none; 1 for a value or an empty list; 2 for an element of a list.
    definition: Vec<i16>,
    /// 1 for every element of a list but its first.
    repetition: Vec<i16>,
    bytes: usize,
}

impl Cells {
    pub(super) fn of(column: &Column) -> Self {
        Self {
            column: column.clone(),
            values: match column.kind {
                Kind::Text | Kind::Texts => Values::Texts(Vec::new()),
                Kind::Number => Values::Numbers(Vec::new()),
                Kind::Flag => Values::Flags(Vec::new()),
            },
            definition: Vec::new(),
            repetition: Vec::new(),
            bytes: 0,
        }
    }

    /// Memory of the texts, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, row: &Map<String, Value>) {
        let mut keys = self.column.path.iter();
        let first = keys.next().and_then(|key| row.get(key));
        let value = keys.fold(first, |value, key| value?.get(key)).unwrap_or(&Value::Null);
        match (self.column.kind, value) {
            (Kind::Texts, Value::Null) => self.mark(0, 0),
            (Kind::Texts, Value::Array(items)) if items.is_empty() => self.mark(1, 0),
            (Kind::Texts, Value::Array(items)) => {
                for (n, item) in items.iter().enumerate() {
                    self.text(item);
                    self.mark(2, i16::from(n > 0));
                }
            }
            (Kind::Texts, single) => {
                self.text(single);
                self.mark(2, 0);
            }
            (_, Value::Array(items)) => {
                let first = items.first().unwrap_or(&Value::Null);
                self.single(first);
            }
            (_, value) => self.single(value),
        }
    }

    fn single(&mut self, value: &Value) {
        let there = match &mut self.values {
            _ if value.is_null() => false,
            Values::Texts(_) => {
                self.text(value);
                true
            }
            Values::Numbers(numbers) => value.as_i64().map(|number| numbers.push(number)).is_some(),
            Values::Flags(flags) => value.as_bool().map(|flag| flags.push(flag)).is_some(),
        };
        self.mark(i16::from(there), 0);
    }

    fn mark(&mut self, definition: i16, repetition: i16) {
        self.definition.push(definition);
        self.repetition.push(repetition);
    }

    fn text(&mut self, value: &Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.bytes += text.len() + size_of::<ByteArray>();
        if let Values::Texts(texts) = &mut self.values {
            texts.push(ByteArray::from(text.into_bytes()));
        }
    }

    /// Writes what there is, and begins anew.
    pub(super) fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let definition = Some(self.definition.as_slice());
        let repetition = (self.column.kind == Kind::Texts).then_some(self.repetition.as_slice());
        match &mut self.values {
            Values::Texts(texts) => {
                column
                    .typed::<ByteArrayType>()
                    .write_batch(texts, definition, repetition)?;
                texts.clear();
            }
            Values::Numbers(numbers) => {
                column
                    .typed::<Int64Type>()
                    .write_batch(numbers, definition, repetition)?;
                numbers.clear();
            }
            Values::Flags(flags) => {
                column.typed::<BoolType>().write_batch(flags, definition, repetition)?;
                flags.clear();
            }
        }
        self.definition.clear();
        self.repetition.clear();
        self.bytes = 0;
        Ok(())
    }
}
