//! `lab bench operator`: every benchmark in turn, as large as the goals are, or smaller.

use crate::arguments::{
    BenchArguments, BenchCommand, ConvergeArguments, DownloadArguments, IdleArguments, MemoryArguments,
    OperatorArguments, Output, ReactionArguments, RestartArguments,
};

/// Objects of each release, and connections of the raw writer, as when nothing is asked for.
const OBJECTS: u32 = 4;
const CONNECTIONS: u16 = 32;

/// What has to be measured.
pub(super) fn all(arguments: &OperatorArguments) -> Vec<BenchCommand> {
    let common = BenchArguments {
        output: Output {
            json: None,
            record: arguments.record,
        },
        kubeconfig: None,
    };
    let releases = arguments.releases;
    let of_size = |full: u32, small: u32| releases.map_or(full, |_| small);
    vec![
        BenchCommand::Converge(ConvergeArguments {
            releases,
            stacks: None,
            objects: OBJECTS,
            connections: CONNECTIONS,
            common: common.clone(),
        }),
        BenchCommand::Idle(IdleArguments {
            releases,
            seconds: of_size(60, 20),
            common: common.clone(),
        }),
        BenchCommand::Memory(MemoryArguments {
            releases: releases.map_or(100, |releases| releases.min(100)),
            common: common.clone(),
        }),
        BenchCommand::Reaction(ReactionArguments {
            samples: of_size(100, 10),
            common: common.clone(),
        }),
        BenchCommand::Restart(RestartArguments {
            releases: releases.unwrap_or(1000),
            common: common.clone(),
        }),
        BenchCommand::Download(DownloadArguments {
            mebibytes: 64,
            rounds: of_size(7, 3),
            common,
        }),
    ]
}
