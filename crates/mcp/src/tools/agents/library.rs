//! Roles and skills that agents are started with.

use super::{Context, Failure, Nothing, Text, invalid};
use crate::data::Data;
use crate::host::Host;
use crate::tools::parts::{input, output};

input! {
    Keyword {
        /// A word of its name or description.
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200)))]
        keyword: String,
    }
}

input! {
    SkillName {
        /// A skill; list_skills names them.
        name: String,
    }
}

output! {
    Item {
        name: String,
        description: Data,
    }
}

output! {
    Items {
        items: Vec<Item>,
    }
}

/// What a page says about itself in its front matter.
fn description(text: &str) -> String {
    let line = text
        .lines()
        .take(30)
        .find_map(|line| line.strip_prefix("description:"));
    line.unwrap_or_default().trim().to_owned()
}

async fn items<H: Host>(context: &Context<'_, H>, place: &str, keyword: &str) -> Result<Items, Failure> {
    let mut found = Vec::new();
    let names = context.names(place).await?;
    for name in names.into_iter().filter(|name| !name.starts_with('.')) {
        let text = context.read(format!("{place}/{name}")).await?;
        let about = description(&text);
        let plain = name.trim_end_matches(".md").to_owned();
        let both = format!("{plain} {about}").to_lowercase();
        if both.contains(&keyword.to_lowercase()) {
            found.push(Item {
                name: plain,
                description: Data::new(about),
            });
        }
    }
    Ok(Items { items: found })
}

pub(crate) async fn list_roles<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<Items, Failure> {
    items(context, "agents/roles", "").await
}

pub(crate) async fn list_skills<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<Items, Failure> {
    items(context, "agents/skills", "").await
}

pub(crate) async fn discover_skill<H: Host>(
    context: &Context<'_, H>,
    input: Keyword,
) -> Result<Items, Failure> {
    items(context, "agents/skills", &input.keyword).await
}

pub(crate) async fn load_skill<H: Host>(context: &Context<'_, H>, input: SkillName) -> Result<Text, Failure> {
    if input.name.contains(['/', '\0']) || input.name.starts_with('.') {
        return Err(invalid("/name", "a skill has a plain name").into());
    }
    let text = context.read(format!("agents/skills/{}.md", input.name)).await?;
    Ok(Text {
        text: Data::new(text),
    })
}
