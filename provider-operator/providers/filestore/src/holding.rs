//! Which installation works on a record: noted beside it, in a file of its own, because what is known of the bytes belongs to whoever sends them. Blocks,
//! as records do, and decides nothing.

use std::io;

use provider_plugin::{ImageId, OwnerId};

use crate::{
    disk,
    error::RecordError,
    layout::Stem,
    records::Records,
    sidecar::{Holder, Marks},
};

impl Records {
    /// Notes who works on a record from now on.
    pub(crate) fn hold(&self, id: &ImageId, owner: &OwnerId, holder: &OwnerId) -> Result<(), RecordError> {
        let (stem, marks) = self.find(id, owner)?;
        if self.holder(&stem, &marks)? == *holder {
            return Ok(());
        }
        let held = Holder {
            token: marks.token.clone(),
            holder: holder.clone(),
        };
        let path = self.layout.holder(&stem);
        let json = serde_json::to_vec(&held).map_err(io::Error::from)?;
        self.put(&stem, &path, &json)?;
        self.disk.sync_folder(&self.layout.parts())?;
        // Who deleted the record meanwhile did not see this.
        let there = self.marks(&stem)?;
        if there.is_some_and(|there| there.token == marks.token) {
            return Ok(());
        }
        self.disk.remove(&path)?;
        Err(RecordError::Find { id: id.0.clone() })
    }

    /// Who works on a record: its owner, unless it is written otherwise for this record.
    pub(crate) fn holder(&self, stem: &Stem, marks: &Marks) -> io::Result<OwnerId> {
        let json = disk::read(&self.layout.holder(stem))?;
        let held: Option<Holder> = json.and_then(|json| serde_json::from_slice(&json).ok());
        let held = held.filter(|held| held.token == marks.token);
        Ok(held.map_or_else(|| marks.owner.clone(), |held| held.holder))
    }
}
