//! Values between two runtimes' ideas of the same record: from one type to another, by the names of fields
//! and variants.
//!
//! A worker outlives upgrades of the chain's runtime. What a runtime has more than this program knows of is
//! skipped, what has moved is found by its name, and what is absent may be so only where the reader can do
//! without: in an `Option`. Everything else is an error; nothing is guessed.

use codec::{Compact, Decode, Encode};
use scale_decode::visitor::{IgnoreVisitor, decode_with_visitor};
use scale_info::{
    Field, MetaType, PortableRegistry, Registry, TypeDef, TypeDefPrimitive, TypeInfo, Variant,
    form::PortableForm, meta_type,
};

/// Types within types that are looked at; SCALE's own limit is of that kind.
const DEPTH_MAX: u32 = 64;

/// A type with everything it consists of.
pub(super) struct Shape {
    types: PortableRegistry,
    ty: u32,
}

impl Shape {
    /// The shape of a type of this program.
    pub fn of<T: TypeInfo + 'static>() -> Self {
        Self::of_type(&meta_type::<T>())
    }

    pub fn of_type(ty: &MetaType) -> Self {
        let mut registry = Registry::new();
        let ty = registry.register_type(ty).id;
        Self {
            types: registry.into(),
            ty,
        }
    }

    pub fn end(&self) -> End<'_> {
        End {
            types: &self.types,
            ty: self.ty,
        }
    }
}

/// One side of a translation: a type in a registry.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    pub types: &'a PortableRegistry,
    pub ty: u32,
}

impl<'a> End<'a> {
    fn at(self, ty: u32) -> Self {
        Self { ty, ..self }
    }

    fn def(self) -> Result<&'a TypeDef<PortableForm>, String> {
        let found = self.types.resolve(self.ty);
        found
            .map(|ty| &ty.type_def)
            .ok_or_else(|| format!("type {} is not described", self.ty))
    }

    /// Fields of a record or tuple: names where it has any, and types.
    fn fields(self) -> Result<Option<Vec<Part<'a>>>, String> {
        Ok(match self.def()? {
            TypeDef::Composite(composite) => Some(parts(&composite.fields)),
            TypeDef::Tuple(tuple) => Some(
                tuple
                    .fields
                    .iter()
                    .map(|field| Part {
                        name: None,
                        ty: field.id,
                    })
                    .collect(),
            ),
            _ => None,
        })
    }

    pub fn is_option(self) -> bool {
        let path = self.types.resolve(self.ty).and_then(|ty| ty.path.ident());
        path.as_deref() == Some("Option")
    }

    /// Whether it is text, or bytes of any number: both are written alike. Names were bytes once.
    fn is_text_or_bytes(self) -> Result<bool, String> {
        Ok(match self.def()? {
            TypeDef::Primitive(primitive) => *primitive == TypeDefPrimitive::Str,
            TypeDef::Sequence(of) => {
                let of = self.at(of.type_param.id).def()?;
                *of == TypeDef::Primitive(TypeDefPrimitive::U8)
            }
            _ => false,
        })
    }

    /// Reads over one value.
    pub fn skip(self, input: &mut &[u8]) -> Result<(), String> {
        decode_with_visitor(input, self.ty, self.types, IgnoreVisitor::new())
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

#[derive(Clone, Copy)]
struct Part<'a> {
    name: Option<&'a str>,
    ty: u32,
}

fn parts(fields: &[Field<PortableForm>]) -> Vec<Part<'_>> {
    let part = |field| {
        let Field { name, ty, .. }: &Field<PortableForm> = field;
        Part {
            name: name.as_deref(),
            ty: ty.id,
        }
    };
    fields.iter().map(part).collect()
}

/// Which part of `from` each part of `to` is made of; nothing: it is absent, and may be.
fn plan(from: &[Part], (to_end, to): (End, &[Part])) -> Result<Vec<Option<usize>>, String> {
    let by_name = from.iter().chain(to).all(|part| part.name.is_some());
    let mut plan = Vec::with_capacity(to.len());
    for (at, part) in to.iter().enumerate() {
        let found = match by_name {
            true => from.iter().position(|other| other.name == part.name),
            false => (at < from.len()).then_some(at),
        };
        if found.is_none() && !to_end.at(part.ty).is_option() {
            let name = part.name.map_or_else(|| at.to_string(), str::to_string);
            return Err(format!("field {name} is missing"));
        }
        plan.push(found);
    }
    Ok(plan)
}

/// What a record of one field holds.
fn unwrapped<'a>(end: End<'a>, fields: &Option<Vec<Part<'a>>>) -> Option<End<'a>> {
    match fields.as_deref() {
        Some([only]) => Some(end.at(only.ty)),
        _ => None,
    }
}

/// Translates one value.
///
/// # Errors
/// What does not fit, in words.
pub(super) fn transcode(input: &mut &[u8], from: End, to: End) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(input.len());
    value(input, from, to, &mut out, DEPTH_MAX)?;
    Ok(out)
}

fn value(input: &mut &[u8], from: End, to: End, out: &mut Vec<u8>, depth: u32) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("it is nested too deeply")?;
    let (from_fields, to_fields) = (from.fields()?, to.fields()?);
    match (&from_fields, &to_fields) {
        (Some(from_parts), Some(to_parts)) => {
            return fields(input, (from, from_parts), (to, to_parts), out, depth);
        }
        (Some(_), None) => {
            let inner = unwrapped(from, &from_fields).ok_or("a record is no single value")?;
            return value(input, inner, to, out, depth);
        }
        (None, Some(_)) => {
            let inner = unwrapped(to, &to_fields).ok_or("a single value is no record")?;
            return value(input, from, inner, out, depth);
        }
        (None, None) => {}
    }
    if from.is_text_or_bytes()? && to.is_text_or_bytes()? {
        return copy(input, from, out);
    }
    match (from.def()?, to.def()?) {
        (TypeDef::Variant(a), TypeDef::Variant(b)) => {
            let index = u8::decode(input).map_err(|error| error.to_string())?;
            let known = a.variants.iter().find(|variant| variant.index == index);
            let known = known.ok_or_else(|| format!("there is no variant {index}"))?;
            let same = same_variant(known, &b.variants);
            let same = same.ok_or_else(|| format!("variant {} is not known", known.name))?;
            out.push(same.index);
            let (from_parts, to_parts) = (parts(&known.fields), parts(&same.fields));
            fields(input, (from, &from_parts), (to, &to_parts), out, depth)
        }
        (TypeDef::Sequence(a), TypeDef::Sequence(b)) => {
            let count = Compact::<u32>::decode(input).map_err(|error| error.to_string())?;
            // Elements take at least a byte each: nobody makes us count what is not there.
            if count.0 as usize > input.len() {
                return Err("a list is longer than its bytes".into());
            }
            count.encode_to(out);
            let (from, to) = (from.at(a.type_param.id), to.at(b.type_param.id));
            (0..count.0).try_for_each(|_| value(input, from, to, out, depth))
        }
        (TypeDef::Array(a), TypeDef::Array(b)) if a.len == b.len => {
            let (from, to) = (from.at(a.type_param.id), to.at(b.type_param.id));
            (0..a.len).try_for_each(|_| value(input, from, to, out, depth))
        }
        (TypeDef::Primitive(a), TypeDef::Primitive(b)) => primitive(input, (a, b), from, out),
        (TypeDef::Compact(_), TypeDef::Compact(_)) => {
            let number = Compact::<u128>::decode(input).map_err(|error| error.to_string())?;
            number.encode_to(out);
            Ok(())
        }
        _ => Err("it is another kind of value".into()),
    }
}

fn same_variant<'a>(
    known: &Variant<PortableForm>,
    variants: &'a [Variant<PortableForm>],
) -> Option<&'a Variant<PortableForm>> {
    variants.iter().find(|variant| variant.name == known.name)
}

fn fields(
    input: &mut &[u8],
    from: (End, &[Part]),
    to: (End, &[Part]),
    out: &mut Vec<u8>,
    depth: u32,
) -> Result<(), String> {
    let plan = plan(from.1, to)?;
    let in_order = plan.len() == from.1.len() && plan.iter().enumerate().all(|(at, of)| *of == Some(at));
    if in_order {
        let mut pairs = from.1.iter().zip(to.1);
        return pairs.try_for_each(|(a, b)| value(input, from.0.at(a.ty), to.0.at(b.ty), out, depth));
    }
    let mut slices = Vec::with_capacity(from.1.len());
    for part in from.1 {
        let before = *input;
        from.0.at(part.ty).skip(input)?;
        let used = before.len().saturating_sub(input.len());
        slices.push((part.ty, before.get(..used).unwrap_or_default()));
    }
    for (part, of) in to.1.iter().zip(plan) {
        let Some((ty, mut slice)) = of.and_then(|at| slices.get(at).copied()) else {
            // `None` of an `Option`, which is all that may be absent.
            out.push(0);
            continue;
        };
        value(&mut slice, from.0.at(ty), to.0.at(part.ty), out, depth)?;
    }
    Ok(())
}

/// Takes one value over as it is.
fn copy(input: &mut &[u8], from: End, out: &mut Vec<u8>) -> Result<(), String> {
    let before = *input;
    from.skip(input)?;
    let used = before.len().saturating_sub(input.len());
    out.extend_from_slice(before.get(..used).unwrap_or_default());
    Ok(())
}

/// Bits of an unsigned number.
fn width(primitive: &TypeDefPrimitive) -> Option<usize> {
    match primitive {
        TypeDefPrimitive::U8 => Some(1),
        TypeDefPrimitive::U16 => Some(2),
        TypeDefPrimitive::U32 => Some(4),
        TypeDefPrimitive::U64 => Some(8),
        TypeDefPrimitive::U128 => Some(16),
        _ => None,
    }
}

/// Whether every value of one is a value of the other.
fn widens(from: &TypeDefPrimitive, to: &TypeDefPrimitive) -> bool {
    match (width(from), width(to)) {
        (Some(from), Some(to)) => from <= to,
        _ => from == to,
    }
}

fn primitive(
    input: &mut &[u8],
    (a, b): (&TypeDefPrimitive, &TypeDefPrimitive),
    from: End,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if !widens(a, b) {
        return Err(format!("{a:?} is no {b:?}"));
    }
    copy(input, from, out)?;
    if let (Some(from), Some(to)) = (width(a), width(b)) {
        out.resize(out.len().saturating_add(to.saturating_sub(from)), 0);
    }
    Ok(())
}

/// Whether values of one type can be translated into another, as far as types can tell: a variant that only
/// one of them has shows when it occurs.
///
/// # Errors
/// What does not fit, in words.
pub(super) fn fits(from: End, to: End) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    fits_within(from, to, &mut seen)
}

fn fits_within(from: End, to: End, seen: &mut std::collections::BTreeSet<(u32, u32)>) -> Result<(), String> {
    if !seen.insert((from.ty, to.ty)) {
        return Ok(());
    }
    let (from_fields, to_fields) = (from.fields()?, to.fields()?);
    match (&from_fields, &to_fields) {
        (Some(from_parts), Some(to_parts)) => {
            return fields_fit((from, from_parts), (to, to_parts), seen);
        }
        (Some(_), None) => {
            let inner = unwrapped(from, &from_fields).ok_or("a record is no single value")?;
            return fits_within(inner, to, seen);
        }
        (None, Some(_)) => {
            let inner = unwrapped(to, &to_fields).ok_or("a single value is no record")?;
            return fits_within(from, inner, seen);
        }
        (None, None) => {}
    }
    if from.is_text_or_bytes()? && to.is_text_or_bytes()? {
        return Ok(());
    }
    match (from.def()?, to.def()?) {
        (TypeDef::Variant(a), TypeDef::Variant(b)) => {
            let mut shared = 0u32;
            for variant in &a.variants {
                let Some(same) = same_variant(variant, &b.variants) else {
                    continue;
                };
                shared = shared.saturating_add(1);
                let (from_parts, to_parts) = (parts(&variant.fields), parts(&same.fields));
                fields_fit((from, &from_parts), (to, &to_parts), seen)
                    .map_err(|what| format!("{}: {what}", variant.name))?;
            }
            match shared == 0 && !a.variants.is_empty() {
                true => Err("no variant is shared".into()),
                false => Ok(()),
            }
        }
        (TypeDef::Sequence(a), TypeDef::Sequence(b)) => {
            fits_within(from.at(a.type_param.id), to.at(b.type_param.id), seen)
        }
        (TypeDef::Array(a), TypeDef::Array(b)) if a.len == b.len => {
            fits_within(from.at(a.type_param.id), to.at(b.type_param.id), seen)
        }
        (TypeDef::Primitive(a), TypeDef::Primitive(b)) if widens(a, b) => Ok(()),
        (TypeDef::Primitive(a), TypeDef::Primitive(b)) => Err(format!("{a:?} is no {b:?}")),
        (TypeDef::Compact(_), TypeDef::Compact(_)) => Ok(()),
        _ => Err("it is another kind of value".into()),
    }
}

fn fields_fit(
    from: (End, &[Part]),
    to: (End, &[Part]),
    seen: &mut std::collections::BTreeSet<(u32, u32)>,
) -> Result<(), String> {
    for (part, of) in to.1.iter().zip(plan(from.1, to)?) {
        let Some(found) = of.and_then(|at| from.1.get(at)) else {
            continue;
        };
        fits_within(from.0.at(found.ty), to.0.at(part.ty), seen).map_err(|what| {
            part.name
                .map_or_else(|| what.clone(), |name| format!("{name}: {what}"))
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
