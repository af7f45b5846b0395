//! Glance: which call is meant, who may make it, and images made, shown and deleted.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    STORES, Shared,
    answers::{Answer, Refusal, empty, json_answer, ok, with},
    identity::{LONGEST_BODY, Role, Session, project_id, who},
    imports, listing,
    model::{Amendable, Image, State, Status},
    patch, quota,
    upload::{self, Place},
    versions,
};

/// Most tags and most properties of an image.
const MOST: usize = 128;

/// What only the service itself may say of an image.
pub(super) const READ_ONLY: [&str; 15] = [
    "owner",
    "status",
    "size",
    "virtual_size",
    "checksum",
    "os_hash_algo",
    "os_hash_value",
    "created_at",
    "updated_at",
    "self",
    "file",
    "schema",
    "direct_url",
    "locations",
    "stores",
];

/// A call of somebody.
pub(super) struct Call<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) project: &'static str,
    pub(super) is_admin: bool,
}

/// What Glance says to a request.
pub(super) async fn answer(shared: &Arc<Shared>, target: &str, request: Request<Incoming>, number: usize) -> Answer {
    let accepts = request.headers().contains_key(header::ACCEPT);
    match served(shared, target, request, number).await {
        Ok(answer) => answer,
        Err(refusal) if accepts => refusal.page(),
        Err(refusal) => refusal.plain(),
    }
}

async fn served(
    shared: &Arc<Shared>,
    target: &str,
    request: Request<Incoming>,
    number: usize,
) -> Result<Answer, Refusal> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts == ["versions"] {
        return Ok(json_answer(StatusCode::MULTIPLE_CHOICES, &versions::images(shared)));
    }
    let (session, project) = who(shared, request.headers())?;
    let call = Call {
        shared,
        project,
        is_admin: session.role == Role::Admin,
    };
    may(&session, request.method())?;
    let method = request.method().clone();
    match (&method, parts.as_slice()) {
        (&Method::GET, ["v2"]) => Ok(ok(&versions::images(shared))),
        (&Method::GET, ["v2", "images"]) => listing::list(&call, query),
        (&Method::GET, ["v2", "info", what]) => call.info(what),
        (&Method::GET, ["v2", "images", id]) => Ok(ok(&visible(&shared.state(), id, project)?.shown())),
        (&Method::GET, ["v2", "images", id, "file"]) => call.file(id),
        (&Method::GET, ["v2", "images", id, "tasks"]) => imports::tasks(&call, id),
        (&Method::DELETE, ["v2", "images", id]) => call.delete(id),
        (&Method::POST, ["v2", "images", id, "actions", action]) => call.action(id, action),
        (&Method::PUT, ["v2", "images", id, "file"]) => {
            upload::upload(shared, project, id, Place::File, request, number).await
        }
        (&Method::PUT, ["v2", "images", id, "stage"]) => {
            upload::upload(shared, project, id, Place::Stage, request, number).await
        }
        (&Method::POST, ["v2", "images"]) => call.create(&body(request).await?),
        (&Method::PATCH, ["v2", "images", id]) => {
            let kind = request.headers().get(header::CONTENT_TYPE).cloned();
            patch::patch(&call, id, kind.as_ref(), &body(request).await?)
        }
        (&Method::POST, ["v2", "images", id, "import"]) => imports::begin(&call, id, &body(request).await?),
        _ => Err(Refusal::new(StatusCode::NOT_FOUND, "The resource could not be found.")),
    }
}

async fn body(request: Request<Incoming>) -> Result<Value, Refusal> {
    let body = Limited::new(request.into_body(), LONGEST_BODY).collect().await;
    let body = body.map_err(|_| Refusal::bad("the body is too long, or broke off"))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|_| Refusal::bad("Malformed JSON in request body."))
}

fn may(session: &Session, method: &Method) -> Result<(), Refusal> {
    if session.role == Role::Reader && method != Method::GET {
        return Err(Refusal::forbidden("You are not authorized to complete this action."));
    }
    Ok(())
}

/// An image that somebody of this project may see.
pub(super) fn visible<'state>(state: &'state State, id: &str, project: &str) -> Result<&'state Image, Refusal> {
    let image = state.images.get(id);
    let image = image.filter(|image| image.is_shown_to(project) || project == "admin");
    image.ok_or_else(|| Refusal::not_found(id))
}

impl Call<'_> {
    fn info(&self, what: &str) -> Result<Answer, Refusal> {
        let methods = &self.shared.options.methods;
        Ok(ok(&match what {
            "import" => json!({ "import-methods": {
                "description": "Import methods available.", "type": "array", "value": methods,
            } }),
            "stores" => {
                let stores = STORES.map(|store| json!({ "id": store, "default": (store == STORES[0]).to_string() }));
                json!({ "stores": stores })
            }
            "usage" => quota::shown(self.shared, &self.shared.state(), self.project),
            _ => return Err(Refusal::new(StatusCode::NOT_FOUND, "The resource could not be found.")),
        }))
    }

    fn create(&self, body: &Value) -> Result<Answer, Refusal> {
        let Value::Object(body) = body else {
            return Err(Refusal::bad("Expected a map."));
        };
        let fields = self.fields(body)?;
        let mut state = self.shared.state();
        quota::create(self.shared, &state, self.project)?;
        let id = match body.get("id") {
            None => state.id(),
            Some(id) => {
                let id = id.as_str().and_then(|id| Uuid::try_parse(id).ok());
                id.ok_or_else(|| Refusal::bad("the id is no UUID"))?.to_string()
            }
        };
        if state.gone.contains(&id) || state.images.contains_key(&id) {
            return Err(Refusal::conflict(format!("Image ID {id} already exists!")));
        }
        let number = state.number();
        let image = Image::new(id.clone(), number, self.project, project_id(self.project), fields);
        let mut answer = json_answer(StatusCode::CREATED, &image.shown());
        state.images.insert(id.clone(), image);
        let headers = [
            ("location", format!("{}/v2/images/{id}", self.shared.glance)),
            ("openstack-image-import-methods", self.shared.options.methods.join(",")),
        ];
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                answer.headers_mut().insert(name, value);
            }
        }
        Ok(answer)
    }

    fn fields(&self, body: &Map<String, Value>) -> Result<Amendable, Refusal> {
        let mut fields = Amendable {
            visibility: "shared".to_owned(),
            ..Amendable::default()
        };
        for (key, value) in body.iter().filter(|(key, _)| *key != "id") {
            self.set(&mut fields, key, value)?;
        }
        Ok(fields)
    }

    /// Sets a field or property.
    pub(super) fn set(&self, fields: &mut Amendable, key: &str, value: &Value) -> Result<(), Refusal> {
        let invalid = || Refusal::bad(format!("Invalid value '{value}' for '{key}': it has another type."));
        let text = || value.as_str().map(str::to_owned).ok_or_else(invalid);
        match key {
            _ if key.starts_with("os_glance_") => {
                return Err(Refusal::forbidden(format!("Attribute '{key}' is reserved.")));
            }
            _ if READ_ONLY.contains(&key) => {
                return Err(Refusal::forbidden(format!("Attribute '{key}' is read-only.")));
            }
            "os_hidden" if !self.shared.options.knows_hidden => {
                return Err(Refusal::bad(
                    "Additional properties are not allowed ('os_hidden' was unexpected)",
                ));
            }
            "name" => fields.name = Some(text()?),
            "disk_format" => fields.disk_format = Some(text()?),
            "container_format" => fields.container_format = Some(text()?),
            "visibility" => fields.visibility = self.visibility(text()?)?,
            "protected" => fields.protected = value.as_bool().ok_or_else(invalid)?,
            "os_hidden" => fields.hidden = value.as_bool().ok_or_else(invalid)?,
            "min_disk" => fields.min_disk = value.as_u64().ok_or_else(invalid)?,
            "min_ram" => fields.min_ram = value.as_u64().ok_or_else(invalid)?,
            "tags" => {
                let tags = value.as_array().ok_or_else(invalid)?.iter();
                let tags = tags.map(|tag| tag.as_str().map(str::to_owned).ok_or_else(invalid));
                fields.tags = tags.collect::<Result<_, _>>()?;
                bounded("tags", fields.tags.len())?;
            }
            _ => {
                fields.properties.insert(key.to_owned(), text()?);
                bounded("properties", fields.properties.len())?;
            }
        }
        Ok(())
    }

    fn visibility(&self, visibility: String) -> Result<String, Refusal> {
        match visibility.as_str() {
            "private" | "shared" | "community" => Ok(visibility),
            "public" if self.is_admin => Ok(visibility),
            "public" => Err(Refusal::forbidden(
                "You are not authorized to complete publicize_image action.",
            )),
            _ => Err(Refusal::bad(format!("Invalid visibility value: {visibility}"))),
        }
    }

    fn file(&self, id: &str) -> Result<Answer, Refusal> {
        let state = self.shared.state();
        let image = visible(&state, id, self.project)?;
        if image.status == Status::Deactivated && !self.is_admin {
            return Err(Refusal::forbidden(
                "The requested image has been deactivated. Image data download is forbidden.",
            ));
        }
        let sums = image.sums.as_ref().filter(|_| image.status == Status::Active);
        match (&image.data, sums) {
            (Some(data), Some(_)) => Ok(with(StatusCode::OK, "application/octet-stream", Bytes::clone(data))),
            (None, Some(_)) => Err(Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "an image of this size is not kept by the fake",
            )),
            _ => Ok(empty(StatusCode::NO_CONTENT)),
        }
    }

    fn delete(&self, id: &str) -> Result<Answer, Refusal> {
        let mut state = self.shared.state();
        let image = visible(&state, id, self.project)?;
        if image.project != self.project && !self.is_admin {
            return Err(Refusal::forbidden(
                "You are not authorized to complete delete_image action.",
            ));
        }
        if image.fields.protected {
            let words = format!("Image {id} is protected and cannot be deleted.");
            return Err(Refusal::forbidden(words));
        }
        state.images.remove(id);
        state.gone.insert(id.to_owned());
        Ok(empty(StatusCode::NO_CONTENT))
    }

    fn action(&self, id: &str, action: &str) -> Result<Answer, Refusal> {
        if !self.is_admin {
            return Err(Refusal::forbidden("You are not authorized to complete this action."));
        }
        let mut state = self.shared.state();
        let image = state.images.get_mut(id).ok_or_else(|| Refusal::not_found(id))?;
        image.status = match (action, image.status) {
            ("deactivate", Status::Active | Status::Deactivated) => Status::Deactivated,
            ("reactivate", Status::Active | Status::Deactivated) => Status::Active,
            _ => {
                return Err(Refusal::forbidden(
                    "Deactivating an image in this state is not allowed.",
                ));
            }
        };
        image.touch();
        Ok(empty(StatusCode::NO_CONTENT))
    }
}

fn bounded(what: &str, number: usize) -> Result<(), Refusal> {
    if number > MOST {
        let words = format!(
            "The limit has been exceeded on the number of allowed image {what}. Attempted: {number}, Maximum: {MOST}"
        );
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words));
    }
    Ok(())
}
