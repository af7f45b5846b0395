//! A change of a CRD is looked at before it is made: what it would drop is gone for good.

use crds::labels;
use kube::ResourceExt;
use operator_kit::apply::ApplyOptions;
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use planning::objects::ApplyReason;
use planning::stored_data;
use serde_json::Value;

use super::execute::Pass;
use super::owner::Owner;
use super::refusal::refusal;

/// Why a CRD stays as it is.
pub(super) enum Unchanged {
    /// It was refused, in words for people.
    Refused(String),
    /// Nothing was wrong but that stored data would have been lost; in words for people.
    LosesData(String),
    /// Another owner has made it in the meantime.
    Foreign,
}

impl<O: Owner> Pass<'_, O> {
    /// The body to apply for a CRD: one that is there is rehearsed, refused when it would lose stored data, and otherwise bound to the version
    /// that was looked at.
    pub(super) async fn without_loss(
        &self,
        owner: &O::Object,
        (key, why): (&ObjectKey, ApplyReason),
        body: &Value,
        options: &ApplyOptions<'_>,
    ) -> Result<Value, Unchanged> {
        let mut body = body.clone();
        let found = self.place.read(key).await;
        let Some(live) = found.map_err(|error| Unchanged::Refused(chain(&error)))? else {
            return Ok(body);
        };
        if why == ApplyReason::Create && self.is_anothers(key, &live).await.map_err(Unchanged::Refused)? {
            return Err(Unchanged::Foreign);
        }
        let rehearsal = ApplyOptions {
            dry_run: true,
            ..*options
        };
        let wanted = self
            .place
            .apply(&body, &rehearsal)
            .await
            .map_err(|error| Unchanged::Refused(refusal(self.owner.kind(), &error)))?;
        let approved = owner.annotations().get(labels::APPROVE_DATA_LOSS);
        let [before, after] = [&live, &wanted.live].map(|object| serde_json::to_value(object).unwrap_or_default());
        if let Some(message) = stored_data::refusal(self.owner.kind(), &before, &after, approved.map(String::as_str)) {
            return Err(Unchanged::LosesData(message));
        }
        // Who changes it in between may have added what would be lost.
        body["metadata"]["resourceVersion"] = live.resource_version().into();
        Ok(body)
    }
}
