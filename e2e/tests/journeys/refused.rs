//! What the API server accepts and refuses of our kinds, with which words: the objects are those of `crds/tests/objects`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use e2e::{Journey, journey::journey};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PostParams},
};

/// One file of a folder of objects.
struct Case {
    name: String,
    /// What the first line says of it: the words of the refusal.
    refused: Option<String>,
    objects: Vec<DynamicObject>,
}

/// All files of one folder. An object gets a name of its own and the namespace of the journey, so that no case meets another.
fn cases(journey: &Journey, folder: &str) -> Result<Vec<Case>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crds/tests/objects")
        .join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    paths.iter().map(|path| case(journey, path)).collect()
}

fn case(journey: &Journey, path: &Path) -> Result<Case> {
    let text = fs::read_to_string(path)?;
    let name = path
        .file_stem()
        .context("a file has a name")?
        .to_string_lossy()
        .into_owned();
    let refused = text.lines().next().and_then(|line| line.strip_prefix("# refused: "));
    let mut objects = Vec::new();
    for document in text.split("\n---\n") {
        let mut object: DynamicObject = serde_yaml::from_str(document).with_context(|| path.display().to_string())?;
        object.metadata.namespace = Some(journey.namespace.clone());
        object.metadata.name = Some(name.clone());
        objects.push(object);
    }
    Ok(Case {
        name,
        refused: refused.map(str::to_owned),
        objects,
    })
}

fn api(journey: &Journey, object: &DynamicObject) -> Result<Api<DynamicObject>> {
    let types = object.types.as_ref().context("an object has a kind")?;
    Ok(journey.objects(&types.api_version, &types.kind))
}

async fn create(journey: &Journey, object: &DynamicObject) -> Result<DynamicObject, kube::Error> {
    let api = api(journey, object).map_err(|error| kube::Error::Service(error.into()))?;
    api.create(&PostParams::default(), object).await
}

/// Fails unless the answer is a refusal with these words, whole: what the API server adds to its own stands before and after.
fn refused_with(words: &str, answer: Result<DynamicObject, kube::Error>) -> Result<()> {
    match answer {
        Ok(_) => bail!("it was accepted; expected {words:?}"),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            let after = status.message.split_once(words).map(|(_, after)| after);
            let whole = after.is_some_and(|after| !after.starts_with(char::is_alphanumeric));
            ensure!(whole, "{:?} does not say {words:?}", status.message);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

#[test]
fn good_objects_are_accepted() -> Result<()> {
    journey(async |journey| {
        for case in cases(journey, "good")? {
            let [object] = case.objects.as_slice() else {
                bail!("{}: one object expected", case.name)
            };
            create(journey, object).await.with_context(|| case.name.clone())?;
        }
        Ok(())
    })
}

#[test]
fn bad_objects_are_refused_with_the_words_of_the_contract() -> Result<()> {
    journey(async |journey| {
        let mut faults = Vec::new();
        for case in cases(journey, "bad")? {
            let [object] = case.objects.as_slice() else {
                bail!("{}: one object expected", case.name)
            };
            let words = case
                .refused
                .as_deref()
                .with_context(|| format!("{}: no words", case.name))?;
            let answer = refused_with(words, create(journey, object).await);
            faults.extend(answer.err().map(|error| format!("{}: {error:#}", case.name)));
        }
        ensure!(faults.is_empty(), "{faults:#?}");
        Ok(())
    })
}

#[test]
fn changes_are_refused_where_the_contract_says_so_and_nowhere_else() -> Result<()> {
    journey(async |journey| {
        let cases = cases(journey, "changes")?;
        ensure!(cases.iter().any(|case| case.refused.is_none()), "no change is accepted");
        for case in cases {
            let [before, after] = case.objects.as_slice() else {
                bail!("{}: two objects expected", case.name)
            };
            let created = create(journey, before).await.with_context(|| case.name.clone())?;
            let mut wanted = after.clone();
            wanted.metadata.resource_version = created.resource_version();
            let answer = api(journey, after)?
                .replace(&case.name, &PostParams::default(), &wanted)
                .await;
            match &case.refused {
                Some(words) => refused_with(words, answer).with_context(|| case.name.clone())?,
                None => drop(answer.with_context(|| case.name.clone())?),
            }
        }
        Ok(())
    })
}
