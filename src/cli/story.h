// Story: what became of one job in a run of a cluster, and what would have with one thing changed.
#pragma once

#include "base/progress.h"
#include "cli/play.h"
#include "cli/what_if.h"
#include "cluster/why.h"

enum { STORY_CHANGES = 32 };

typedef struct Story {
    Arena        *arena, *kept;  // the run's; what outlives it
    Play          play;
    ClusterResult result;
    Diary         diary;
    Why          *why;
    uint32_t      job;
    WhatIf        changes[STORY_CHANGES];
    uint32_t      n_changes;
    Progress      progress;  // of trying changes
    bool          shown;
} Story;

static inline const ClusterEnd *story_end(const Story *s) { return &s->result.ends[s->job]; }

MUST_USE Err story_print(const Story *s);
MUST_USE Err story_json(const Story *s, int *code);
