//! What implements serde's `Serialize`, written as JSON.
//!
//! The same text as `serde_json` writes, in a fraction of its size: there is one kind of output, and so nothing in it
//! that every type is compiled for anew but the calls themselves.

use std::fmt::{Display, Write};

use serde::ser::{self, Error as _, Serialize};

use super::{Error, push_text};

pub(super) struct Writer<'o>(pub(super) &'o mut String);

impl<'o> Writer<'o> {
    fn put(self, text: &str) -> Result<(), Error> {
        self.0.push_str(text);
        Ok(())
    }

    fn number(self, number: &dyn Display) -> Result<(), Error> {
        write!(self.0, "{number}").map_err(Error::custom)
    }

    /// Fractions are rare. What writes them is large, and gets into a plugin with the first of them only.
    fn fraction(self, number: Option<serde_json::Number>) -> Result<(), Error> {
        match number {
            Some(number) => self.number(&number),
            // JSON knows no infinity.
            None => self.put("null"),
        }
    }

    fn open(self, bracket: &str, close: &'static str) -> Parts<'o> {
        self.0.push_str(bracket);
        Parts { out: self.0, first: true, close }
    }

    /// The parts of an enum's variant, in an object with its name.
    fn variant(self, name: &str, bracket: &str, close: &'static str) -> Parts<'o> {
        self.0.push('{');
        push_text(self.0, name);
        self.0.push(':');
        self.open(bracket, close)
    }
}

macro_rules! numbers {
    ($($method:ident($type:ty) as $wide:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            self.number(&<$wide>::from(value))
        })*
    };
}

impl<'o> ser::Serializer for Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'o>;
    type SerializeTuple = Parts<'o>;
    type SerializeTupleStruct = Parts<'o>;
    type SerializeTupleVariant = Parts<'o>;
    type SerializeMap = Parts<'o>;
    type SerializeStruct = Parts<'o>;
    type SerializeStructVariant = Parts<'o>;

    numbers! {
        serialize_i8(i8) as i64, serialize_i16(i16) as i64, serialize_i32(i32) as i64, serialize_i64(i64) as i64,
        serialize_u8(u8) as u64, serialize_u16(u16) as u64, serialize_u32(u32) as u64, serialize_u64(u64) as u64,
        serialize_i128(i128) as i128, serialize_u128(u128) as u128
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        // Its own digits: those of the nearest f64 would be more than it has.
        if value.is_finite() { self.number(&format_args!("{value:?}")) } else { self.put("null") }
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.fraction(serde_json::Number::from_f64(value))
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.put(if value { "true" } else { "false" })
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        push_text(self.0, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.put("null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _of: &'static str, _index: u32, name: &'static str) -> Result<(), Error> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _name: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _of: &'static str,
        _index: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let parts = self.variant(name, "", "}");
        value.serialize(Writer(parts.out))?;
        parts.close()
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Parts<'o>, Error> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Parts<'o>, Error> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Parts<'o>, Error> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _of: &'static str,
        _index: u32,
        name: &'static str,
        _length: usize,
    ) -> Result<Parts<'o>, Error> {
        Ok(self.variant(name, "[", "]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Parts<'o>, Error> {
        Ok(self.open("{", "}"))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Parts<'o>, Error> {
        Ok(self.open("{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _of: &'static str,
        _index: u32,
        name: &'static str,
        _length: usize,
    ) -> Result<Parts<'o>, Error> {
        Ok(self.variant(name, "{", "}}"))
    }
}

/// An array or an object under construction.
pub(super) struct Parts<'o> {
    out: &'o mut String,
    first: bool,
    close: &'static str,
}

impl Parts<'_> {
    fn next(&mut self) -> Writer<'_> {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        Writer(self.out)
    }

    fn key(&mut self, key: &str) -> Writer<'_> {
        let out = self.next().0;
        push_text(out, key);
        out.push(':');
        Writer(out)
    }

    /// Keys are texts; numbers and truth values are put in quotes.
    fn key_as_written(&mut self, key: &str) -> Result<(), Error> {
        let out = self.next().0;
        match key.as_bytes().first() {
            Some(b'"') => out.push_str(key),
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => push_text(out, key),
            _ => return Err(Error::custom("a map's keys must be texts, numbers or truth values")),
        }
        out.push(':');
        Ok(())
    }

    fn close(self) -> Result<(), Error> {
        self.out.push_str(self.close);
        Ok(())
    }
}

macro_rules! items {
    ($($part:ident :: $method:ident),*) => {
        $(impl ser::$part for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                value.serialize(self.next())
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

items! {
    SerializeSeq::serialize_element, SerializeTuple::serialize_element, SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
}

macro_rules! fields {
    ($($part:ident),*) => {
        $(impl ser::$part for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                value.serialize(self.key(key))
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

fields! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        let mut written = String::new();
        key.serialize(Writer(&mut written))?;
        self.key_as_written(&written)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Writer(self.out))
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
