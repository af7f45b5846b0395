//! Calls that cannot succeed end, and say nothing that nobody may know.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::time;

use super::{
    Broken, Harness, Held, Notes,
    lab::{Lab, content, ensure},
};
use crate::{CloudError, ContentPlan, ErrorClass, ImageId, ImageStore};

/// A call ends within so long.
const LONGEST: Duration = Duration::from_mins(1);

/// Errors of every call, for an image that is not there.
async fn errors<H: Harness>(lab: &Lab<H>) -> Vec<(&'static str, Option<CloudError>)> {
    let id = ImageId("00000000-0000-0000-0000-00000000dead".to_owned());
    let notes = Arc::<Notes>::default();
    let content = content(&Arc::new(lab.source()), ContentPlan::default(), &notes);
    let (store, image) = (&lab.store, &lab.image);
    vec![
        ("transfer", store.transfer(&id, image, content, &*notes).await.err()),
        (
            "import",
            store.import(&id, image, "https://images.example/node.img").await.err(),
        ),
        ("read back", store.read_back(&id).await.err()),
        ("publish", store.publish(&id, image, "sha512:00").await.err()),
        ("amend", store.amend(&id, image).await.err()),
        ("hold", store.hold(&id, lab.owner(), lab.owner()).await.err()),
        ("relinquish", store.relinquish(&id, lab.owner(), None).await.err()),
    ]
}

/// No error says what the store was given as a secret, nor does the store itself when it is printed.
pub async fn errors_hide_secrets<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "secrets").await;
    let secrets = harness.secrets();
    if secrets.is_empty() {
        return Ok(Held::Skipped("this provider is given no secrets"));
    }
    let mut said = vec![format!("{:?}", lab.store)];
    for (_, error) in errors(&lab).await {
        let Some(error) = error else { continue };
        ensure!(error.message.chars().count() <= 300, "a message is too long: {error}");
        said.push(format!("{error} {error:?}"));
        let mut cause = error.source();
        while let Some(error) = cause {
            said.push(format!("{error} {error:?}"));
            cause = error.source();
        }
    }
    for said in said {
        let told = secrets.iter().any(|secret| said.contains(secret.as_str()));
        ensure!(!told, "a secret is told in an error or in the words of the store");
    }
    Ok(Held::Holds)
}

/// Every call for an image that is not there ends in time, with an error that says so.
pub async fn calls_end<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "calls-end").await;
    let errors = time::timeout(LONGEST, errors(&lab)).await;
    let errors = errors.map_err(|_| Broken::new("calls for an image that is not there do not end"))?;
    let expected = [
        ErrorClass::Gone,
        ErrorClass::Unsupported,
        ErrorClass::NotOurs,
        ErrorClass::State,
    ];
    for (call, error) in errors {
        let class = error.map(|error| error.class);
        let is_told = class.is_some_and(|class| expected.contains(&class));
        ensure!(is_told, "{call} of an image that is not there is {class:?}");
    }
    Ok(Held::Holds)
}

/// What a cloud says that it cannot do it refuses, and nothing comes of asking: what is skipped here for it cannot happen either.
pub async fn what_a_cloud_cannot_do_is_refused<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "cannot").await;
    let able = lab.store.capabilities();
    let mut refused = Vec::new();
    if !able.transfers {
        refused.push(("create", lab.store.create(&lab.image, 1).await.err()));
        refused.extend(errors(&lab).await);
    }
    for (call, error) in refused {
        let class = error.map(|error| error.class);
        let is_refused = matches!(class, Some(ErrorClass::Unsupported | ErrorClass::NotOurs));
        ensure!(is_refused, "{call} in a cloud without images of its own is {class:?}");
    }
    let owned = lab.store.owned(lab.owner()).await?;
    ensure!(owned.is_empty(), "nothing was made, and this is owned: {owned:?}");
    Ok(Held::Holds)
}
