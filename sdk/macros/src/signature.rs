//! What a function of a plugin takes: its context, and what else it wants to be given.

use quote::ToTokens as _;
use syn::spanned::Spanned;
use syn::{FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, Type};

use crate::handler::Arguments;

/// The `Ctx` that a function takes by `&mut`.
pub(crate) struct Context {
    pub(crate) ty: Type,
    /// The type of its state, if it names one.
    pub(crate) state: Option<Type>,
}

/// A parameter behind the context.
pub(crate) struct Taken {
    pub(crate) ty: Type,
    pub(crate) from: From,
}

/// Where a parameter's value comes from.
pub(crate) enum From {
    /// The command's arguments, under this name.
    Command(String),
    /// The state that the attribute names, which binds it.
    State(Ident),
    /// The pressed button, whose data the attribute names the type of.
    Data,
    /// The event, by its type.
    Event,
}

impl Context {
    pub(crate) fn of(function: &ItemFn, first: Option<&FnArg>) -> syn::Result<Self> {
        const CURE: &str = "a handler takes `ctx: &mut Ctx`, or `ctx: &mut Ctx<YourState>`, first";
        let signature = &function.sig;
        if let Some(keyword) = &signature.asyncness {
            let message = "a handler is no `async fn`: the host lets others run while it waits";
            return Err(syn::Error::new_spanned(keyword, message));
        }
        if !signature.generics.params.is_empty() {
            return Err(syn::Error::new_spanned(&signature.generics, "a handler can't be generic"));
        }
        let Some(FnArg::Typed(first)) = first else {
            return Err(syn::Error::new(signature.paren_token.span.join(), CURE));
        };
        match &*first.ty {
            Type::Reference(reference) if reference.mutability.is_some() && names_ctx(&reference.elem) => {
                let ty = (*reference.elem).clone();
                Ok(Self { state: state_type(&ty), ty })
            }
            other => Err(syn::Error::new_spanned(other, CURE)),
        }
    }
}

impl Taken {
    pub(crate) fn new(input: &FnArg, arguments: &Arguments) -> syn::Result<Self> {
        let FnArg::Typed(input) = input else {
            return Err(syn::Error::new_spanned(input, "a handler is a plain function, without `self`"));
        };
        if let Type::Reference(reference) = &*input.ty {
            let message = "what a handler takes besides `ctx` is its own: `String` for `&str`, and without `&`";
            return Err(syn::Error::new_spanned(reference, message));
        }
        let name = match &*input.pat {
            Pat::Ident(name) => Some(&name.ident),
            _ => None,
        };
        let from = match name {
            Some(name) if arguments.has_argument(&name.to_string()) => From::Command(name.to_string()),
            _ if arguments.data.as_ref().is_some_and(|data| is_same(data, &input.ty)) => From::Data,
            Some(name) if arguments.state.as_ref().is_some_and(|state| binds(state, name)) => From::State(name.clone()),
            _ => From::Event,
        };
        Ok(Self { ty: (*input.ty).clone(), from })
    }

    pub(crate) fn is_argument(&self, name: &str) -> bool {
        matches!(&self.from, From::Command(own) if own == name)
    }
}

fn is_same(one: &Type, other: &Type) -> bool {
    one.to_token_stream().to_string() == other.to_token_stream().to_string()
}

/// Whether a pattern binds this name.
fn binds(pattern: &Pat, name: &Ident) -> bool {
    match pattern {
        Pat::Ident(bound) => bound.ident == *name || bound.subpat.as_ref().is_some_and(|(_, inner)| binds(inner, name)),
        Pat::Or(or) => or.cases.iter().any(|case| binds(case, name)),
        Pat::Struct(of) => of.fields.iter().any(|field| binds(&field.pat, name)),
        Pat::TupleStruct(of) => of.elems.iter().any(|element| binds(element, name)),
        Pat::Tuple(of) => of.elems.iter().any(|element| binds(element, name)),
        Pat::Paren(inner) => binds(&inner.pat, name),
        Pat::Reference(inner) => binds(&inner.pat, name),
        _ => false,
    }
}

fn names_ctx(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ctx"))
}

fn state_type(context: &Type) -> Option<Type> {
    let Type::Path(path) = context else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

/// A function that stands around the handlers, or in for one: `#[middleware]`, `#[on_error]`.
pub(crate) struct Beside {
    pub(crate) function: Ident,
    pub(crate) context: Context,
}

impl Beside {
    pub(crate) fn new(function: &ItemFn, cure: &str) -> syn::Result<Self> {
        let mut inputs = function.sig.inputs.iter();
        let context = Context::of(function, inputs.next())?;
        if inputs.next().is_none() || inputs.next().is_some() {
            return Err(syn::Error::new(function.sig.inputs.span(), cure));
        }
        Ok(Self { function: function.sig.ident.clone(), context })
    }
}
