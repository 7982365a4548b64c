//! What implements serde's `Deserialize`, read from JSON.
//!
//! `serde_json` tells in an error what it met, fractions included, and so brings the printing of fractions, a quarter of
//! a small plugin, into each that keeps a state. This reader has errors of its own, which name the field in their
//! place: `prices.green: invalid type: string "x", expected u32`. Two things it does not do: an array is no struct, and
//! fractions are read to the last digit.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::{Error, scan};

/// How deep values may lie in each other: each level takes of the stack.
const MOST_LEVELS: u8 = 128;

pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
    levels: u8,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self { text, at: 0, levels: MOST_LEVELS }
    }

    /// Nothing may follow the value.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        if self.peek() == 0 { Ok(()) } else { Err(self.no_json("the end")) }
    }

    /// The next byte that is no blank; 0 at the end.
    fn peek(&mut self) -> u8 {
        self.at = scan::skip_blank(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn no_json(&self, expected: &str) -> Error {
        Error::new(format!("no JSON at byte {}: expected {expected}", self.at))
    }

    #[inline(never)]
    fn expect(&mut self, byte: u8, named: &str) -> Result<(), Error> {
        if self.peek() != byte {
            return Err(self.no_json(named));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Error> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.no_json(word));
        }
        self.at += word.len();
        Ok(())
    }

    fn null(&mut self) -> Result<bool, Error> {
        let null = self.peek() == b'n';
        if null {
            self.word("null")?;
        }
        Ok(null)
    }

    fn truth(&mut self) -> Result<bool, Error> {
        let truth = self.peek() == b't';
        self.word(if truth { "true" } else { "false" })?;
        Ok(truth)
    }

    fn string(&mut self) -> Result<Cow<'de, str>, Error> {
        let from = self.at;
        let string = scan::string_end(self.text.as_bytes(), from).and_then(|end| self.text.get(from..end));
        let Some(string) = string else { return Err(self.no_json("a text in quotes")) };
        self.at += string.len();
        let read = match string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
            _ => scan::unescape(string).map(Cow::Owned),
        };
        read.ok_or_else(|| self.no_json("a text in quotes"))
    }

    /// A number as it stands, and whether it is a whole one.
    fn number(&mut self) -> Result<(&'de str, bool), Error> {
        let from = self.at;
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            let from = at;
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            (at > from).then_some(at)
        };
        let scanned = || {
            let first = from + usize::from(bytes.get(from) == Some(&b'-'));
            let mut at = if bytes.get(first) == Some(&b'0') { first + 1 } else { digits(first)? };
            let whole = at;
            if bytes.get(at) == Some(&b'.') {
                at = digits(at + 1)?;
            }
            if matches!(bytes.get(at), Some(b'e' | b'E')) {
                at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
                at = digits(at)?;
            }
            Some((self.text.get(from..at)?, at == whole))
        };
        let number = scanned().ok_or_else(|| self.no_json("a number"))?;
        self.at += number.0.len();
        Ok(number)
    }

    fn fraction(&self, number: &str) -> Result<f64, Error> {
        let read = number.parse().ok().filter(|number: &f64| number.is_finite());
        read.ok_or_else(|| Error::new(format!("the number {number} is out of range")))
    }

    /// Anything, which is thrown away.
    fn skip(&mut self) -> Result<(), Error> {
        match self.peek() {
            b'n' => self.word("null"),
            b't' | b'f' => self.truth().map(drop),
            b'"' => self.string().map(drop),
            open @ (b'[' | b'{') => {
                let mut inside = self.open()?;
                let close = if open == b'[' { b']' } else { b'}' };
                while inside.more(close)? {
                    if open == b'{' {
                        inside.key()?;
                    }
                    inside.reader.skip()?;
                }
                inside.close(close)
            }
            _ => self.number().map(drop),
        }
    }

    /// Past a bracket.
    #[inline(never)]
    fn open(&mut self) -> Result<Inside<'_, 'de>, Error> {
        self.at += 1;
        self.levels = self.levels.checked_sub(1).ok_or_else(|| Error::new("nested too deeply".to_owned()))?;
        Ok(Inside { reader: self, count: 0, key: Cow::Borrowed("") })
    }

    fn array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let mut inside = self.open()?;
        let value = visitor.visit_seq(&mut inside)?;
        inside.close(b']')?;
        Ok(value)
    }

    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let mut inside = self.open()?;
        let value = visitor.visit_map(&mut inside)?;
        inside.close(b'}')?;
        Ok(value)
    }

    /// Why what is here is not what was expected.
    #[cold]
    #[inline(never)]
    fn misfit(&mut self, expected: &dyn Expected) -> Error {
        let mut text = Cow::Borrowed("");
        let met = match self.peek() {
            b'n' => self.word("null").map(|()| Unexpected::Unit),
            b't' | b'f' => self.truth().map(Unexpected::Bool),
            b'"' => self.string().map(|read| {
                text = read;
                Unexpected::Str(&text)
            }),
            b'[' => Ok(Unexpected::Seq),
            b'{' => Ok(Unexpected::Map),
            _ => self.number().map(|(number, _)| {
                text = Cow::Borrowed(number);
                Unexpected::Other(&text)
            }),
        };
        met.map_or_else(|error| error, |met| Error::invalid_type(met, expected))
    }
}

/// What is read alike for every type stands in functions of its own, of which there is one each.
impl<'de> Reader<'de> {
    /// Fails unless the value begins with one of these bytes.
    fn one_of(&mut self, first: &[u8], expected: &dyn Expected) -> Result<u8, Error> {
        let met = self.peek();
        if first.contains(&met) { Ok(met) } else { Err(self.misfit(expected)) }
    }

    /// A number that fits.
    #[inline(never)]
    fn whole<T: FromStr>(&mut self, expected: &dyn Expected) -> Result<T, Error> {
        self.one_of(b"-0123456789", expected)?;
        let number = self.number()?.0;
        number.parse().map_err(|_| Error::invalid_type(Unexpected::Other(number), expected))
    }

    #[inline(never)]
    fn text(&mut self, expected: &dyn Expected) -> Result<Cow<'de, str>, Error> {
        self.one_of(b"\"", expected)?;
        self.string()
    }

    /// The name of an enum's variant, and whether it holds something.
    #[inline(never)]
    fn variant(&mut self, expected: &dyn Expected) -> Result<(Cow<'de, str>, bool), Error> {
        let nested = self.one_of(b"\"{", expected)? == b'{';
        if nested {
            self.open()?;
            self.peek();
        }
        let name = self.string()?;
        if nested {
            self.expect(b':', "`:`")?;
        }
        Ok((name, nested))
    }
}

macro_rules! whole_numbers {
    ($($method:ident($type:ty) => $visit:ident),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = self.whole::<$type>(&visitor)?;
            visitor.$visit(number)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek() {
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b't' | b'f' => self.truth().and_then(|truth| visitor.visit_bool(truth)),
            b'"' => self.deserialize_str(visitor),
            b'[' => self.array(visitor),
            b'{' => self.object(visitor),
            _ => {
                let (number, whole) = self.number()?;
                match (whole, number.parse(), number.parse()) {
                    (true, Ok(number), _) => visitor.visit_u64(number),
                    (true, _, Ok(number)) => visitor.visit_i64(number),
                    _ => self.fraction(number).and_then(|number| visitor.visit_f64(number)),
                }
            }
        }
    }

    whole_numbers! {
        deserialize_i8(i64) => visit_i64, deserialize_i16(i64) => visit_i64, deserialize_i32(i64) => visit_i64,
        deserialize_i64(i64) => visit_i64, deserialize_i128(i128) => visit_i128,
        deserialize_u8(u64) => visit_u64, deserialize_u16(u64) => visit_u64, deserialize_u32(u64) => visit_u64,
        deserialize_u64(u64) => visit_u64, deserialize_u128(u128) => visit_u128
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.one_of(b"-0123456789", &visitor)?;
        let number = self.number()?.0;
        visitor.visit_f64(self.fraction(number)?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.one_of(b"tf", &visitor)?;
        visitor.visit_bool(self.truth()?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.text(&visitor)? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.one_of(b"[\"", &visitor)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.null()? { visitor.visit_unit() } else { Err(self.misfit(&visitor)) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.one_of(b"[", &visitor)?;
        self.array(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.one_of(b"{", &visitor)?;
        self.object(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, nested) = self.variant(&visitor)?;
        let value = visitor.visit_enum(Variant { reader: &mut *self, name, nested })?;
        if nested {
            self.expect(b'}', "`}`")?;
            self.levels += 1;
        }
        Ok(value)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// What lies in an array or object that is being read.
struct Inside<'r, 'de> {
    reader: &'r mut Reader<'de>,
    /// How many have begun.
    count: usize,
    key: Cow<'de, str>,
}

impl Inside<'_, '_> {
    /// Steps before the next one.
    #[inline(never)]
    fn more(&mut self, close: u8) -> Result<bool, Error> {
        let next = self.reader.peek();
        if next == close {
            return Ok(false);
        }
        if self.count > 0 {
            self.reader.expect(b',', "`,` or the end of it")?;
            self.reader.peek();
        }
        self.count += 1;
        Ok(true)
    }

    #[inline(never)]
    fn key(&mut self) -> Result<(), Error> {
        self.key = self.reader.string()?;
        self.reader.expect(b':', "`:`")
    }

    #[inline(never)]
    fn close(mut self, close: u8) -> Result<(), Error> {
        if self.more(close)? {
            let met = self.count - 1;
            return Err(Error::new(format!("{met} values were expected, and there are more")));
        }
        self.reader.at += 1;
        self.reader.levels += 1;
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut Inside<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if !self.more(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some).map_err(|error| error.within_item(self.count - 1))
    }
}

impl<'de> MapAccess<'de> for &mut Inside<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if !self.more(b'}')? {
            return Ok(None);
        }
        Inside::key(self)?;
        seed.deserialize(Key(self.key.clone())).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.reader).map_err(|error| error.within(&self.key))
    }
}

/// A map's key: a text, or what can be read from one.
struct Key<'de>(Cow<'de, str>);

macro_rules! keys {
    ($($method:ident($type:ty) => $visit:ident),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Error::invalid_type(Unexpected::Str(&self.0), &visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    keys! {
        deserialize_i8(i64) => visit_i64, deserialize_i16(i64) => visit_i64, deserialize_i32(i64) => visit_i64,
        deserialize_i64(i64) => visit_i64, deserialize_i128(i128) => visit_i128,
        deserialize_u8(u64) => visit_u64, deserialize_u16(u64) => visit_u64, deserialize_u32(u64) => visit_u64,
        deserialize_u64(u64) => visit_u64, deserialize_u128(u128) => visit_u128,
        deserialize_f32(f64) => visit_f64, deserialize_f64(f64) => visit_f64, deserialize_bool(bool) => visit_bool
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// An enum's variant: its name alone, or an object of its name and what it holds.
struct Variant<'r, 'de> {
    reader: &'r mut Reader<'de>,
    name: Cow<'de, str>,
    nested: bool,
}

impl<'r, 'de> EnumAccess<'de> for Variant<'r, 'de> {
    type Error = Error;
    type Variant = Held<'r, 'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Held<'r, 'de>), Error> {
        let variant = seed.deserialize(Key(self.name))?;
        Ok((variant, Held(self.nested.then_some(self.reader))))
    }
}

/// What a variant holds.
struct Held<'r, 'de>(Option<&'r mut Reader<'de>>);

impl<'r, 'de> Held<'r, 'de> {
    fn some(self) -> Result<&'r mut Reader<'de>, Error> {
        self.0.ok_or_else(|| Error::new("this variant holds something, which is missing".to_owned()))
    }
}

impl<'de> VariantAccess<'de> for Held<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), de::Deserialize::deserialize)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.some()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        self.some()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.some()?.deserialize_map(visitor)
    }
}
