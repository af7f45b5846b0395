//! Lists of images: which of them, in which order, and on which page.

use http::StatusCode;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    answers::{Answer, Refusal, ok},
    images::Call,
    model::{Image, State},
};

/// Most images on a page.
const LONGEST_PAGE: usize = 1000;

/// What a list is asked for.
#[derive(Debug, Default)]
struct Query {
    filters: Vec<(String, String)>,
    limit: Option<usize>,
    marker: Option<String>,
    is_ascending: bool,
    /// The parameters without the marker, as the next page repeats them.
    repeated: Vec<(String, String)>,
}

impl Query {
    fn read(text: &str) -> Result<Self, Refusal> {
        let mut query = Self::default();
        for (key, value) in form_urlencoded::parse(text.as_bytes()) {
            let pair = (key.into_owned(), value.into_owned());
            match pair.0.as_str() {
                "marker" => query.marker = Some(pair.1),
                "limit" => {
                    let limit = pair.1.parse();
                    query.limit = Some(limit.map_err(|_| Refusal::bad("limit param must be an integer"))?);
                    query.repeated.push(pair);
                }
                "sort" | "sort_key" | "sort_dir" => {
                    query.is_ascending = pair.1.ends_with("asc");
                    query.repeated.push(pair);
                }
                _ => {
                    query.filters.push(pair.clone());
                    query.repeated.push(pair);
                }
            }
        }
        Ok(query)
    }

    fn link(&self, marker: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.repeated);
        if let Some(marker) = marker {
            query.append_pair("marker", marker);
        }
        // Without the prefix of the service, as Glance has it.
        format!("/v2/images?{}", query.finish())
    }
}

/// A page of the images that are asked for.
pub(super) fn list(call: &Call<'_>, query: &str) -> Result<Answer, Refusal> {
    let query = Query::read(query)?;
    let state = call.shared.state();
    let found = found(&state, call, &query);
    let begin = match &query.marker {
        None => 0,
        Some(marker) => {
            let place = found.iter().position(|image| image.id == *marker);
            let words = format!("Invalid marker. Image {marker} could not be found.");
            place.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, words))? + 1
        }
    };
    let length = query.limit.unwrap_or(call.shared.options.page).min(LONGEST_PAGE);
    let page: Vec<_> = found[begin..].iter().take(length).collect();
    let shown: Vec<Value> = page.iter().map(|image| image.shown()).collect();
    let mut answer = json!({ "images": shown, "first": query.link(None), "schema": "/v2/schemas/images" });
    let is_full = length > 0 && page.len() == length;
    if let Some(last) = page.last().filter(|_| is_full) {
        answer["next"] = query.link(Some(&last.id)).into();
    }
    Ok(ok(&answer))
}

fn found<'state>(state: &'state State, call: &Call<'_>, query: &Query) -> Vec<&'state Image> {
    let asks_hidden = query.filters.iter().any(|(key, _)| key == "os_hidden");
    let asks_community = query
        .filters
        .iter()
        .any(|(key, value)| key == "visibility" && value == "community");
    let is_listed = |image: &Image| {
        image.project == call.project || call.is_admin || image.fields.visibility == "public" || asks_community
    };
    let is_meant = |image: &Image| {
        (asks_hidden || !image.fields.hidden)
            && query.filters.iter().all(|(key, value)| passes(image, key, value))
            && image.is_shown_to(call.project)
            && is_listed(image)
    };
    let mut found: Vec<_> = state.images.values().filter(|image| is_meant(image)).collect();
    found.sort_by_key(|image| image.number);
    if !query.is_ascending {
        found.reverse();
    }
    found
}

fn passes(image: &Image, key: &str, value: &str) -> bool {
    let fields = &image.fields;
    let is_one_of = |found: &str| match value.strip_prefix("in:") {
        Some(list) => list.split(',').any(|one| one.trim_matches('"') == found),
        None => value == found,
    };
    match key {
        "name" => is_one_of(fields.name.as_deref().unwrap_or_default()),
        "id" => is_one_of(&image.id),
        "status" => is_one_of(image.status.word()),
        "owner" => image.owner == value,
        "visibility" => value == "all" || fields.visibility == value,
        "tag" => fields.tags.contains(value),
        "protected" => value == fields.protected.to_string(),
        "os_hidden" => value.eq_ignore_ascii_case(&fields.hidden.to_string()),
        "disk_format" => is_one_of(fields.disk_format.as_deref().unwrap_or_default()),
        "container_format" => is_one_of(fields.container_format.as_deref().unwrap_or_default()),
        _ => fields.properties.get(key).is_some_and(|property| property == value),
    }
}
