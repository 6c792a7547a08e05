// Journal: records of a live run, kept in memory of their own until somebody has time to read them.
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "sim/record.h"

typedef struct Journal {  // one thread at a time writes, one reads
    Record  *at;          // [mask + 1]
    uint64_t mask;
    _Alignas(64) _Atomic uint64_t tail;  // next to be written
    _Alignas(64) _Atomic uint64_t head;  // next to be read
    _Atomic uint64_t lost;               // found no room
} Journal;

MUST_USE Err journal_init(Journal *j, uint32_t room, Arena *a);  // rounded up to 2^n; 0: none
void         journal_put(Journal *j, const Record *r);
// What was written so far, by time, and forgets it. What was decided during the call may be
// missing.
MUST_USE Err journal_drain(Journal *j, Arena *scratch, RecordSink to);
