// Diary: what happened to jobs in a run: when they came, started and where, were given other
// amounts, were stopped, and ended. Told by the engine as it goes on.
#pragma once

#include <stdio.h>

#include "cluster/run.h"

#define DIARY_ALL UINT32_MAX

typedef enum DiaryKind {  // in one instant in this order
    DIARY_END,
    DIARY_CAME,
    DIARY_START,
    DIARY_LEVEL,
    DIARY_STOP,
    DIARY_KINDS
} DiaryKind;

typedef struct DiaryEvent {
    TimeNs              at;
    DiaryKind           kind;
    uint32_t            job;     // in the list of jobs
    uint32_t            order;   // among all
    uint32_t            n;       // START, LEVEL: of slices
    const ClusterSlice *slices;  // as the engine gave them
} DiaryEvent;

typedef struct Diary {
    const ClusterRun *run;
    Arena            *arena;
    DiaryEvent       *at;
    uint32_t          n, room, only;
    bool              full;  // no memory for more
} Diary;

const char *diary_name(DiaryKind k);

// Of one job, or DIARY_ALL. The arena is not the run's, for that one is given back.
void diary_open(Diary *d, const ClusterRun *run, uint32_t only, Arena *own);
// For ClusterRun.after; self is the Diary.
void         diary_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);
MUST_USE Err diary_close(Diary *d, const ClusterResult *r);  // adds who came and ended; by time

void diary_write(const Diary *d, FILE *f);  // a JSON object a line
