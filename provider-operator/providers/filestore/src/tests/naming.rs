//! A name has one image, which is replaced whole by its own object and by nobody else.

use std::{collections::BTreeMap, fs, sync::Arc};

use provider_plugin::{
    CloudName, ContentKey, ContentPlan, Created, ErrorClass, Identity, ImageId, ImageStore, Provider,
};

use super::lab::{Lab, operate, send};
use crate::{FileStores, OptionError};

const NAME: &str = "node-image-v2";

#[tokio::test]
async fn new_content_takes_the_name_and_the_old_goes_without_it() {
    let lab = Lab::new();
    let (store, old, source) = (lab.open(), lab.spec(NAME), Arc::new(lab.source()));
    operate(&store, &old, &source).await.unwrap();
    let mut new = old.clone();
    new.subject.key = ContentKey::parse(&"f".repeat(64)).unwrap();
    assert!(matches!(store.create(&new, 2).await.unwrap(), Created::New(_)));
    send(&store, &new, 2, &source, ContentPlan::default()).await.unwrap();
    let new_id = ImageId("ffffffffffffffff.2".to_owned());
    store.publish(&new_id, &new, "sha512:11").await.unwrap();
    lab.has_published(NAME);
    let records = store.observe(&new.subject, &new).await.unwrap().records;
    let shown: Vec<_> = records
        .iter()
        .map(|record| (record.attempt, record.shown, record.verified.is_some()))
        .collect();
    let is_new = |attempt: u32| (attempt, attempt == 2, attempt == 2);
    assert!(shown.contains(&is_new(1)) && shown.contains(&is_new(2)), "{shown:?}");

    let old_id = &records.iter().find(|record| record.attempt == 1).unwrap().id;
    store.discard(old_id, &old.subject.marked(1)).await.unwrap();
    lab.has_published(NAME);
}

#[tokio::test]
async fn a_file_that_somebody_put_there_is_seen_and_stays() {
    let lab = Lab::new();
    fs::write(lab.path().join(NAME), "somebody's").unwrap();
    let (store, mut image, source) = (lab.open(), lab.spec(NAME), Arc::new(lab.source()));
    let error = operate(&store, &image, &source).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::State);
    assert!(error.to_string().contains("something else has the name"), "{error}");
    image.subject.look_for_others = true;
    let others = store.observe(&image.subject, &image).await.unwrap().others;
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].id, ImageId(NAME.to_owned()));
    assert_eq!(
        others[0].description,
        format!("{NAME}, 10 bytes, put there by somebody")
    );
    assert!(others[0].is_usable && others[0].is_of_our_project);
    store
        .discard(&observed_id(&store, &image).await, &image.subject.marked(1))
        .await
        .unwrap();
    assert_eq!(lab.published(NAME).unwrap(), b"somebody's");
}

async fn observed_id(store: &crate::FileStore, image: &provider_plugin::ImageSpec) -> ImageId {
    store.observe(&image.subject, image).await.unwrap().records[0]
        .id
        .clone()
}

#[tokio::test]
async fn another_objects_image_of_the_name_stays() {
    let lab = Lab::new();
    let (store, first, source) = (lab.open(), lab.spec(NAME), Arc::new(lab.source()));
    operate(&store, &first, &source).await.unwrap();
    let mut second = lab.spec("another");
    NAME.clone_into(&mut second.subject.name);
    second.subject.look_for_others = true;
    let error = operate(&store, &second, &source).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::State);
    let others = store.observe(&second.subject, &second).await.unwrap().others;
    assert_eq!(
        others[0].description,
        format!("{NAME}, {} bytes, made for suite/{NAME}", lab.bytes.len())
    );
    assert!(others[0].sha512.is_some());
    lab.has_published(NAME);
}

#[tokio::test]
async fn an_image_to_adopt_is_looked_for_by_its_name() {
    let lab = Lab::new();
    fs::write(lab.path().join("old-image"), "somebody's").unwrap();
    let (store, mut image) = (lab.open(), lab.spec(NAME));
    for (id, count) in [("old-image", 1), ("../etc/passwd", 0), ("absent", 0), (".parts", 0)] {
        image.subject.adopt = Some(ImageId(id.to_owned()));
        let others = store.observe(&image.subject, &image).await.unwrap().others;
        assert_eq!(others.len(), count, "{id}");
    }
}

#[tokio::test]
async fn what_no_directory_can_have_is_refused_before_anything_is_made() {
    let lab = Lab::new();
    let store = lab.open();
    let bad = ["a/b", "..", "image.sha256"].map(|name| lab.spec(name));
    let mut options = lab.spec(NAME);
    options.options.insert("visibility".to_owned(), "public".into());
    let mut stores = lab.spec(NAME);
    stores.stores.push("ceph".to_owned());
    for image in bad.into_iter().chain([options, stores]) {
        let provider = FileStores::parse(["default=/images"]).unwrap();
        assert_eq!(provider.check(&image).unwrap_err().class, ErrorClass::Invalid);
        assert_eq!(store.create(&image, 1).await.unwrap_err().class, ErrorClass::Invalid);
    }
    assert_eq!(lab.files(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn what_does_not_fit_is_told_before_it_is_sent() {
    let lab = Lab::new();
    let (store, image) = (lab.open(), lab.spec(NAME));
    store.preflight(&image, Some(1)).await.unwrap();
    let error = store.preflight(&image, Some(u64::MAX)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Quota);
    assert_eq!(error.quota.unwrap().requested, Some(u64::MAX));
}

#[test]
fn directories_are_given_as_options_and_chosen_by_name() {
    let stores = FileStores::parse(["default=/images", "metal=/srv/metal"]).unwrap();
    let identity = |name: &str| Identity {
        name: name.to_owned(),
        data: BTreeMap::new(),
        version: String::new(),
    };
    assert_eq!(
        stores.cloud_of(&identity("metal")).unwrap(),
        CloudName("/srv/metal".to_owned())
    );
    let error = stores.cloud_of(&identity("other")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(
        error
            .to_string()
            .ends_with("no store \"other\", but these: default, metal"),
        "{error}"
    );
    for option in ["default", "=/images", "default=images", "default="] {
        let error = FileStores::parse([option]).unwrap_err();
        assert_eq!(
            error,
            OptionError::Parse {
                option: option.to_owned()
            }
        );
    }
    let twice = FileStores::parse(["a=/b", "a=/c"]).unwrap_err();
    assert_eq!(twice, OptionError::Twice { name: "a".to_owned() });
}
