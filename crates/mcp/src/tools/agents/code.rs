//! A program in another language, in a sandbox of its own.

use super::{Context, Failure, invalid};
use crate::data::Data;
use crate::host::{Host, Program};
use crate::tools::parts::{input, output};

const USUAL_SECONDS: u64 = 30;
/// The programs that read another one.
const LANGUAGES: [(&str, &str); 6] = [
    ("bash", "bash"),
    ("sh", "sh"),
    ("python", "python3"),
    ("javascript", "node"),
    ("perl", "perl"),
    ("ruby", "ruby"),
];

input! {
    ExecuteCode {
        /// The text of the program.
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 65_536)))]
        code: String,
        ;
        /// bash, sh, python, javascript, perl or ruby; bash if absent.
        language: String,
        /// The longest it may take, in seconds; 30 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600)))]
        timeout: u64,
        /// A profile of the sandbox; `default` if absent.
        sandbox: String,
    }
}

output! {
    Executed {
        output: Data,
        /// How the program ended: 0 is well.
        status: i64,
    }
}

pub(crate) async fn execute_code<H: Host>(
    context: &Context<'_, H>,
    input: ExecuteCode,
) -> Result<Executed, Failure> {
    let language = input.language.as_deref().unwrap_or("bash");
    let Some((_, interpreter)) = LANGUAGES.iter().find(|(name, _)| *name == language) else {
        let names: Vec<&str> = LANGUAGES.iter().map(|(name, _)| *name).collect();
        let message = format!("'language' is one of {}", names.join(", "));
        return Err(invalid("/language", message).into());
    };
    let sandbox = input.sandbox.unwrap_or_else(|| "default".to_owned());
    if !sandbox
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
    {
        return Err(invalid("/sandbox", "a profile has a plain name").into());
    }
    let program = Program {
        interpreter,
        code: input.code,
        sandbox,
        seconds: input.timeout.unwrap_or(USUAL_SECONDS),
    };
    let (output, status) = context.host.execute(program).await?;
    Ok(Executed {
        output: Data::new(output),
        status,
    })
}
