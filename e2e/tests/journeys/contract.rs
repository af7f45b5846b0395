//! The real API server answers the requests that the operator makes as the API server in memory does, before which the operator's own tests let each
//! call of it fail.

use std::{env, fs};

use anyhow::{Result, ensure};
use e2e::{journey::journey, lab::workspace};

#[path = "../../../core-operator/src/every_call/contract/mod.rs"]
mod requests_of_the_operator;

use self::requests_of_the_operator::{answers, differences, expected};

/// With `STACKWRIGHT_REGENERATE=1` what it answers becomes what is expected of both.
#[test]
fn real_api_server_answers_as_the_one_in_memory() -> Result<()> {
    journey(async |journey| {
        let answers = answers(&journey.client, &journey.namespace).await?;
        if env::var_os("STACKWRIGHT_REGENERATE").is_some() {
            let file = workspace().join("core-operator/src/every_call/contract/answers.jsonl");
            let lines = answers.iter().map(|answer| format!("{answer}\n"));
            fs::write(file, lines.collect::<String>())?;
            return Ok(());
        }
        let differences = differences(&answers, &expected()?);
        ensure!(differences.is_empty(), "{}", differences.join("\n"));
        Ok(())
    })
}
