//! Documentation: of classes that run, and what is built in.

use beamtalk_wire::{Side, requests};

use super::parts::{input, output};
use super::{Context, Failure};
use crate::data::Data;
use crate::host::{DocHit, Host};

input! {
    Docs {
        ;
        /// A class, such as `Integer`.
        class: String,
        /// An Erlang module, such as `lists`.
        erlang_module: String,
        /// A method of the class, such as `at:put:`; or a function of the module.
        selector: String,
        /// `instance` if absent.
        side: Side,
    }
}

output! {
    Documented {
        markdown: Data,
        ;
        /// The head of the method.
        signature: Data,
    }
}

pub(crate) async fn docs<H: Host>(context: &Context<'_, H>, input: Docs) -> Result<Documented, Failure> {
    super::one_of(&[
        ("class", input.class.is_some()),
        ("erlang_module", input.erlang_module.is_some()),
    ])?;
    let built_in = || {
        let class = input.class.as_deref()?;
        context.host.doc(class, input.selector.as_deref())
    };
    let request = requests::Docs {
        class: input.class.clone(),
        erlang_module: input.erlang_module.clone(),
        selector: input.selector.clone(),
        side: input.side,
        ..requests::Docs::default()
    };
    let markdown = match context.ask(&request).await {
        Ok(asked) => asked.answer.docs,
        Err(error) if matches!(error.kind.name(), "no_workspace" | "node_down" | "node_starting") => {
            built_in().ok_or(error)?
        }
        Err(error) => return Err(error.into()),
    };
    let signature = match (&input.class, &input.selector) {
        (Some(class), Some(selector)) if context.host.is_connected() => {
            let side = input.side.unwrap_or_default();
            // An inherited method has its text elsewhere; its documentation stands for itself.
            let found = super::method(context.host, class, selector, side).await;
            found.ok().and_then(|found| found.signature)
        }
        _ => None,
    };
    Ok(Documented {
        markdown: Data::new(markdown),
        signature: signature.map(Data::new),
    })
}

/// What a hit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Topic,
    Class,
    Method,
    Example,
    Error,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Class => "class",
            Self::Method => "method",
            Self::Example => "example",
            Self::Error => "error",
        }
    }
}

input! {
    SearchDocs {
        /// Words to look for.
        #[cfg_attr(feature = "schema", schemars(length(min = 2, max = 200)))]
        query: String,
        ;
        /// How many hits; 5 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 20)))]
        limit: u64,
        /// Only hits of this kind.
        kind: Kind,
    }
}

input! {
    Search {
        /// Words to look for.
        #[cfg_attr(feature = "schema", schemars(length(min = 2, max = 200)))]
        query: String,
        ;
        /// How many hits; 5 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 20)))]
        limit: u64,
    }
}

output! {
    Hit {
        title: String,
        kind: String,
        /// Readable as a resource.
        uri: String,
        excerpt: Data,
        score: u64,
    }
}

output! {
    Found {
        hits: Vec<Hit>,
    }
}

fn search<H: Host>(context: &Context<'_, H>, query: &str, kind: Option<Kind>, limit: Option<u64>) -> Found {
    let limit = usize::try_from(limit.unwrap_or(5)).unwrap_or(5);
    let hits = context.host.search_docs(query, kind.map(Kind::name), limit);
    let one = |hit: DocHit| Hit {
        title: hit.title,
        kind: hit.kind,
        uri: hit.uri,
        excerpt: Data::new(hit.excerpt),
        score: hit.score,
    };
    Found {
        hits: hits.into_iter().map(one).collect(),
    }
}

#[expect(clippy::unused_async, reason = "tools are called alike")]
pub(crate) async fn search_docs<H: Host>(
    context: &Context<'_, H>,
    input: SearchDocs,
) -> Result<Found, Failure> {
    Ok(search(context, &input.query, input.kind, input.limit))
}

#[expect(clippy::unused_async, reason = "tools are called alike")]
pub(crate) async fn search_examples<H: Host>(
    context: &Context<'_, H>,
    input: Search,
) -> Result<Found, Failure> {
    Ok(search(context, &input.query, Some(Kind::Example), input.limit))
}

#[expect(clippy::unused_async, reason = "tools are called alike")]
pub(crate) async fn search_classes<H: Host>(
    context: &Context<'_, H>,
    input: Search,
) -> Result<Found, Failure> {
    Ok(search(context, &input.query, Some(Kind::Class), input.limit))
}
