//! Leases with optimistic locking, and processes that follow the rules of `planning::election` with writes that may arrive late.

use std::collections::BTreeMap;
use std::time::Duration;

use planning::election::{Candidate, Offers, Roll, Sighting, Step, Timing};

/// The numbers of shards that processes are started with.
pub(crate) const LAYOUTS: [u16; 2] = [6, 4];

/// Which Lease: the one that all of one layout hold together, or that of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Roll,
    Shard { layout: usize, shard: u16 },
}

#[derive(Clone, Debug, Default)]
struct Lease {
    version: u64,
    holder: Option<String>,
    beats: BTreeMap<String, u64>,
}

impl Lease {
    fn sighting(&self) -> Sighting {
        Sighting {
            version: (self.version > 0).then(|| self.version.to_string()),
            holder: self.holder.clone(),
            promised: timing().lease_duration,
        }
    }
}

fn timing() -> Timing {
    Timing::default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    Gone,
}

#[derive(Debug)]
struct Process {
    identity: String,
    layout: usize,
    state: State,
    candidate: Candidate,
    roll: Roll,
    offers: Offers,
    shards: Vec<Candidate>,
    /// Writes without an answer, and until when they are waited for.
    waiting: usize,
    until: Duration,
}

/// A write under way.
#[derive(Debug)]
struct Write {
    process: usize,
    place: Place,
    /// The version that it replaces.
    expected: u64,
    lease: Lease,
    sent: Duration,
    lands: Duration,
    /// Lets the Lease go, so that its success makes nobody a holder.
    release: bool,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    now: Duration,
    leases: BTreeMap<Place, Lease>,
    processes: Vec<Process>,
    writes: Vec<Write>,
    /// How many shards were given away.
    pub(crate) moves: usize,
}

impl World {
    pub(crate) fn join(&mut self, layout: usize) {
        let identity = format!("process-{}", self.processes.len());
        let shards = (0..LAYOUTS[layout]).map(|_| Candidate::new(identity.clone(), timing()));
        self.processes.push(Process {
            shards: shards.collect(),
            candidate: Candidate::new(format!("{} shards", LAYOUTS[layout]), timing()),
            roll: Roll::default(),
            offers: Offers::default(),
            state: State::Running,
            waiting: 0,
            until: Duration::ZERO,
            layout,
            identity,
        });
    }

    pub(crate) fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.land();
    }

    pub(crate) fn pause(&mut self, process: usize) {
        self.set(process, State::Paused);
    }

    pub(crate) fn wake(&mut self, process: usize) {
        if self
            .processes
            .get(process)
            .is_some_and(|process| process.state == State::Paused)
        {
            self.set(process, State::Running);
        }
    }

    pub(crate) fn kill(&mut self, process: usize) {
        self.set(process, State::Gone);
    }

    fn set(&mut self, process: usize, state: State) {
        if let Some(process) = self.processes.get_mut(process)
            && process.state != State::Gone
        {
            process.state = state;
        }
    }

    /// Ends in good order: lets go of what it holds, and of the common Lease when it is the last.
    pub(crate) fn leave(&mut self, index: usize) {
        if !self
            .processes
            .get(index)
            .is_some_and(|process| process.state == State::Running)
        {
            return;
        }
        let held = self.valid(index);
        for shard in held {
            self.release(index, shard, 0);
        }
        let (process, now) = (&self.processes[index], self.now);
        if process.candidate.valid_until().is_some_and(|end| now < end) {
            let lease = self.lease(Place::Roll);
            let mut roll = process.roll.clone();
            roll.saw(&lease.beats, now);
            let beats = roll.without(&process.identity, now, timing().lease_duration);
            let holder = lease.holder.clone().filter(|_| !beats.is_empty());
            let lease = Lease { holder, beats, ..lease };
            self.write(index, Place::Roll, lease, 0, true);
        }
        self.land();
        self.kill(index);
    }

    /// Of one layout only the running stay.
    pub(crate) fn end_all_but(&mut self, layout: usize) {
        for index in 0..self.processes.len() {
            self.wake(index);
            if self.processes[index].layout != layout {
                self.kill(index);
            }
        }
    }

    pub(crate) fn everybody(&mut self) {
        for process in 0..self.processes.len() {
            self.round(process, 0);
        }
    }

    /// One round of one process, as the executor makes it.
    pub(crate) fn round(&mut self, index: usize, late: u64) {
        let now = self.now;
        let Some(process) = self.processes.get_mut(index) else {
            return;
        };
        if process.state != State::Running || (process.waiting > 0 && now < process.until) {
            return;
        }
        process.waiting = 0;
        if !self.look(index) {
            return self.kill(index);
        }
        let process = &self.processes[index];
        if process.candidate.step(now) == Step::Write {
            let lease = self.lease(Place::Roll);
            let holder = format!("{} shards", LAYOUTS[process.layout]);
            let beat = process.roll.next_beat(&process.identity, 0);
            let lease = Lease {
                holder: Some(holder),
                beats: process
                    .roll
                    .announced(&process.identity, (beat, false), now, timing().lease_duration),
                ..lease
            };
            self.write(index, Place::Roll, lease, late, false);
        }
        self.work(index, late);
        self.land();
    }

    /// Looks at everything; false when the process holds something no longer that it did not let go.
    fn look(&mut self, index: usize) -> bool {
        let (now, leases) = (self.now, &self.leases);
        let process = &mut self.processes[index];
        let roll = leases.get(&Place::Roll).cloned().unwrap_or_default();
        process.candidate.saw(roll.sighting(), now);
        process.roll.saw(&roll.beats, now);
        let layout = process.layout;
        for (shard, candidate) in (0..).zip(&mut process.shards) {
            let lease = leases.get(&Place::Shard { layout, shard }).cloned().unwrap_or_default();
            candidate.saw(lease.sighting(), now);
        }
        let mut all = process.shards.iter().chain([&process.candidate]);
        all.all(|candidate| candidate.step(now) != Step::Resign)
    }

    /// Renews, takes and gives shards, while the common Lease is held.
    fn work(&mut self, index: usize, late: u64) {
        let (now, process) = (self.now, &mut self.processes[index]);
        if process.candidate.valid_until().is_none_or(|end| now >= end) {
            return;
        }
        let me = process.identity.clone();
        let members = process.roll.living(now, timing().lease_duration);
        let holders: Vec<Option<&str>> = process
            .shards
            .iter()
            .map(|candidate| candidate.holder().filter(|_| !candidate.is_free(now)))
            .collect();
        let times = (now, timing().renew_deadline);
        let part = process.offers.share(&me, &members, &holders, times);
        let layout = process.layout;
        let mine: Vec<bool> = process
            .shards
            .iter()
            .map(|candidate| candidate.valid_until().is_some() || candidate.holder() == Some(&me))
            .collect();
        let mut give = part.give;
        for (shard, mine) in (0..).zip(mine) {
            if mine && give > 0 {
                give -= 1;
                self.moves += 1;
                self.release(index, shard, late);
            } else if mine || part.take.contains(&shard) {
                let place = Place::Shard { layout, shard };
                let holder = Some(me.clone());
                let lease = Lease {
                    holder,
                    ..self.lease(place)
                };
                self.write(index, place, lease, late, false);
            }
        }
    }

    fn release(&mut self, index: usize, shard: u16, late: u64) {
        let process = &mut self.processes[index];
        process.shards[usize::from(shard)].released();
        let place = Place::Shard {
            layout: process.layout,
            shard,
        };
        let lease = Lease {
            holder: None,
            ..self.lease(place)
        };
        self.write(index, place, lease, late, true);
    }

    fn lease(&self, place: Place) -> Lease {
        self.leases.get(&place).cloned().unwrap_or_default()
    }

    fn write(&mut self, process: usize, place: Place, lease: Lease, late: u64, release: bool) {
        let write = Write {
            expected: lease.version,
            lands: self.now + Duration::from_millis(late),
            sent: self.now,
            process,
            place,
            lease,
            release,
        };
        self.processes[process].waiting += 1;
        self.processes[process].until = self.now + timing().renew_deadline;
        self.writes.push(write);
    }

    /// What has arrived is done, or refused because somebody was faster.
    fn land(&mut self) {
        let now = self.now;
        let (landed, under_way) = std::mem::take(&mut self.writes)
            .into_iter()
            .partition(|write| write.lands <= now);
        self.writes = under_way;
        let mut landed: Vec<Write> = landed;
        landed.sort_by_key(|write| write.lands);
        for write in landed {
            let kept = self.leases.entry(write.place).or_default();
            let done = kept.version == write.expected;
            if done {
                *kept = Lease {
                    version: kept.version + 1,
                    ..write.lease
                };
            }
            let (kept, process) = (kept.clone(), &mut self.processes[write.process]);
            // Who waits no longer does not hear the answer.
            if process.waiting == 0 || write.lands >= process.until {
                continue;
            }
            process.waiting -= 1;
            if !done {
                continue;
            }
            let candidate = match write.place {
                Place::Roll => {
                    process.roll.saw(&kept.beats, write.lands);
                    &mut process.candidate
                }
                Place::Shard { shard, .. } => &mut process.shards[usize::from(shard)],
            };
            candidate.saw(kept.sighting(), write.lands);
            if !write.release {
                candidate.wrote(write.sent, write.lands);
            }
        }
    }

    /// The shards that a process may write in, as it sees it: also while it is paused, because it may wake any moment.
    fn valid(&self, index: usize) -> Vec<u16> {
        let process = &self.processes[index];
        let is_valid = |candidate: &Candidate| candidate.valid_until().is_some_and(|end| self.now < end);
        if process.state == State::Gone || !is_valid(&process.candidate) {
            return Vec::new();
        }
        let shards = (0..).zip(&process.shards);
        shards
            .filter(|(_, candidate)| is_valid(candidate))
            .map(|(shard, _)| shard)
            .collect()
    }

    /// Of every living process.
    pub(crate) fn shares(&self) -> Vec<Vec<u16>> {
        let living = (0..self.processes.len()).filter(|index| self.processes[*index].state != State::Gone);
        living.map(|index| self.valid(index)).collect()
    }

    /// No shard has two holders, and no two layouts are worked on at once.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut holders: BTreeMap<(usize, u16), &str> = BTreeMap::new();
        for (index, process) in self.processes.iter().enumerate() {
            for shard in self.valid(index) {
                if let Some(other) = holders.insert((process.layout, shard), &process.identity) {
                    return Err(format!("{other} and {} both hold shard {shard}", process.identity));
                }
            }
        }
        let mut layouts = holders.keys().map(|(layout, _)| layout);
        match layouts.next() {
            Some(first) if layouts.any(|layout| layout != first) => Err(format!("two layouts at once: {holders:?}")),
            _ => Ok(()),
        }
    }
}
